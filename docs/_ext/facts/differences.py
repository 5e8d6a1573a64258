"""What differs between the records of two torch versions, and of what kind each difference is."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from . import everything, record
from .record import Change, Entry

_ERROR = re.compile(r"\b([A-Za-z_]\w*(?:Error|Exception|Warning|Unsupported)|Unsupported): [^|]*")


@dataclass(frozen=True, order=True)
class Difference:
    """A change and its kind: ``behaviour``, ``exception``, ``wording``, ``samples`` or ``presence``."""

    change: Change
    kind: str
    is_call: bool = False  # the fact is a call that goes wrong, not the name of a fact


def between(records: Path, old: str, new: str) -> list[Difference]:
    """Return the differences between two versions, documented operations first; raises FileNotFoundError without a record."""
    found = _of(*(_load(record.path_of(records, version)) for version in (old, new)))
    seen = {(difference.change.operation, difference.change.fact, str(difference.change.new)) for difference in found}
    paths = [everything.path_of(records, version) for version in (old, new)]
    if all(path.exists() for path in paths):
        more = _of(*(_load(path) for path in paths))
        found += [d for d in more if (d.change.operation, d.change.fact, str(d.change.new)) not in seen]
    return found


def _load(path: Path) -> dict[str, Any]:
    found = record.load(path)
    if found is None:
        raise FileNotFoundError(path)
    return found


def _of(old: dict[str, Any], new: dict[str, Any]) -> list[Difference]:
    before, after = old["operations"], new["operations"]
    found = []
    for change in record.compare(before, after):
        entry = after.get(change.operation, {})
        is_call = change.fact in {**before.get(change.operation, {}).get("bad_calls", {}), **entry.get("bad_calls", {})}
        found.append(
            Difference(change, kind(change, before.get(change.operation), after.get(change.operation)), is_call)
        )
    found += [
        Difference(change, kind(change), False)
        for change in record.compare_views(old.get("views", {}), new.get("views", {}))
    ]
    return found


def kind(change: Change, before: Entry | None = None, after: Entry | None = None) -> str:
    """Return what kind of difference a change is."""
    if not change.fact:
        return "presence"
    if change.fact in ("samples", "dtype"):
        return "samples"
    old, new = record.as_text(change.old), record.as_text(change.new)
    if _types_only(old) == _types_only(new):
        return "wording"
    if before and after and sampled_differently(before, after):
        return "samples"
    if _ERROR.search(old) and _ERROR.search(new) and _no_types(old) == _no_types(new):
        return "exception"
    return "behaviour"


def joined(differences: list[Difference]) -> list[Difference]:
    """Return the differences with those of one operation that say the same of several dtypes made one."""
    groups: dict[tuple, list[Difference]] = {}
    for difference in differences:
        change = difference.change
        fact, _, part = change.fact.partition(" · ")
        texts = (_types_only(record.as_text(change.old)), _types_only(record.as_text(change.new)))
        key = (change.operation, change.call, fact, difference.kind, *texts) if part else (len(groups),)
        groups.setdefault(key, []).append(difference)
    found = []
    for group in groups.values():
        first = group[0].change
        fact, separator, _ = first.fact.partition(" · ")
        parts = ", ".join(difference.change.fact.partition(" · ")[2] for difference in group)
        found.append(replace(group[0], change=replace(first, fact=f"{fact}{separator}{parts}" if separator else fact)))
    return found


def sampled_differently(before: Entry, after: Entry) -> bool:
    """Return whether torch's own samples for an operation are not the same ones in both records."""

    def sampled(entry: Entry) -> tuple:
        return (
            entry.get("samples"),
            entry.get("dtype"),
            entry.get("facts", {}).get("input_bytes"),
            entry.get("facts", {}).get("shape"),
        )

    return "samples" in before and "samples" in after and sampled(before) != sampled(after)


def _types_only(text: str) -> str:
    return _ERROR.sub(r"\1", text).strip()


def _no_types(text: str) -> str:
    return _ERROR.sub("error", text).strip()
