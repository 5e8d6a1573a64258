"""The record: what was measured, one JSON file a torch version, and what differs between two of them.

A file holds, under ``operations``, one entry an operation::

    {"path": "Tensor.repeat",
     "call": "x.repeat(2, 2)", "inputs": {"x": "float64 (2, 3)"},
     "facts": {"storage": "copy", ...},
     "other_calls": {"x.repeat(1, 1)": {...}},       only facts whose value is another one
     "bad_calls": {"x.repeat(2)": "RuntimeError: ..."},
     "setup": "...", "effects": {"held after backward()": "0 bytes"}}

and, under ``views``, the storage of each call of the page on views. A fact that has its usual value is left out of the
file (``USUAL``), so that what is written is what is worth reading. Torch is not imported here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# A fact with this value is not written: it is what almost every operation answers.
USUAL: dict[str, Any] = {
    "compile": "works",
    "deterministic": "works",
    "double_backward": "works",
    "dtypes_backward_refused": {},
    "dtypes_changed": {},
    "dtypes_not_tried": [],
    "dtypes_refused": {},
    "fake": "works",
    "finite_differences": "works",
    "forward_mode": "works",
    "fullgraph": "works",
    "in_place": "no",
    "meta": "works",
    "out": "no",
    "returns": "Tensor",
    "vmap": "works",
    "warns": [],
}

# What follows from ``gradient``: without one there is nothing to check.
WITHOUT_GRADIENT = {
    "double_backward": "no gradient",
    "finite_differences": "no gradient",
    "forward_mode": "no gradient",
    "write_input": "no gradient",
    "write_result": "no gradient",
}
NO_GRADIENT = ("none", "no tensor", "no floating point input")

Entry = dict[str, Any]


@dataclass(frozen=True, order=True)
class Change:
    """One value that is not what it was. ``call`` is empty where the entry itself came or went."""

    operation: str
    call: str
    fact: str
    old: Any
    new: Any

    def __str__(self) -> str:
        where = " · ".join(part for part in (self.operation, self.call, self.fact) if part)
        return f"{where}: recorded {as_text(self.old)}, measured {as_text(self.new)}"


def as_text(value: Any) -> str:
    """Return a value of a fact on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {as_text(part)}" for key, part in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(map(as_text, value)) or "none"
    return str(value)


# -------------------------------------------------------------------------------------------- leaving out, putting back


def _expected(facts: Mapping[str, Any]) -> dict[str, Any]:
    expected = dict(USUAL)
    if facts.get("gradient") in NO_GRADIENT:
        expected |= WITHOUT_GRADIENT
    return expected


def without_usual(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that are worth writing, sorted. A fact that was not asked is written as None."""
    expected = _expected(facts)
    kept = {key: value for key, value in facts.items() if key not in expected or value != expected[key]}
    kept |= {key: None for key in expected if key not in facts}
    return dict(sorted(kept.items()))


def with_usual(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Undo ``without_usual``."""
    full = {**_expected(facts), **facts}
    return {key: value for key, value in sorted(full.items()) if value is not None}


def calls(entry: Entry) -> dict[str, dict[str, Any]]:
    """Return every call of an entry with all its facts, the main one first; an entry of all of torch has one without text."""
    if "facts" not in entry:
        return {}
    main = with_usual(entry["facts"])
    found = {entry.get("call", ""): main}
    for text, facts in entry.get("other_calls", {}).items():
        found[text] = {key: value for key, value in {**main, **facts}.items() if value is not None}
    return found


def other_call(main: Mapping[str, Any], facts: Mapping[str, Any], asked_once: Iterable[str] = ()) -> dict[str, Any]:
    """Return the facts of another call that differ from those of the main one; None stands for a fact it lacks."""
    skip = set(asked_once)
    keys = sorted({*main, *facts} - skip)
    return {key: facts.get(key) for key in keys if facts.get(key) != main.get(key)}


# -------------------------------------------------------------------------------------------- files


def path_of(folder: Path, version: str) -> Path:
    """Return where the record of a torch version lies; a local part (``+cpu``) does not count."""
    return folder / f"torch-{plain_version(version)}.json"


def plain_version(version: str) -> str:
    """Return ``2.13.0`` for ``2.13.0+cpu``."""
    return version.partition("+")[0]


def load(path: Path) -> dict[str, Any] | None:
    """Return a record, or None where there is none. Raises ValueError with the path where it is not a record."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        record = json.loads(text)
        record["torch"], record["operations"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a record of facts: {error}") from None
    return record


def save(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(dumps(record), encoding="utf-8")
    draft.replace(path)


def dumps(record: Mapping[str, Any]) -> str:
    """Return the text of a record: operations sorted, one fact a line."""
    ordered = {
        key: dict(sorted(value.items())) if key in ("operations", "views") else value for key, value in record.items()
    }
    return json.dumps(ordered, indent=1, ensure_ascii=False) + "\n"


def versions(folder: Path, prefix: str = "torch-") -> list[str]:
    """Return the torch versions of which a record lies in ``folder``, oldest first."""
    found = [path.name[len(prefix) : -len(".json")] for path in folder.glob(f"{prefix}*.json")]
    return sorted(found, key=lambda version: [int(part) if part.isdigit() else 0 for part in version.split(".")])


# -------------------------------------------------------------------------------------------- comparing


def compare(old: Mapping[str, Entry], new: Mapping[str, Entry], partial: bool = False) -> list[Change]:
    """Return what differs between two sets of entries; with ``partial`` operations that ``new`` lacks do not count."""
    changes: list[Change] = []
    for name in sorted(new if partial else {*old, *new}):
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            gone = after is None
            changes.append(Change(name, "", "", "an operation" if gone else None, None if gone else "an operation"))
            continue
        for call, fact, value in _cells(before, after):
            changes.append(Change(name, call, fact, *value))
    return changes


def _cells(before: Entry, after: Entry) -> Iterable[tuple[str, str, tuple[Any, Any]]]:
    """Yield what differs, cell by cell: keys in one order, values of facts that are mappings one key at a time."""
    for key in ("path", "call", "inputs", "setup", "dtype", "samples"):
        if before.get(key) != after.get(key):
            yield "", key, (before.get(key), after.get(key))
    for key in ("bad_calls", "effects"):
        yield from (("", label, pair) for label, pair in _different(before.get(key, {}), after.get(key, {})))
    old, new = calls(before), calls(after)
    for call in dict.fromkeys((*old, *new)):
        for fact, pair in _different(old.get(call, {}), new.get(call, {})):
            if all(isinstance(value, dict) for value in pair):
                yield from ((call, f"{fact} · {part}", cell) for part, cell in _different(*pair))
            else:
                yield call, fact, pair


def _different(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterable[tuple[str, tuple[Any, Any]]]:
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield key, (old.get(key), new.get(key))


def compare_views(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return what differs between two measurements of the page on views."""
    changes = []
    for call in dict.fromkeys((*old, *new)):
        changes += [
            Change("views", call, fact, *pair) for fact, pair in _different(old.get(call, {}), new.get(call, {}))
        ]
    return changes
