"""What a build needs of the facts: from its cache where nothing changed, measured where something did.

Nothing here imports torch: a warm build asks only for its version.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from . import gather, record
from .operations import OPERATIONS
from .record import Change, Entry

# A change in one of these can change an answer.
MEASURING = (
    "tree", "samples", "probes", "effects", "targets", "gather", "record", "run", "processes", "views", "view_list",
)  # fmt: skip


def installed_version() -> str:
    """Return the version of the torch that is installed, without importing it. Raises ModuleNotFoundError without one."""
    try:
        return record.plain_version(metadata.version("torch"))
    except metadata.PackageNotFoundError:
        raise ModuleNotFoundError("torch is not installed, so no fact can be measured") from None


def code_digest() -> str:
    """Return a short hash of the code that measures and of the versions it measures with."""
    folder = Path(__file__).parent
    sources = [(folder / f"{name}.py").read_bytes() for name in MEASURING if (folder / f"{name}.py").exists()]
    versions = [platform.python_version(), *(metadata.version(package) for package in ("torch", "numpy"))]
    return hashlib.sha256(b"\0".join([*sources, *(version.encode() for version in versions)])).hexdigest()[:16]


@dataclass
class Facts:
    """The facts of a build: entries by operation, storage of the calls on the page on views, and where they stand."""

    version: str
    entries: dict[str, Entry] = field(default_factory=dict)
    views: dict[str, Any] = field(default_factory=dict)
    recorded: bool = True
    changes: list[Change] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)


def facts(
    names: Iterable[str],
    views: bool,
    cache: Path,
    records: Path,
    say: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> Facts:
    """Return the facts of the operations ``names`` and, with ``views``, of the page on views.

    What is not in the folder ``cache`` for this torch and this code is measured; ``say`` is told before that happens.
    ``changes`` compares with the record of this torch in the folder ``records``; without such a record nothing differs.
    """
    version = installed_version()
    file = cache / f"torch-{version}.json"
    digest = code_digest()
    wanted = {name: OPERATIONS[name].digest() for name in sorted(names)}
    kept = _kept(file, digest)
    missing = [name for name, sample in wanted.items() if kept["operations"].get(name, {}).get("sample") != sample]
    views_too = views and kept["views"] is None
    if missing or views_too:
        say(f"{len(missing)} operation{'' if len(missing) == 1 else 's'}" if missing else "views")
        found, storage = gather.measure_pages(missing, views_too, **options)
        kept["operations"] |= {name: {"sample": wanted[name], "entry": entry} for name, entry in found.items()}
        if views_too:
            kept["views"] = storage
        _keep(file, kept)
    got = Facts(
        version=version,
        entries={name: kept["operations"][name]["entry"] for name in wanted},
        views=kept["views"] if views else {},
        measured=missing,
    )
    recorded = record.load(record.path_of(records, version))
    got.recorded = recorded is not None
    if recorded is not None:
        got.changes = record.compare(recorded["operations"], got.entries, partial=True)
        if views:
            got.changes += record.compare_views(recorded.get("views", {}), got.views)
    return got


def _kept(file: Path, digest: str) -> dict[str, Any]:
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["code"] == digest:
            return kept
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no cache, or one that was cut short: measure again
    return {"code": digest, "operations": {}, "views": None}


def _keep(file: Path, kept: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(kept), encoding="utf-8")
    draft.replace(file)
