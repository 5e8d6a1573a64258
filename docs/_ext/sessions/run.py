"""The process of one page: run its items in order, send a result for each, stop at the first failure of a cell."""

import builtins
import ctypes
import doctest
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field

from _ext.sessions import shell as shells
from _ext.sessions.source import CELL, PICTURES, PROMISE

try:
    import resource
except ImportError:  # Windows
    resource = None

ADDRESS = re.compile(r"0x[0-9a-fA-F]{8,}")
STACK = re.compile(r"^(Traceback \(most recent call last\):\n)(?: .*\n)+", re.M)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # Linux: prctl(2)


@dataclass(frozen=True)
class Limits:
    """What a page may use: seconds an item, bytes of output a page, bytes of memory beyond the start, bytes a file."""

    seconds: float = 60
    output: int = 1_000_000
    memory: int = 4 * 2**30
    file: int = 256 * 2**20


@dataclass(frozen=True)
class Failure:
    """Why an item failed: `line` as the reader counts, one line of `reason`, more in `detail`."""

    line: int
    reason: str
    detail: str = ""


@dataclass
class Result:
    """What an item gave. `outputs` are notebook outputs, `picture` what the pictures room drew."""

    index: int
    outputs: list = field(default_factory=list)
    count: int | None = None
    picture: object = None
    failures: list = field(default_factory=list)
    seconds: float = 0.0
    promises: int = 0


class OutOfTime(BaseException):
    """An item ran past its time; not an Exception, so that a page's own handlers let it pass."""


def prepare():
    """Import what draws pictures, before a picture's time is taken."""
    with suppress(ImportError):
        import _ext.pictures.graph
        import _ext.pictures.layout  # noqa: F401


def run_page(connection, items, limits, private, folder):
    """Run `items` and send a Result for each; then leave without Python's slow way out.

    `private` are texts that must not be printed: paths of this machine.
    `folder` is the page's own, empty, and removed by who started this process.
    """
    session = Session(limits, private, folder)
    here = os.getpid()
    if any(item.kind in PICTURES for item in items):
        prepare()
    for index, item in enumerate(items):
        connection.send(("start", index))
        result = session.run(index, item)
        if os.getpid() != here:
            os._exit(0)  # a fork that the page left running: this page has one voice
        connection.send(("result", result))
        for earlier, outputs in session.changed():
            connection.send(("outputs", earlier, outputs))
        if result.failures and item.kind == CELL:
            break  # what follows builds on this cell
    end_children(here)
    connection.send(("end",))
    connection.close()
    os._exit(0)


