"""The record of all of torch: measured by ``make facts-all``, committed, and published as it is."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from . import cache, processes, record
from .gather import first_fact
from .run import OPEN, Answer, Failure, Limits, measure

PREFIX = "all-"
DATABASE = "torch.testing._internal.common_methods_invocations"


def path_of(folder: Path, version: str) -> Path:
    """Return where the record of all of torch lies for a version."""
    return folder / f"{PREFIX}{record.plain_version(version)}.json"


def latest(folder: Path, version: str | None = None) -> dict[str, Any] | None:
    """Return the record of ``version``, else the newest one, else None."""
    known = record.versions(folder, PREFIX)
    if not known:
        return None
    return record.load(path_of(folder, version if version in known else known[-1]))


CHECKS = ("finite_differences", "double_backward", "forward_mode")


def reasons(folder: Path) -> dict[str, dict[str, str]]:
    """Return operation -> ``{"cause": "torch" | "sample" | "probe", "reason": ...}`` for known disagreements."""
    path = folder / "disagreements.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def disagreements(entries: dict[str, record.Entry]) -> list[str]:
    """Return the operations one of whose derivatives does not agree with finite differences."""
    return sorted(
        name
        for name, entry in entries.items()
        if any("disagrees" in str(entry["facts"].get(check)) for check in CHECKS)
    )


def unexplained(entries: dict[str, record.Entry], known: dict[str, dict[str, str]]) -> list[str]:
    """Return the disagreements of which no reason is recorded: these are not published."""
    return [name for name in disagreements(entries) if name not in known]


def refresh(folder: Path, names: list[str]) -> int:
    """Measure everything (or ``names``) on the installed torch, write the record, tell what changed. Return an exit code."""
    version = cache.installed_version()
    known = _names()
    if isinstance(known, str):
        print(f"{known}\nThe record is left as it is.", file=sys.stderr)
        return 3
    if unknown := sorted(set(names) - set(known)):
        print(f"not in torch's sample database: {', '.join(unknown)}", file=sys.stderr)
        return 2
    wanted = names or known
    started = time.monotonic()
    answers: dict[str, list[Answer]] = {name: [] for name in wanted}
    finished: set[str] = set()
    cpu: dict[str, float] = {}
    of_operation: dict[str, float] = {}
    cost: list[float] = []
    for answer in measure(
        [("opinfo", name) for name in wanted],
        limits=Limits(seconds=180),
        opener="_ext.facts.opinfo:open_target",
        preload=(DATABASE,),
        cost=cost,
    ):
        name = answer.spec[1]
        answers[name].append(answer)
        cpu[answer.step[-1]] = cpu.get(answer.step[-1], 0.0) + answer.cpu
        of_operation[name] = of_operation.get(name, 0.0) + answer.cpu
        if answer.step[-1] == "dtypes_backward":
            finished.add(name)
            if len(finished) % 50 == 0:
                print(f"{len(finished)} of {len(wanted)} operations, {time.monotonic() - started:.0f} s", flush=True)
    if closed := [answer for found in answers.values() for answer in found if answer.step == OPEN]:
        print(
            f"{len(closed)} could not be opened, the first: {closed[0].spec[1]}: {_text(closed[0])}\nThe record is left as it is.",
            file=sys.stderr,
        )
        return 3
    entries = {name: entry(answers[name]) for name in wanted}
    path = path_of(folder, version)
    old = record.load(path) or {"operations": {}}
    changes = record.compare(old["operations"], entries, partial=bool(names)) if old["operations"] else []
    for change in changes:
        print(change)
    record.save(path, {"torch": version, "operations": {**old["operations"], **entries} if names else entries})
    print(
        f"{len(entries)} operations on torch {version}: {time.monotonic() - started:.0f} s, {sum(cost):.0f} s of CPU, "
        f"{len(changes)} differences against {path.name}\n"
        f"seconds by probe: {_most(cpu)}\nseconds by operation: {_most(of_operation)}"
    )
    if missing := unexplained(record.load(path)["operations"], reasons(folder)):
        print(
            f"find out why these disagree with finite differences and record it in disagreements.json: {', '.join(missing)}"
        )
    return 0


def _most(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {spent:.0f}" for name, spent in sorted(seconds.items(), key=lambda item: -item[1])[:8])


def _names() -> list[str] | str:
    """Return the names in the database, or why there is none. In a process of its own: the import takes its time and memory."""
    context = processes.context()
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send_names, args=(there,))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return "torch's sample database cannot be imported: the process that tried ended early"
    finally:
        process.join()


def _send_names(pipe: Any) -> None:
    from .opinfo import Unavailable, database

    try:
        pipe.send(sorted(database()))
    except Unavailable as error:
        pipe.send(str(error))


def entry(answers: list[Answer]) -> record.Entry:
    """Return the entry of one operation."""
    about: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    for answer in answers:
        if answer.step == ("about",):
            about = answer.value if isinstance(answer.value, dict) else {"path": None, "dtype": None, "samples": 0}
        elif isinstance(answer.value, dict):
            facts |= answer.value
        else:
            facts[first_fact(answer.step[1])] = _text(answer)
    return {**about, "facts": record.without_usual(facts)}


def _text(answer: Answer) -> str:
    return answer.value.text if isinstance(answer.value, Failure) else str(answer.value)
