"""Time a whole command with all that it starts: wall seconds, CPU seconds, peak memory."""

import ctypes
import os
import resource
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # Linux: prctl(2)


@dataclass
class Figures:
    """`wall` and `cpu` in seconds; `memory` in MB, the highest sum of the processes' shares (PSS), 0 if not asked for."""

    wall: float
    cpu: float
    status: int
    memory: float = 0.0
    largest: float = 0.0  # MB of the largest child process alone
    printed: str = ""


_alone = []  # not empty: every child of this process belongs to a measurement


def adopt_orphans():
    """Make the CPU time of processes that outlive their parents count here; for a process that only measures."""
    _alone.append(True)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def timed(command, folder, environment, memory=False):
    """Run a command to its end; the clock stops when it ends, the CPU count when all that it started has ended."""
    _reap()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    watch = _Memory(process.pid) if memory else None
    printed = process.stdout.read() if not memory else ""
    status = process.wait()
    wall = time.perf_counter() - began
    if watch:
        watch.stop()
    _reap()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Figures(wall, cpu, status, watch.peak if watch else 0.0, watch.largest if watch else 0.0, printed)


def _reap():
    """Wait for every process that was left to this one, where it has no other children."""
    with suppress(ChildProcessError):
        while _alone:
            os.waitpid(-1, 0)


class _Memory:
    """Look at a process and all its children ten times a second."""

    def __init__(self, pid):
        self.pid, self.peak, self.largest, self.over = pid, 0.0, 0.0, False
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def stop(self):
        self.over = True
        self.thread.join()

    def _watch(self):
        while not self.over:
            shares = {pid: _share(pid) for pid in _family(self.pid)}
            self.peak = max(self.peak, sum(shares.values()))
            self.largest = max([self.largest, *(size for pid, size in shares.items() if pid != self.pid)])
            time.sleep(0.1)


def _family(root):
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    family = {root}
    while new := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= new
    return family


def _share(pid):
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1000
    return 0.0
