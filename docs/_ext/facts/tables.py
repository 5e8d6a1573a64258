"""Draw the tables that are made from facts, as HTML. Each is whole without script; ``facts.js`` adds sorting and filters.

A row carries what a filter asks for in ``data-has``, a column what it sorts by in ``data-sort``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from . import differences, everything, record, view_list, wording
from .differences import Difference
from .record import Entry

# Given the name of an operation, the address of its page here, or None; given its path, that of its official page.
PageLink = Callable[[str], "str | None"]
OfficialLink = Callable[[str], "str | None"]


def _fails(facts: Mapping[str, Any], fact: str) -> bool:
    """Whether something works with no sample; an answer that depends on the sample otherwise is neither yes nor no."""
    bad = ("raises ", "differs ", "other ", "nothing ", "result ")
    return all(part.startswith(bad) for part in wording.parts(facts.get(fact, "works")))


def _refuses(facts: Mapping[str, Any], dtype: str) -> bool:
    refused = facts.get("dtypes_refused")
    return isinstance(refused, dict) and dtype in refused and not wording.is_of_some(refused[dtype])


def _differentiable(facts: Mapping[str, Any]) -> bool:
    return "yes" in wording.parts(facts.get("gradient"))


COLUMNS = (
    "Operation",
    "Result",
    "New memory",
    "Gradient",
    "Saved",
    "Second backward",
    "Write into input",
    "Write into result",
    "Dtypes refused",
    "In place, out=",
)

# What the table can be filtered by: a few words, and how a row tells.
FILTERS: dict[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "view": ("returns a view", lambda f: "view" in f.get("storage", "")),
    "copy": ("returns a copy", lambda f: f.get("storage") == "copy"),
    "depends": (
        "view or copy depends on the layout",
        lambda f: (
            "storage_permuted" in f and wording.short(f.get("storage", "")) != wording.short(f["storage_permuted"])
        ),
    ),
    "gradient": ("has a gradient", _differentiable),
    "zero": ("gradient is zero everywhere", lambda f: f.get("gradient") == "zero everywhere"),
    "none": ("has no gradient", lambda f: f.get("gradient") in record.NO_GRADIENT),
    "raises": (
        "backward raises though it has a grad_fn",
        lambda f: all(part.startswith("backward raises") for part in wording.parts(f.get("gradient"))),
    ),
    "twice": ("second backward works", lambda f: f.get("second_backward") == "works"),
    "retain": ("second backward needs retain_graph", lambda f: f.get("second_backward") == "needs retain_graph"),
    "input": (
        "a write into the input breaks backward",
        lambda f: str(f.get("write_input")).startswith("backward raises"),
    ),
    "result": (
        "a write into the result breaks backward",
        lambda f: str(f.get("write_result")).startswith("backward raises"),
    ),
    "bool": ("refuses bool", lambda f: _refuses(f, "bool")),
    "integers": ("refuses int64", lambda f: _refuses(f, "int64")),
    "float16": ("refuses float16", lambda f: _refuses(f, "float16")),
    "bfloat16": ("refuses bfloat16", lambda f: _refuses(f, "bfloat16")),
    "complex": ("refuses complex64", lambda f: _refuses(f, "complex64")),
    "double": (
        "has no gradient of the gradient",
        lambda f: _differentiable(f) and _fails(f, "double_backward"),
    ),
    "forward": ("has no forward mode", lambda f: _differentiable(f) and _fails(f, "forward_mode")),
    "vmap": ("does not work under vmap", lambda f: _fails(f, "vmap")),
    "break": ("is not captured by torch.compile", lambda f: _fails(f, "compile")),
    "meta": ("does not work on the meta device", lambda f: _fails(f, "meta")),
    "twin": ("has an in-place twin", lambda f: f.get("in_place", "no") != "no"),
    "out": ("takes out=", lambda f: "yes" in wording.parts(f.get("out"))),
}


UNRECORDED = "; there is no record of this version to hold them against"


def operations(entries: Mapping[str, Entry], version: str, page_of: PageLink, recorded: bool = True) -> str:
    """Return the table of all operations that have a box; ``recorded`` False says that there is no record of this torch."""
    rows = []
    for name, entry in sorted(entries.items(), key=lambda item: item[0].strip("_")):
        if "call" not in entry:
            answers = "; ".join(
                f"{question}: {_first_line(answer)}" for question, answer in list(entry["effects"].items())[:3]
            )
            rows.append(
                f'<tr data-name="{escape(name)}" data-has="">{_name(name, page_of(name))}<td colspan="{len(COLUMNS) - 1}">{escape(answers)}</td></tr>'
            )
            continue
        rows.append(
            _row(name, record.with_usual(entry["facts"]), page_of(name), f"<code>{escape(entry['call'])}</code>")
        )
    return _table(COLUMNS, rows, f"{len(entries)} operations, measured on torch {version}, CPU{'' if recorded else UNRECORDED}", "operations")


def _first_line(answer: str) -> str:
    return answer.partition(": ")[0] if answer.partition(":")[0].endswith("Error") else answer


def _name(name: str, address: str | None, call: str = "") -> str:
    shown = f"<code>{escape(name)}</code>"
    linked = f'<a href="{escape(address)}">{shown}</a>' if address else shown
    below = f' <span class="facts-small">{call}</span>' if call else ""
    return f'<th scope="row">{linked}{below}</th>'


def _row(name: str, facts: Mapping[str, Any], address: str | None, call: str = "", more: str = "") -> str:
    has = " ".join(key for key, (_, test) in FILTERS.items() if test(facts))
    twins = ", ".join(filter(None, (_there(facts, "in_place", "in place"), _there(facts, "out", "out=")))) or "–"
    untried = wording.dtype_groups(facts.get("dtypes_not_tried") or ())
    refused = wording.refused(facts) + (f"; {untried} not tried" if untried else "")
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


def _there(facts: Mapping[str, Any], fact: str, word: str) -> str:
    """Return ``word`` where an in-place twin or ``out=`` is there, with what there is to say of it; else nothing."""
    answers = wording.parts(facts.get(fact, "no"))
    if "yes" in answers:
        return word if answers == ["yes"] else f"{word} in some calls"
    return f"{word}: raises on these samples" if fact == "in_place" and answers != ["no"] else ""


def _cell(text: str, value: int | None) -> str:
    sort = "" if value is None else f' data-sort="{value}"'
    return f"<td{sort}>{escape(text)}</td>"


def _table(
    columns: Iterable[str], rows: list[str], caption: str, identity: str, filters: bool = True, kind: str = ""
) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    shown = " ".join(rows)
    used = [key for key in FILTERS if f" {key} " in f" {' '.join(_has(row) for row in rows)} "] if filters else []
    asked = f' data-filters="{escape("|".join(f"{key}={FILTERS[key][0]}" for key in used))}"' if used else ""
    return (
        f'<div class="facts-table{kind and f" {kind}"}" id="table-{identity}"{asked}><div class="facts-scroll" role="region" aria-label="{escape(caption)}" tabindex="0">\n'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n<tbody>\n{shown}\n</tbody></table></div></div>\n"
    )


def _has(row: str) -> str:
    return row.partition('data-has="')[2].partition('"')[0]


# -------------------------------------------------------------------------------------------- views


def views(
    facts: Mapping[str, Mapping[str, str]],
    version: str,
    recorded: bool = True,
    database: Mapping[str, Any] | None = None,
    page_of: PageLink = lambda name: None,
    official: OfficialLink = lambda path: None,
) -> str:
    """Return the tables of the page on views: the official list, what it lacks, what copies, and the finer points.

    ``database`` is a record of all of torch: what shares memory in it, and has no call on the page, gets a table too.
    """
    note = "" if recorded else UNRECORDED
    listed = {call: name for name, call in view_list.OFFICIAL.items()}
    sharing = [call for call in view_list.OTHERS if shares(facts[call], ("storage",))]
    keeps = [call for call in view_list.OTHERS if call not in sharing]
    parts = [
        "<h3>On the official list</h3>",
        _views_table(
            [(name, call) for call, name in listed.items()],
            facts,
            f"The {len(listed)} entries of the official list, torch {version}, CPU{note}",
            "official",
            "Listed as",
        ),
        "<h3>Not on the list, and shares memory</h3>",
        _views_table(
            [("", call) for call in sharing],
            facts,
            f"{len(sharing)} more calls whose result lies in the input's memory",
            "missing",
        ),
        *(_sharing(database, page_of, official) if database else ()),
        "<h3>Looks like a view, and copies</h3>",
        _views_table(
            [("", call) for call in keeps], facts, f"{len(keeps)} calls whose result has memory of its own", "copies"
        ),
        "<h3>Finer points</h3>",
        _views_table(
            [(group, call) for group, calls in view_list.FINER.items() for call in calls],
            facts,
            "Calls of one name, side by side",
            "finer",
            "About",
        ),
    ]
    return "\n".join(parts)


def _sharing(database: Mapping[str, Any], page_of: PageLink, official: OfficialLink) -> tuple[str, str]:
    known = view_list.names()
    rows = []
    for name, entry in sorted(database["operations"].items(), key=lambda item: item[0].strip("_").lower()):
        facts = entry["facts"]
        if not shares(facts) or (entry.get("path") or name).removeprefix("Tensor.") in known:
            continue
        answers = "".join(f"<td>{escape(wording.short(facts[fact]))}</td>" for fact in LAYOUTS)
        rows.append(
            f'<tr data-name="{escape(name)}" data-has="">{_name(name, _address(name, entry, page_of, official))}{answers}</tr>'
        )
    caption = f"{len(rows)} more operations that share memory in a sample of torch's own tests, torch {database['torch']}, CPU"
    columns = ("Operation", "Result", "Result for a permuted input")
    return "<h3>Shares memory in some calls</h3>", _table(columns, rows, caption, "sharing", filters=False)


LAYOUTS = ("storage", "storage_permuted")  # facts that say where a result lies: for the given input, and for a permuted one


def shares(facts: Mapping[str, Any], layouts: tuple[str, ...] = LAYOUTS) -> bool:
    """Return whether a result lies in the input's memory, or is the input, in any of the measured calls of these layouts."""
    answers = [part for fact in layouts for part in wording.parts(facts.get(fact))]
    return any({"view", "same object"} & set(answer.split(" + ")) for answer in answers)