class Session:
    """One page's namespace, shell and captured outputs."""

    def __init__(self, limits, private, folder):
        self.limits = limits
        if hasattr(os, "setsid"):
            os.setsid()  # a group of its own: what the page starts can be ended with it
        _die_with_the_server()
        # In a forked page the default is the fork server; a page's own code expects the platform's.
        multiprocessing.set_start_method(None, force=True)
        here, temporary = os.path.join(folder, "page"), os.path.join(folder, "tmp")
        os.mkdir(here)
        os.mkdir(temporary)
        os.chdir(here)
        # What the page leaves in the folder for temporary files goes with the page.
        tempfile.tempdir = os.environ["TMPDIR"] = temporary
        self.private = [*private, os.path.realpath(folder)]
        self.outputs = shells.Outputs(limits.output)
        self.shell = shells.warm()
        self.shell.outputs = self.outputs
        self.shell.user_ns["__name__"] = "__main__"
        shells.plain_warnings()
        self.low = {name: tempfile.TemporaryFile() for name in ("stdout", "stderr")}  # what is written below Python
        self.streams = {name: shells.Stream(self.outputs, name, fd) for fd, name in ((1, "stdout"), (2, "stderr"))}
        for name, stream in self.streams.items():
            os.dup2(self.low[name].fileno(), stream.fd)
            setattr(sys, name, stream)
        self.done = []
        if hasattr(signal, "SIGALRM"):
            signal.signal(signal.SIGALRM, self._out_of_time)
        _bound_memory(limits)

    def run(self, index, item):
        """Run one item; its Result holds every failure, none is raised."""
        result = Result(index)
        result.outputs = self.outputs.start()
        began = time.perf_counter()
        step = {CELL: self._cell, PROMISE: self._promise}.get(item.kind, self._picture)
        if hasattr(signal, "SIGALRM"):
            # Again each second: a page that swallows the first is told again.
            signal.setitimer(signal.ITIMER_REAL, self.limits.seconds, 1)
        try:
            step(item, result)
        except (OutOfTime, shells.TooMuchOutput) as error:
            result.failures.append(Failure(item.line, str(error)))
        except BaseException as error:  # noqa: BLE001 - the room's own code failed: say so, with its place
            result.failures.append(Failure(item.line, _one_line(error), traceback.format_exc()))
        finally:
            if hasattr(signal, "SIGALRM"):
                signal.setitimer(signal.ITIMER_REAL, 0)
        result.seconds = time.perf_counter() - began
        self._drain(item, result)
        if not result.failures:
            self._check(item, result)
        self.done.append(result)
        return result

    def changed(self):
        """Give (index, outputs) of earlier items whose displays this one updated."""
        if not self.outputs.updated:
            return []
        self.outputs.updated = False
        return [(result.index, result.outputs) for result in self.done[:-1]]

    def _cell(self, item, result):
        result.count = self.shell.execution_count
        ran = self.shell.run_cell(item.source, store_history=True)
        error = ran.error_before_exec or ran.error_in_exec
        expected = "raises-exception" in item.tags and not isinstance(error, SystemExit)
        code = item.source.lstrip("\n")  # IPython runs a cell without its empty first lines
        line = item.line + len(item.source) - len(code) - 1 + (_line_in(error, f"<ipython-input-{result.count}-") if error else 1)
        if isinstance(error, (OutOfTime, shells.TooMuchOutput)):
            result.failures.append(Failure(line, str(error)))
        elif error is not None and not expected:
            result.failures.append(Failure(line, f"cell failed: {_one_line(error)}"))
        elif expected and error is None:
            result.failures.append(Failure(item.line, "cell is tagged raises-exception and raised nothing"))

    def _promise(self, item, result):
        try:
            test = doctest.DocTestParser().get_doctest(item.source, self.shell.user_ns, "page", None, 0)
        except ValueError as error:
            result.failures.append(Failure(item.line, f"promise cannot be read: {error}"))
            return
        if not test.examples:
            result.failures.append(Failure(item.line, "promise holds no example"))
            return
        result.failures += _unkept(item, test.examples)
        test.globs = self.shell.user_ns  # the page's own namespace, not a copy
        runner = _Runner(item, result)
        test.examples = [example for example in test.examples if not example.options.get(doctest.SKIP)]
        underscore = getattr(builtins, "_", None)
        hook, stdout = sys.displayhook, sys.stdout
        try:
            runner.run(test, out=lambda text: None, clear_globs=False)
        except KeyboardInterrupt as error:  # the one exception that doctest lets through
            runner.report_unexpected_exception(None, test, runner.example, (type(error), error, error.__traceback__))
        else:
            if runner.began < len(test.examples) and not result.failures:
                result.failures.append(Failure(item.line, f"{runner.began} of {len(test.examples)} examples of this promise ran"))
        finally:
            sys.displayhook, sys.stdout = hook, stdout
            if underscore is None and hasattr(builtins, "_"):
                del builtins._  # left by Python's own display hook; IPython's stands aside where it finds one
        result.promises = len(test.examples)

    def _picture(self, item, result):
        from _ext.pictures.graph import draw_graph
        from _ext.pictures.layout import draw_layout

        title = item.title or None
        try:
            if item.kind == PICTURES[0]:
                result.picture = draw_graph(item.source, title, item.alt)
            else:
                lines = [line for line in item.source.splitlines() if line.strip()]
                result.picture = draw_layout(lines, dict(self.shell.user_ns), title, item.alt)
        except Exception as error:  # noqa: BLE001 - any error of the page's code
            line = item.line - 1 + _line_in(error, f"<{item.kind}")
            result.failures.append(Failure(line, f"picture failed: {_one_line(error)}"))

    def _drain(self, item, result):
        """Add what C code and child processes wrote, after what Python wrote."""
        with suppress(Exception):
            ctypes.CDLL(None).fflush(None)
        for name, file in self.low.items():
            size = os.fstat(file.fileno()).st_size
            if not size:
                os.lseek(file.fileno(), 0, os.SEEK_SET)  # who empties it (`> /dev/stdout`) leaves the next write behind its end
                continue
            file.seek(0)
            try:
                self.outputs.stream(name, file.read(min(size, self.limits.output + 1)).decode(errors="replace"))
            except shells.TooMuchOutput as error:
                if not result.failures:
                    result.failures.append(Failure(item.line, str(error)))
            file.seek(0)
            file.truncate()

    def _check(self, item, result):
        """Refuse what would differ on another machine or on another day, and what a page does not announce."""
        texts = []
        for name, stream in self.streams.items():
            if getattr(sys, name) is not stream:
                setattr(sys, name, stream)
                result.failures.append(Failure(item.line, f"leaves sys.{name} replaced: what follows would print nothing"))
        if self.outputs.used > self.limits.output:  # told to a thread of the page, or swallowed by the page
            result.failures.append(Failure(item.line, f"the page has more than {self.limits.output:,} bytes of output"))
        for output in result.outputs:
            if output["output_type"] == "error" and "raises-exception" not in item.tags:
                result.failures.append(Failure(item.line, f"cell shows an error: {output['ename']}: {output['evalue']}"))
            if item.kind == PROMISE and output.get("name") != "stderr":
                shown = output.get("text") or ", ".join(sorted(output.get("data", ())))
                result.failures.append(Failure(item.line, f"promise shows what the page does not: {' '.join(shown.split())[:300]}"))
            if output.get("name") == "stderr" and "stderr" not in item.tags:
                line = output["text"].strip().splitlines()[-1:] or [""]
                result.failures.append(Failure(item.line, f"wrote to stderr: {line[0]}", output["text"]))
            texts.append(output.get("text", ""))
            texts.append(output.get("evalue", ""))
            texts += [value for kind, value in output.get("data", {}).items() if kind.startswith("text/") and isinstance(value, str)]
        text = "\n".join(texts)
        if address := ADDRESS.search(text):
            result.failures.append(Failure(item.line, f"prints a memory address ({address[0]}), which differs at each build"))
        for path in self.private:
            if path in text:
                result.failures.append(Failure(item.line, f"prints a path of this machine ({path})"))

    def _out_of_time(self, signum, frame):
        raise OutOfTime(f"no end within {self.limits.seconds:g} s")


