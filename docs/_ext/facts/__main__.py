"""Measure, compare and accept facts from the command line: ``python -m _ext.facts --help``."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import cache, gather, record
from .operations import OPERATIONS

RECORDS = Path(__file__).parents[2] / "_facts"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0, or 1 where facts differ from the record, or 2 for a mistake in the command."""
    parser = argparse.ArgumentParser(prog="python -m _ext.facts", description="Facts about torch, measured.")
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder of the records (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure", help="measure on the installed torch and write the record")
    measure.add_argument("names", nargs="*", metavar="OPERATION", help="only these; the others keep what is recorded")
    check = commands.add_parser("check", help="measure and compare with the record, write nothing")
    check.add_argument("names", nargs="*", metavar="OPERATION")
    diff = commands.add_parser("diff", help="compare two records, by torch version")
    diff.add_argument("old")
    diff.add_argument("new")
    commands.add_parser("list", help="name what can be measured")
    everything = commands.add_parser("all", help="measure every operation of torch's own sample database (minutes)")
    everything.add_argument("names", nargs="*", metavar="OPERATION")
    options = parser.parse_args(arguments)

    if options.command == "list":
        print("\n".join(OPERATIONS))
        return 0
    if options.command == "diff":
        return _diff(options.records, options.old, options.new)
    if options.command == "all":
        from .everything import refresh

        return refresh(options.records, options.names)
    if unknown := [name for name in options.names if name not in OPERATIONS]:
        print(f"no samples for {', '.join(unknown)}; `python -m _ext.facts list` names what there is", file=sys.stderr)
        return 2
    return _measure(options.records, options.names, write=options.command == "measure")


def _measure(folder: Path, names: list[str], write: bool) -> int:
    version = cache.installed_version()
    path = record.path_of(folder, version)
    old = record.load(path) or {"torch": version, "operations": {}, "views": {}}
    started, cost = time.monotonic(), []
    entries, views = gather.measure_pages(names or OPERATIONS, not names, cost=cost)
    if names:
        views = old.get("views", {})
    changes = record.compare(old["operations"], entries, partial=bool(names)) + record.compare_views(
        old.get("views", {}), views
    )
    for change in changes:
        print(change)
    took = f"{time.monotonic() - started:.1f} s, {sum(cost):.1f} s of CPU"
    print(f"{len(entries)} operations on torch {version} in {took}, {_count(changes)} against {path.name}")
    if not write:
        return 1 if changes else 0
    kept = {**old["operations"], **entries} if names else entries
    record.save(path, {"torch": version, "operations": kept, "views": views})
    return 0


def _diff(folder: Path, old: str, new: str) -> int:
    records = {version: record.load(record.path_of(folder, version)) for version in (old, new)}
    if missing := [version for version, found in records.items() if found is None]:
        print(
            f"no record for torch {', '.join(missing)}; there is one for {', '.join(record.versions(folder))}",
            file=sys.stderr,
        )
        return 2
    changes = record.compare(records[old]["operations"], records[new]["operations"])
    changes += record.compare_views(records[old].get("views", {}), records[new].get("views", {}))
    for change in changes:
        print(change)
    return 1 if changes else 0


def _count(changes: list) -> str:
    return "no difference" if not changes else "1 difference" if len(changes) == 1 else f"{len(changes)} differences"


if __name__ == "__main__":
    sys.exit(main())
