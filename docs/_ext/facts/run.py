"""Put questions to torch in processes of their own, so that an answer may be a crash, a hang or a full memory.

``measure`` starts one process, the hub; the hub imports what probes need, computes nothing, and starts the workers.
Where the system can fork, a worker is a copy of the hub and takes a few targets; elsewhere a worker is a fresh process
and takes many. A worker tells which step it begins and what came out. When it dies or overruns in its first target, the
step it was in gets that as its answer, and another worker goes on with the step after it. In a later target an earlier one
may be to blame: another worker begins with that step.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from . import processes

Spec = tuple[str, ...]
Step = tuple[str, ...]
Work = list[tuple[Spec, int]]  # targets still to do, each with the number of steps already answered

BATCH = 8  # targets a forked worker takes: a copy of the hub pays anew for what torch touches first, 50 ms for a compilation

OPEN: Step = ("open",)  # the step that stands for making the samples


@dataclass(frozen=True)
class Limits:
    """What one step may take: seconds of wall time, and bytes of memory beyond what the process had before its target."""

    seconds: float = 60.0
    memory: int = 4 << 30


@dataclass(frozen=True)
class Failure:
    """The answer to a step that did not come back."""

    text: str


@dataclass(frozen=True)
class Answer:
    """What came out of one step."""

    spec: Spec
    step: Step
    value: Any
    cpu: float


class MeasuringFailed(RuntimeError):
    """The hub itself went away; the message says how."""


def measure(
    specs: list[Spec],
    limits: Limits = Limits(),
    workers: int | None = None,
    context: Any = None,
    opener: str = "_ext.facts.targets:open_target",
    preload: tuple[str, ...] = (),
    cost: list[float] | None = None,
) -> Iterator[Answer]:
    """Yield the answer to every step of every target, in any order of targets and in order of steps.

    ``opener`` names, as ``module:function``, what turns a spec into a target inside the worker; ``preload`` names more
    modules that the hub imports before it forks. To ``cost`` the CPU seconds of the hub and its workers are appended.
    Raises MeasuringFailed when the hub dies or reports an error of its own.
    """
    if not specs:
        return
    context = context or processes.context()
    here, there = context.Pipe()
    hub = context.Process(
        target=_hub, args=(there, specs, limits, workers or processes.cores(), opener, preload), name="facts"
    )
    hub.start()
    there.close()
    try:
        while True:
            message = here.recv()
            if isinstance(message, float):
                if cost is not None:
                    cost.append(message)
                break
            if isinstance(message, str):
                raise MeasuringFailed(message)
            yield message
    except EOFError:
        hub.join(5)
        raise MeasuringFailed(f"the measuring process ended early (exit code {hub.exitcode})") from None
    finally:
        # Closing our end is how a hub that is still at work learns that nobody listens.
        here.close()
        hub.join(10)
        if hub.is_alive():
            hub.kill()
            hub.join()


# -------------------------------------------------------------------------------------------- in the hub


@dataclass
class _Worker:
    process: Any
    connection: Connection
    work: Work
    spec: Spec
    step: Step = OPEN
    began: float = 0.0
    done: int = 0
    used: bool = False  # has finished a target


def _hub(
    parent: Connection, specs: list[Spec], limits: Limits, workers: int, opener: str, preload: tuple[str, ...]
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides; it closes its end
    running: dict[Connection, _Worker] = {}
    try:
        forks = processes.can_fork()
        if forks:
            processes.preload(preload)
            if processes.threads() > 1:
                raise RuntimeError("the measuring process has more than one thread before it forks")
        context = multiprocessing.get_context("fork" if forks else "spawn")
        queue = deque(_dealt(specs, max(workers, len(specs) // BATCH) if forks else workers))
        while queue or running:
            while queue and len(running) < workers:
                worker = _start(context, queue.popleft(), limits, opener)
                running[worker.connection] = worker
            ready = wait([parent, *running], timeout=0.2)
            if parent in ready:
                return  # it never writes: this is its end of file
            for worker in [running[connection] for connection in ready]:
                if not _listen(worker, parent):
                    del running[worker.connection]
                    queue.extendleft(_left_by(worker, parent, limits))
            for worker in [w for w in running.values() if time.monotonic() - w.began > limits.seconds]:
                worker.process.kill()
                del running[worker.connection]
                while worker.connection.poll() and _listen(worker, parent):
                    pass
                queue.extendleft(_left_by(worker, parent, limits, hung=True))
        parent.send(processes.cpu_seconds())
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody listens any more
    except BaseException as error:
        parent.send(f"{type(error).__name__}: {error}")
    finally:
        for worker in running.values():
            worker.process.kill()
            worker.process.join()


def _dealt(specs: list[Spec], workers: int) -> list[Work]:
    return [work for first in range(workers) if (work := [(spec, 0) for spec in specs[first::workers]])]


def _start(context: Any, work: Work, limits: Limits, opener: str) -> _Worker:
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(there, work, limits, opener), daemon=True)
    process.start()
    there.close()
    return _Worker(process, here, work, work[0][0], began=time.monotonic(), done=work[0][1])


def _listen(worker: _Worker, parent: Connection) -> bool:
    """Take one message of a worker; False when there will be no more."""
    try:
        kind, *rest = worker.connection.recv()
    except (EOFError, OSError):
        return False
    worker.began = time.monotonic()
    if kind == "begin":
        spec, worker.step, index = rest
        if spec != worker.spec:
            worker.spec, worker.done = spec, 0
        worker.done = index
    elif kind == "answer":
        worker.done += 1
        parent.send(rest[0])
        worker.step = ()
    elif kind == "finished":
        worker.work = [item for item in worker.work if item[0] != rest[0]]
        worker.step, worker.done, worker.used = OPEN, 0, True
        if worker.work:
            worker.spec, worker.done = worker.work[0]
    return True


def _left_by(worker: _Worker, parent: Connection, limits: Limits, hung: bool = False) -> list[Work]:
    """Join a worker that is no more, answer for the step it died in where that is to blame, and return what it leaves to do."""
    worker.process.join()
    worker.connection.close()
    if not worker.work:
        return []
    code = worker.process.exitcode
    if hung:
        text = f"does not end within {limits.seconds:g} s"
    elif code is not None and code < 0:
        text = f"kills the process ({signal.Signals(-code).name})"
    else:
        text = f"ends the process (exit code {code})"
    rest = worker.work[1:]
    # Between two steps there is nothing to blame. After another target the step is asked once more, in a worker that is
    # not used: heap that was damaged, a thread that was left running or a handler that was set can be an earlier target's.
    if worker.step == () or worker.used:
        return [[(worker.spec, worker.done), *rest]]
    parent.send(Answer(worker.spec, worker.step, Failure(text), 0.0))
    if worker.step == OPEN:
        return [rest] if rest else []
    return [[(worker.spec, worker.done + 1), *rest]]


# -------------------------------------------------------------------------------------------- in a worker


def _work(hub: Connection, work: Work, limits: Limits, opener: str) -> None:
    # What a crash prints belongs to no page, and a core file to no folder.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    open_target = _named(opener)
    for spec, done in work:
        _ask(hub, spec, done, limits, open_target)
    hub.close()
    os._exit(0)  # torch takes a while to tear down, and there is nothing to clean up


def _ask(hub: Connection, spec: Spec, done: int, limits: Limits, open_target: Callable[[Spec], Any]) -> None:
    """Ask one target; a function of its own, so that the target is gone before the next one's memory is limited."""
    processes.limit_memory(limits.memory)
    try:
        target = open_target(spec)
        steps = target.steps()
    except Exception as error:
        hub.send(("begin", spec, OPEN, 0))
        hub.send(("answer", Answer(spec, OPEN, Failure(f"{type(error).__name__}: {error}"), 0.0)))
        hub.send(("finished", spec))
        return
    for index, step in list(enumerate(steps))[done:]:
        hub.send(("begin", spec, step, index))
        started = time.process_time()
        processes.alarm(limits.seconds + 5)  # should the hub be gone, nothing may hang for ever
        value = _answer(target, step, limits)
        processes.alarm(0)
        hub.send(("answer", Answer(spec, step, value, time.process_time() - started)))
    hub.send(("finished", spec))


def _answer(target: Any, step: Step, limits: Limits) -> Any:
    try:
        value = target.answer(step)
    except MemoryError:
        value = "MemoryError"
    except Exception as error:
        return Failure(f"not measured: {type(error).__name__}: {error}")
    if _out_of_memory(value):
        return Failure(f"needs more than {limits.memory / 2**30:g} GiB of memory")
    return value


def _out_of_memory(value: Any) -> bool:
    """Whether an answer tells that memory ran out; torch says it in a RuntimeError."""
    if isinstance(value, dict):
        return any(map(_out_of_memory, value.values()))
    return isinstance(value, str) and any(
        text in value for text in ("MemoryError", "can't allocate memory", "not enough memory", "bad_alloc")
    )


def _named(text: str) -> Callable[[Spec], Any]:
    import importlib

    module, _, function = text.partition(":")
    return getattr(importlib.import_module(module), function)
