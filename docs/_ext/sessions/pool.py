"""Run pages side by side, each in a process of its own, in bounded time, and end whatever they leave running."""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait

from _ext.sessions import run, server

GRACE = 5  # seconds beyond an item's limit until its process is ended from outside


@dataclass
class Page:
    """A page to run: its name, its items, and afterwards their results and failures."""

    name: str
    path: str  # as a reader would type it
    items: list
    results: dict = field(default_factory=dict)
    failures: list = field(default_factory=list)  # run.Failure; its line is in `path`, or in the item's loaded file
    seconds: float = 0.0

    def fail(self, index, failure):
        """Keep a failure with the file that its line is in."""
        loaded = self.items[index].loaded if self.items else None
        self.failures.append((os.path.relpath(loaded) if loaded else self.path, failure))


class _Running:
    """A page's process, seen from outside."""

    def __init__(self, page, limits):
        self.page, self.limits = page, limits
        self.folder = self.connection = self.process = None
        self.index, self.ended, self.late, self.began = 0, False, False, time.monotonic()

    def start(self, private):
        """Start the process. Raises OSError or EOFError where there is none to be had; `stop` is right at any moment."""
        self.folder = tempfile.mkdtemp(prefix="page-")  # made and removed here: a page may be killed
        context = server.context()
        self.connection, there = context.Pipe(duplex=False)
        target = (there, self.page.items, self.limits, private, self.folder)
        self.process = context.Process(target=run.run_page, args=target, name=self.page.name)
        try:
            self.process.start()
        finally:
            there.close()
        # Until it says that it has begun, a process may still be importing torch.
        self.deadline = time.monotonic() + 120 + self.limits.seconds

    def step(self):
        """Take what the page has sent; True when it is over, and to be finished."""
        over = self.process.exitcode is not None  # asked before the last look at the pipe
        self.late = time.monotonic() > self.deadline
        try:
            while self.connection.poll():
                self._take(*self.connection.recv())
        except (EOFError, OSError):
            over = True
            self.process.join(1)  # for its own exit code, before it is ended
        return over or self.late or self.ended

    def finish(self):
        """End what is left of it, and say why if it did not come to its end."""
        self.page.seconds = time.monotonic() - self.began
        self.stop()
        if not self.ended:
            self.page.fail(self.index, run.Failure(self.page.items[self.index].line, self._why()))

    def _take(self, kind, *what):
        if kind == "start":
            self.index = what[0]
            self.deadline = time.monotonic() + self.limits.seconds + GRACE
        elif kind == "result":
            result = what[0]
            self.page.results[result.index] = result
            for failure in result.failures:
                self.page.fail(result.index, failure)
        elif kind == "outputs":
            self.page.results[what[0]].outputs = what[1]
        else:
            self.ended = True

    def _why(self):
        code = self.process.exitcode
        if self.late:
            return f"no end within {self.limits.seconds:g} s, and it did not stop when asked"
        if code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return f"its process was killed ({name}{', out of memory?' if name == 'SIGKILL' else ''})"
        return f"its process ended (exit {code})"

    def stop(self):
        """End the process, if it was started, and all that it started."""
        if self.process is not None and self.process.pid is not None:
            if self.ended:
                self.process.join(1)
            run.end_children(self.process.pid)
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            if self.process.exitcode is None:
                self.process.kill()
            self.process.join()
        if self.connection is not None:
            self.connection.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def _held_back():
    """Let interrupts wait for the end of the block; give the list of those that came.

    One that is raised at any moment is lost where Python passes over exceptions, and one that comes twice leaves folders behind.
    """
    came = []
    if threading.current_thread() is not threading.main_thread():
        yield came  # signals go to the main thread
        return
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def run_pages(pages, limits, jobs=None, private=(), watch=None):
    """Run `pages`, `jobs` at a time (the number of cores if not given); each keeps its results and failures.

    With one job a page begins when nothing of the last one runs any more; else while the last one is taken apart.
    `watch` is called with (done, running) lists of pages after each change.
    Whatever ends this function, no page's process outlives it.
    """
    jobs = jobs or os.cpu_count() or 1
    # Whole programs first, which take longest: at the end no core waits for a page that another one began late.
    todo = sorted((page for page in reversed(pages) if page.items), key=lambda page: any(item.loaded for item in page.items))
    running, over, done = [], [], []
    with _held_back() as interrupts:
        try:
            while (todo or running or over) and not interrupts:
                while todo and len(running) < jobs and not (jobs == 1 and over):
                    for stream in filter(None, (sys.stdout, sys.stderr)):
                        stream.flush()  # as each start does: a pipe that nobody reads is no page's fault
                    page = todo.pop()
                    one = _Running(page, limits)
                    running.append(one)
                    try:
                        one.start(private)
                    except (OSError, EOFError) as error:
                        running.remove(one)
                        one.stop()
                        page.fail(0, run.Failure(page.items[0].line, f"no process for this page: {error}"))
                        done.append(page)
                for one in over:  # now that the next ones run: taking a process apart takes a while
                    one.finish()
                    done.append(one.page)
                if watch:
                    watch(done, [one.page for one in running])
                if running:
                    wait([one.connection for one in running] + [one.process.sentinel for one in running], timeout=0.2)
                over = [one for one in running if one.step()]
                running = [one for one in running if one not in over]
        finally:
            for one in [*running, *over]:
                one.stop()
