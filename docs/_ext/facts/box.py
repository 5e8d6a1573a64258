"""Draw the fact box of an operation as HTML. What it says comes from the record's entry; torch is not needed.

Every row is a ``<details>``: a label and a short word, and on demand the sentence that says what was measured. It works
without script, by keyboard, and at any width. A value is always text; colour only repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from . import record, sentences, wording
from .operations import COUNT
from .record import Entry

# Given the text of an error, the address of the page that explains it, or None.
ErrorLink = Callable[[str], "str | None"]


def no_link(error: str) -> None:
    """The ErrorLink of a site without an error index."""


def identifier(name: str) -> str:
    """Return the id of an operation's box on its page."""
    return "facts-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + ("_" if name.endswith("_") else "")


def draw(
    name: str,
    entry: Entry,
    version: str,
    recorded: bool = True,
    numpy: Mapping[str, str] | None = None,
    codes: Mapping[str, str] | None = None,
    link: ErrorLink = no_link,
) -> str:
    """Return the box of one operation.

    ``numpy`` maps a measured call to the NumPy call that it was compared with, ``codes`` the question of an effect to its
    code. ``recorded`` False says that no record of this torch exists to hold the facts against.
    """
    identity = identifier(name)
    rows = [
        *_call_rows(entry, numpy or {}, link),
        *_effect_rows(entry, codes or {}, link),
        *_other_calls(entry),
        *_bad_calls(entry, link),
    ]
    note = (
        ""
        if recorded
        else '<p class="facts-note">There is no record of this torch version to hold these facts against.</p>'
    )
    return (
        f'<section class="facts" id="{identity}" aria-label="Measured facts: {escape(name)}">\n'
        f'<header class="facts-head"><p class="facts-kind">Measured</p>{_subject(entry)}'
        f'<p class="facts-version">torch {escape(version)}, CPU</p></header>\n'
        f"{note}{''.join(rows)}</section>\n"
    )


def _subject(entry: Entry) -> str:
    if "call" not in entry:
        shown = entry.get("setup", entry["path"]).removeprefix(COUNT)
        return f'<pre class="facts-call"><code>{escape(shown)}</code></pre>'
    inputs = ", ".join(
        f"{name}: {kind}" if not kind.startswith("torch.") else f"{name} = {kind}"
        for name, kind in entry["inputs"].items()
    )
    return f'<p class="facts-call"><code>{escape(entry["call"])}</code> <span>{escape(inputs)}</span></p>'


def row(label: str, word: str, more: str, care: bool = False, kind: str = "") -> str:
    """Return one row; ``word`` and ``more`` are HTML, ``care`` marks an answer that is not the plain one."""
    classes = " ".join(filter(None, ("facts-row", kind, "facts-care" if care else "")))
    return (
        f'<details class="{classes}"><summary><span class="facts-label">{escape(label)}</span> '
        f'<span class="facts-word">{word}</span></summary><div class="facts-more">{more}</div></details>\n'
    )


def prose(text: str, link: ErrorLink = no_link) -> str:
    """Return sentences as HTML: backticks become code, and an error in them a link where the index knows it."""

    def code(match: re.Match) -> str:
        quoted = f"<code>{escape(match[1])}</code>"
        if re.match(r"\w+(Error|Exception): ", match[1]) and (address := link(match[1])):
            return f'<a href="{escape(address)}">{quoted}</a>'
        return quoted

    text = re.sub(r"([.…])`\.", r"\1`", text)  # a quoted message that ends its own sentence ends this one too
    return "<p>" + re.sub(r"`([^`]+)`", code, _escape_outside(text)) + "</p>"


def _escape_outside(text: str) -> str:
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part if part.startswith("`") and part.endswith("`") and len(part) > 1 else escape(part) for part in parts
    )