class _Runner(doctest.DocTestRunner):
    """Keep each failed example as a Failure, with its own line and with what was expected and got."""

    def __init__(self, item, result):
        super().__init__(verbose=False, optionflags=doctest.DONT_ACCEPT_TRUE_FOR_1)
        self.item, self.result = item, result
        self.example = None  # the one that runs
        self.began = 0

    def report_start(self, out, test, example):
        self.example = example
        self.began += 1

    def report_success(self, out, test, example, got):
        if example.exc_msg is not None and not got.startswith(("Traceback", example.want)):  # doctest does not compare it
            self._fail(example, "promise prints more than the error it shows", f"Got:\n    {got.partition('Traceback')[0]}")

    def report_failure(self, out, test, example, got):
        got = STACK.sub(r"\1    ...\n", got)  # the calls in between are this machine's files
        difference = self._checker.output_difference(example, got, self.optionflags)
        self._fail(example, "promise failed", difference)

    def report_unexpected_exception(self, out, test, example, exc_info):
        error = exc_info[1]
        if isinstance(error, (OutOfTime, shells.TooMuchOutput)):
            raise error
        self._fail(example, f"promise raised {_one_line(error)}", "")

    def _fail(self, example, reason, difference):
        code = "".join(f"{'>>>' if at == 0 else '...'} {line}\n" for at, line in enumerate(example.source.splitlines()))
        self.result.failures.append(Failure(self.item.line + example.lineno, reason, code + difference))


OPTIONS = {doctest.ELLIPSIS, doctest.NORMALIZE_WHITESPACE, doctest.DONT_ACCEPT_BLANKLINE}  # those that leave a promise true


def _unkept(item, examples):
    """Give a Failure for each line of a promise that doctest would pass over, and for each option that weakens it."""
    names = {flag: name for name, flag in doctest.OPTIONFLAGS_BY_NAME.items()}
    checked = set()
    for example in examples:
        last = example.lineno + example.source.count("\n") + example.want.count("\n")
        checked.update(range(example.lineno, last))
        for flag in set(example.options) - OPTIONS:
            yield Failure(item.line + example.lineno, f"promise does not hold with the doctest option {names[flag]}")
    for at, line in enumerate(item.source.splitlines()):
        if at not in checked and line.strip() and not re.match(r"\s*(>>>|\.\.\.)\s*(#|$)", line):
            yield Failure(item.line + at, f"promise holds a line that is never checked: {line.strip()[:100]}")


def _one_line(error):
    """Name an exception in one line, as the reader sees it."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text[:300]}{'…' if len(text) > 300 else ''}" if text else name


def _line_in(error, name):
    """Where in the code whose file name starts with `name` the error came up, from 1; 1 if nowhere."""
    line, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename.startswith(name):
            line = at.tb_lineno
        at = at.tb_next
    if line is None and isinstance(error, SyntaxError):  # the code itself; if some line ran it, that line is the place
        line = error.lineno
    return line or 1


def _die_with_the_server():
    """End this page when the build ends, however it ends: the warm process ends with the build, and this one with it."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a child leaves running becomes this page's child
    # Each child of a fork server gets a descriptor that keeps the server alive. A page must not hold it.
    with suppress(AttributeError, OSError, TypeError):
        from multiprocessing.forkserver import _forkserver as inherited

        os.close(inherited._forkserver_alive_fd)
        inherited._forkserver_alive_fd = inherited._forkserver_address = None


def end_children(pid):
    """End all that the process `pid` started, in whatever group or session it now is (Linux)."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in open(f"/proc/{pid}/task/{thread}/children").read().split():
                end_children(child)
                os.kill(int(child), signal.SIGKILL)


def _bound_memory(limits):
    """Make a page that asks for too much memory fail by an exception, in its own cell."""
    if resource is None or sys.platform != "linux":
        return
    pages = int(open("/proc/self/statm").read().split()[0])
    bound = pages * resource.getpagesize() + limits.memory
    for kind, size in ((resource.RLIMIT_AS, bound), (resource.RLIMIT_FSIZE, limits.file), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        size = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(kind, (size, size))
