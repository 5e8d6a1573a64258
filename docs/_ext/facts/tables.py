"""Draw the tables that are made from facts, as HTML. Each is whole without script; ``facts.js`` adds sorting and filters.

A row carries what a filter asks for in ``data-has``, a column what it sorts by in ``data-sort``.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping

from . import record, view_list, wording
from .record import Entry

# Given the name of an operation, the address of its page here, or None.
PageLink = Callable[[str], "str | None"]

COLUMNS = ("Operation", "Result", "New memory", "Gradient", "Saved", "Second backward", "Write into input", "Write into result", "Dtypes refused", "In place, out=")

# What the table can be filtered by: a few words, and how a row tells.
FILTERS: dict[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "view": ("returns a view", lambda f: "view" in f.get("storage", "")),
    "copy": ("returns a copy", lambda f: f.get("storage") == "copy"),
    "depends": ("view or copy depends on the layout", lambda f: "storage_permuted" in f and wording.short(f.get("storage", "")) != wording.short(f["storage_permuted"])),
    "gradient": ("has a gradient", lambda f: f.get("gradient") == "yes"),
    "zero": ("gradient is zero everywhere", lambda f: f.get("gradient") == "zero everywhere"),
    "none": ("has no gradient", lambda f: f.get("gradient") in record.NO_GRADIENT),
    "raises": ("backward raises though it has a grad_fn", lambda f: str(f.get("gradient")).startswith("backward raises")),
    "twice": ("second backward works", lambda f: f.get("second_backward") == "works"),
    "retain": ("second backward needs retain_graph", lambda f: f.get("second_backward") == "needs retain_graph"),
    "input": ("a write into the input breaks backward", lambda f: str(f.get("write_input")).startswith("backward raises")),
    "result": ("a write into the result breaks backward", lambda f: str(f.get("write_result")).startswith("backward raises")),
    "bool": ("refuses bool", lambda f: "bool" in (f.get("dtypes_refused") or ())),
    "integers": ("refuses int64", lambda f: "int64" in (f.get("dtypes_refused") or ())),
    "float16": ("refuses float16", lambda f: "float16" in (f.get("dtypes_refused") or ())),
    "bfloat16": ("refuses bfloat16", lambda f: "bfloat16" in (f.get("dtypes_refused") or ())),
    "complex": ("refuses complex64", lambda f: "complex64" in (f.get("dtypes_refused") or ())),
    "double": ("has no gradient of the gradient", lambda f: f.get("gradient") == "yes" and f.get("double_backward") != "works"),
    "forward": ("has no forward mode", lambda f: f.get("gradient") == "yes" and f.get("forward_mode") != "works"),
    "vmap": ("does not work under vmap", lambda f: f.get("vmap", "works") != "works"),
    "break": ("is not captured by torch.compile", lambda f: f.get("compile", "works") != "works"),
    "meta": ("does not work on the meta device", lambda f: not str(f.get("meta", "works")).startswith("works")),
    "twin": ("has an in-place twin", lambda f: f.get("in_place") == "yes"),
    "out": ("takes out=", lambda f: f.get("out") == "yes"),
}


def operations(entries: Mapping[str, Entry], version: str, page_of: PageLink) -> str:
    """Return the table of all operations that have a box."""
    rows = []
    for name, entry in sorted(entries.items(), key=lambda item: item[0].strip("_")):
        if "call" not in entry:
            answers = "; ".join(f"{question}: {_first_line(answer)}" for question, answer in list(entry["effects"].items())[:3])
            rows.append(f'<tr data-name="{escape(name)}" data-has="">{_name(name, page_of(name))}<td colspan="{len(COLUMNS) - 1}">{escape(answers)}</td></tr>')
            continue
        rows.append(_row(name, record.with_usual(entry["facts"]), page_of(name), f"<code>{escape(entry['call'])}</code>"))
    return _table(COLUMNS, rows, f"{len(entries)} operations, measured on torch {version}, CPU", "operations")


def _first_line(answer: str) -> str:
    return answer.partition(": ")[0] if answer.partition(":")[0].endswith("Error") else answer


def _name(name: str, address: str | None, call: str = "") -> str:
    shown = f"<code>{escape(name)}</code>"
    linked = f'<a href="{escape(address)}">{shown}</a>' if address else shown
    return f'<th scope="row">{linked}{f" <small>{call}</small>" if call else ""}</th>'


def _row(name: str, facts: Mapping[str, Any], address: str | None, call: str = "", more: str = "") -> str:
    has = " ".join(key for key, (_, test) in FILTERS.items() if test(facts))
    twins = ", ".join(word for fact, word in (("in_place", "in place"), ("out", "out=")) if facts.get(fact) == "yes") or "–"
    refused = wording.refused(facts)
    cells = (
        (wording.result(facts), None),
        (wording.memory(facts).partition(" (")[0], facts.get("new_bytes", -1)),
        (wording.gradient(facts), None),
        (wording.saved(facts), facts.get("saved_bytes", -1)),
        (wording.second_backward(facts), None),
        (wording.write(facts, "write_input"), None),
        (wording.write(facts, "write_result"), None),
        (refused, None),
        (twins, None),
    )
    drawn = "".join(_cell(text, value) for text, value in cells)
    return f'<tr data-name="{escape(name)}" data-has="{has}">{_name(name, address, call)}{drawn}{more}</tr>'


def _cell(text: str, value: int | None) -> str:
    sort = "" if value is None else f' data-sort="{value}"'
    return f"<td{sort}>{escape(text)}</td>"


def _table(columns: Iterable[str], rows: list[str], caption: str, identity: str, filters: bool = True) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    shown = " ".join(rows)
    used = [key for key in FILTERS if f" {key} " in f" {' '.join(_has(row) for row in rows)} "] if filters else []
    asked = f' data-filters="{escape("|".join(f"{key}={FILTERS[key][0]}" for key in used))}"' if used else ""
    return (
        f'<div class="facts-table" id="table-{identity}"{asked}><div class="facts-scroll" role="region" aria-label="{escape(caption)}" tabindex="0">\n'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{shown}\n</tbody></table></div></div>\n"
    )


def _has(row: str) -> str:
    return row.partition('data-has="')[2].partition('"')[0]


# -------------------------------------------------------------------------------------------- views


def views(facts: Mapping[str, Mapping[str, str]], version: str) -> str:
    """Return the tables of the page on views: the official list, what it lacks, what copies, and the finer points."""
    listed = {call: name for name, call in view_list.OFFICIAL.items()}
    shares = [call for call in view_list.OTHERS if _shares(facts[call])]
    keeps = [call for call in view_list.OTHERS if not _shares(facts[call])]
    parts = [
        "<h3>On the official list</h3>",
        _views_table([(name, call) for call, name in listed.items()], facts, f"The {len(listed)} entries of the official list, torch {version}, CPU", "official", "Listed as"),
        "<h3>Not on the list, and shares memory</h3>",
        _views_table([("", call) for call in shares], facts, f"{len(shares)} more calls whose result lies in the input's memory", "missing"),
        "<h3>Looks like a view, and copies</h3>",
        _views_table([("", call) for call in keeps], facts, f"{len(keeps)} calls whose result has memory of its own", "copies"),
        "<h3>Finer points</h3>",
        _views_table([(group, call) for group, calls in view_list.FINER.items() for call in calls], facts, "Calls of one name whose answers differ", "finer", "About"),
    ]
    return "\n".join(parts)


def _shares(facts: Mapping[str, str]) -> bool:
    return any(word in facts["storage"] for word in ("view", "same object"))


def _views_table(pairs: list[tuple[str, str]], facts: Mapping[str, Mapping[str, str]], caption: str, identity: str, first: str = "") -> str:
    columns = [*([first] if first else []), "Call", "Result", "Result for a permuted input", "_is_view()"]
    rows = []
    for name, call in pairs:
        found = facts[call]
        head = f'<th scope="row">{escape(name)}</th>' if first else ""
        cell = "td" if first else 'th scope="row"'
        answers = "".join(f"<td>{escape(wording.short(found.get(fact, '–')))}</td>" for fact in ("storage", "storage_permuted", "is_view"))
        rows.append(f'<tr data-name="{escape(f"{name} {call}")}" data-has="">{head}<{cell}><code>{escape(call)}</code></{cell.split()[0]}>{answers}</tr>')
    return _table(columns, rows, caption, identity, filters=False)