def _call_rows(entry: Entry, numpy: Mapping[str, str], link: ErrorLink) -> list[str]:
    if "call" not in entry:
        return []
    facts = record.with_usual(entry["facts"])

    def made(label: str, word: str, sentence: str, care: bool = False) -> str:
        return row(label, escape(word), prose(sentence, link), care)

    rows = []
    returns = facts.get("returns", "")
    if wording.is_error(returns):
        rows.append(made("Returns", wording.short(returns), f"The call raises `{wording.error_of(returns)}`.", True))
    word = wording.result(facts)
    rows.append(
        made("Result", f"{word}: {returns}" if word == "no tensor" else word, sentences.result(facts), "raises" in word)
    )
    if "new_bytes" in facts:
        rows.append(made("New memory", wording.memory(facts), sentences.memory(facts)))
    rows.append(
        made("Gradient", wording.gradient_in_full(facts), sentences.gradient(facts), wording.gradient(facts) != "yes")
    )
    if "grad_fn" in facts:
        second = facts.get("second_backward")
        word = wording.saved(facts) + (f"; second backward {wording.second_backward(facts)}" if second else "")
        told = sentences.saved(facts) + (f" {sentences.second_backward(facts)}" if second else "")
        rows.append(made("Saved for backward", word, told, second not in (None, "works")))
    word = wording.writes(facts)
    if word:
        rows.append(made("In-place write", word, sentences.writes(facts), word not in wording.HARMLESS))
    word = "; ".join(filter(None, (wording.accepted(facts), wording.changed(facts))))
    told = sentences.dtypes(facts) + (f" {sentences.changed(facts)}" if wording.changed(facts) else "")
    rows.append(made("Dtypes", word, told, bool(facts.get("dtypes_refused"))))
    rows.append(made("In-place twin, out=", wording.twins(facts), sentences.out_and_twin(facts)))
    if "numpy" in facts and entry["call"] in numpy:
        rows.append(
            made("NumPy", facts["numpy"], sentences.numpy(facts, numpy[entry["call"]]), facts["numpy"] != "equal")
        )
    for fact, value in wording.seldom(facts):
        rows.append(made(wording.label(fact), wording.one(facts, fact), sentences.seldom(fact, value), True))
    return rows


def _effect_rows(entry: Entry, codes: Mapping[str, str], link: ErrorLink) -> list[str]:
    effects = entry.get("effects", {})
    if not effects:
        return []
    setup = entry.get("setup", "")
    rows = []
    if "call" in entry:
        rows.append(
            f'<p class="facts-part">After <code class="facts-setup">{escape("; ".join(setup.splitlines()))}</code></p>\n'
        )
    for question, answer in effects.items():
        error = re.match(r"(\w+(?:Error|Exception|Warning)): ", answer)
        word = f"raises {error[1]}" if error else answer
        told = f"<pre><code>{escape(codes[question])}</code></pre>" if question in codes else ""
        if "held()" in told:
            told += "<p>The bytes of all tensors that the graph saved for backward and that are still alive.</p>"
        if error:
            told += prose(f"`{answer}`", link)
        rows.append(row(question, escape(word), told or prose(f"`{answer}`"), bool(error), kind="facts-effect"))
    if setup.startswith(COUNT):
        code = f"<pre><code>{escape(COUNT.rstrip())}</code></pre>"
        rows.append(row("What count and held() are", "a few lines of torch", code, kind="facts-effect"))
    return rows


def _other_calls(entry: Entry) -> list[str]:
    if not entry.get("other_calls"):
        return []
    found = record.calls(entry)
    main = found.pop(entry["call"])
    items = []
    for call, facts in found.items():
        other = [
            fact
            for fact in wording.LABELS
            if facts.get(fact) != main.get(fact)
            and facts.get(fact) is not None
            and fact not in ("saved_bytes", "compile", "fullgraph")
        ]
        told = "; ".join(f"{wording.label(fact)}: {wording.one(facts, fact)}" for fact in other)
        items.append(f"<li><code>{escape(call)}</code> {escape(told or 'the same answers')}</li>")
    word = f"{len(items)} more call{'' if len(items) == 1 else 's'} measured"
    return [row("Other arguments", word, f"<p>What differs from the call above:</p><ul>{''.join(items)}</ul>")]


def _bad_calls(entry: Entry, link: ErrorLink) -> list[str]:
    bad = entry.get("bad_calls", {})
    if not bad:
        return []
    items = []
    for call, answer in bad.items():
        told = (
            f'<span class="facts-silent">{escape(answer)}</span>' if answer.startswith("no error") else escape(answer)
        )
        if not answer.startswith("no error") and (address := link(answer)):
            told = f'<a href="{escape(address)}">{told}</a>'
        items.append(f"<li><code>{escape(call)}</code> <span>{told}</span></li>")
    silent = sum(answer.startswith("no error") for answer in bad.values())
    word = f"{len(items) - silent} measured" + (f", {silent} without an error" if silent else "")
    return [row("Bad calls", word, f'<ul class="facts-bad">{"".join(items)}</ul>', True)]