def _views_table(
    pairs: list[tuple[str, str]], facts: Mapping[str, Mapping[str, str]], caption: str, identity: str, first: str = ""
) -> str:
    columns = [*([first] if first else []), "Call", "Result", "Result for a permuted input", "_is_view()"]
    rows = []
    for name, call in pairs:
        found = facts[call]
        head = f'<th scope="row">{escape(name)}</th>' if first else ""
        cell = "td" if first else 'th scope="row"'
        answers = "".join(
            f"<td>{escape(wording.short(found.get(fact, '–')))}</td>"
            for fact in ("storage", "storage_permuted", "is_view")
        )
        rows.append(
            f'<tr data-name="{escape(f"{name} {call}")}" data-has="">{head}<{cell}><code>{escape(call)}</code></{cell.split()[0]}>{answers}</tr>'
        )
    return _table(columns, rows, caption, identity, filters=False)


# -------------------------------------------------------------------------------------------- between versions

_KINDS = {
    "behaviour": ("What behaves differently", "Answers that are other answers."),
    "exception": ("Other exception types", "The call still fails, with an exception of another type."),
    "presence": (
        "Came and went",
        "Operations that one of the two versions does not have, or whose samples it does not have.",
    ),
    "samples": (
        "Measured on other samples",
        "Torch's own samples for these are not the same in both versions, so a difference may be the sample's.",
    ),
    "wording": ("Other wording", "The same exception type with another text."),
}


def versions(records: Path, page_of: PageLink) -> str:
    """Return what changed between each two neighbouring versions of which there are records."""
    known = record.versions(records)
    if len(known) < 2:
        return f"<p>There is one record, of torch {escape(', '.join(known))}; changes are shown from the second on.</p>"
    parts = []
    for old, new in zip(known, known[1:]):
        found = differences.joined(differences.between(records, old, new))
        parts.append(f"<h3>From torch {escape(old)} to {escape(new)}</h3>")
        for kind, (title, explained) in _KINDS.items():
            rows = [_difference_row(difference, page_of) for difference in found if difference.kind == kind]
            if not rows:
                parts.append(f"<p><strong>{title}</strong>: nothing.</p>")
                continue
            table = _table(
                ("Operation", "Fact", f"torch {old}", f"torch {new}"),
                rows,
                f"{title}: {len(rows)}. {explained}",
                f"{kind}-{new}",
                filters=False,
                kind="facts-differences",
            )
            folded = kind in ("wording", "samples")
            parts.append(f"<details><summary>{title}: {len(rows)}</summary>{table}</details>" if folded else table)
    return "\n".join(parts)


def _difference_row(difference: Difference, page_of: PageLink) -> str:
    change = difference.change
    call = f"<code>{escape(change.call)}</code>" if change.call else ""
    fact = (
        ""
        if not change.fact
        else f"<code>{escape(change.fact)}</code>"
        if difference.is_call
        else escape(wording.label(change.fact))
    )
    cells = "".join(f"<td>{escape(record.as_text(value))}</td>" for value in (change.old, change.new))
    return f'<tr data-name="{escape(change.operation)}" data-has="">{_name(change.operation, page_of(change.operation), call)}<td>{fact}</td>{cells}</tr>'


# -------------------------------------------------------------------------------------------- all of torch


def _address(name: str, entry: Entry, page_of: PageLink, official: OfficialLink) -> str | None:
    """Return where an operation of the database is explained: on a page here, on the official one, or nowhere."""
    path = entry.get("path") or ""  # without the variant that the database adds to some names
    return page_of(name) or page_of(path.removeprefix("Tensor.")) or (official(path) if path else None)


def all_of_torch(records: Path, version: str, page_of: PageLink, official: OfficialLink) -> str:
    """Return the table of everything in torch's sample database, from the record of ``version`` or the newest one.

    Raises ValueError for a disagreement with finite differences of which no reason is recorded.
    """
    found = everything.latest(records, version)
    if found is None:
        return "<p>There is no record of all of torch yet; <code>make facts-all</code> writes one.</p>"
    reasons = everything.reasons(records)
    if unexplained := everything.unexplained(found["operations"], reasons):
        raise ValueError(f"disagreements with finite differences without a recorded reason: {', '.join(unexplained)}")
    rows = []
    for name, entry in sorted(found["operations"].items(), key=lambda item: item[0].strip("_").lower()):
        facts = record.with_usual(entry["facts"])
        others = [f"{wording.label(fact)}: {wording.one(facts, fact)}" for fact, _ in wording.seldom(facts)]
        if name in reasons:
            others.insert(0, f"Finite differences: {reasons[name]['reason']}")
        address = _address(name, entry, page_of, official)
        rows.append(_row(name, facts, address, more=f"<td>{escape('; '.join(others) or '–')}</td>"))
    caption = f"{len(rows)} operations, measured on torch {found['torch']}, CPU, on samples of torch's own tests"
    return _table((*COLUMNS, "Not plain"), rows, caption, "all", kind="facts-all")
