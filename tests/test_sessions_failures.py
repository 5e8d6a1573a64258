"""Whatever goes wrong on a page ends with page, line and reason, in bounded time, and the other pages' reports are complete."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import tiny

LIMIT = 3  # seconds a cell


def cell(*lines, tags=""):
    head = "```{code-cell}\n" + (f":tags: [{tags}]\n" if tags else "")
    return head + "\n".join(lines) + "\n```\n"


def promise(*lines):
    return "```{doctest}\n" + "\n".join(lines) + "\n```\n"


# Page -> (text below the title on line 9, line of the failure, words of the reason).
FAULTS = {
    "raises": (cell("a = 1", "a / 0"), 13, "cell failed: ZeroDivisionError: division by zero"),
    "raises_in_a_function": (cell("def f():", "    raise KeyError('k')", "", "f()"), 13, "cell failed: KeyError: 'k'"),
    "promise": (promise(">>> 1 + 1", "2", ">>> 1 + 2", "4"), 14, "promise failed"),
    "promise_raises": (promise(">>> 1 + 1", "2", ">>> {}['k']", "4"), 14, "promise raised KeyError: 'k'"),
    "promise_of_another_error": (
        promise(">>> 1 / 0", "Traceback (most recent call last):", "    ...", "ZeroDivisionError: by zero"),
        12,
        "promise failed|promise raised ZeroDivisionError: division by zero",
    ),
    "promise_of_nothing": (promise("nothing"), 12, "promise holds no example"),
    "promise_unreadable": (promise(">>>1"), 12, "promise cannot be read"),
    "announced": (cell("1 + 1", tags="raises-exception"), 13, "tagged raises-exception and raised nothing"),
    "stderr": (cell("import sys", "print('oh', file=sys.stderr)"), 12, "wrote to stderr: oh"),
    "warns": (cell("import warnings", "warnings.warn('old')"), 12, "wrote to stderr: UserWarning: old"),
    "stderr_below_python": (cell("import subprocess", "_ = subprocess.run('echo low >&2', shell=True)"), 12, "wrote to stderr: low"),
    "exits": (cell("import sys", "sys.exit(3)"), 13, "cell failed: SystemExit: 3"),
    "exits_when_announced": (cell("raise SystemExit", tags="raises-exception"), 13, "cell failed: SystemExit"),
    "syntax": (cell("a = 1", "b = ="), 13, "cell failed: SyntaxError"),
    "signal": (cell("import os, signal", "os.kill(os.getpid(), signal.SIGSEGV)"), 12, "its process was killed (SIGSEGV)"),
    "leaves": (cell("1") + "\n" + cell("import os", "os._exit(4)"), 16, "its process ended (exit 4)"),
    "memory": (cell("import numpy", "a = numpy.ones(2**33)"), 13, "cell failed: MemoryError: Unable to allocate"),
    "endless": (cell("while True:", "    pass"), (12, 13), f"no end within {LIMIT} s"),
    "sleeping": (cell("import time", "time.sleep(1000)"), 13, f"no end within {LIMIT} s"),
    "endless_promise": (promise(">>> import time", ">>> time.sleep(1000)"), 12, f"no end within {LIMIT} s"),
    "stubborn": (
        cell("import signal", "signal.signal(signal.SIGALRM, signal.SIG_IGN)", "while True: pass"),
        12,
        f"no end within {LIMIT} s, and it did not stop when asked",
    ),
    "swallows": (cell("while True:", "    try:", "        while True: pass", "    except BaseException: pass"), range(12, 16), f"no end within {LIMIT} s"),
    "output": (cell("for _ in range(1000):", "    print('x' * 100_000)"), 13, "more than 1,000,000 bytes of output"),
    "output_below_python": (
        cell("import subprocess", "_ = subprocess.run('yes | head -c 100000000', shell=True)"),
        12,
        "more than 1,000,000 bytes of output",
    ),
    "address": (cell("object()"), 12, "prints a memory address"),
    "folder": (cell("import os", "os.getcwd()"), 12, "prints a path of this machine"),
    "no_end": ("```{code-cell}\n1\n", 11, "this fence has no end"),
    "no_file": ("```{code-cell}\n:load: ../missing.py\n```\n", 11, "cannot load ../missing.py: No such file or directory"),
    "bad_options": ("```{code-cell}\n---\n[tags\n---\n1\n```\n", 11, "options cannot be read"),
    "picture": ("```{autograd-graph} A\nimport torch\ntorch.nothing\n```\n", 13, "picture failed: AttributeError"),
}
LOADED = ("```{code-cell}\n:load: ../faulty.py\n```\n", 2, "cell failed: ZeroDivisionError")
GOOD = cell("2 + 2") + "\n" + promise(">>> 3 + 3", "6")


def page(text):
    return tiny.notebook("# A page\n\n" + text)


@pytest.fixture(scope="module", params=["forkserver", "spawn"])
def report(request, tmp_path_factory):
    """Build one site with every fault on a page of its own."""
    if request.param == "forkserver" and sys.platform != "linux":
        pytest.skip("pages are forked on Linux only")
    folder = tmp_path_factory.mktemp(f"faults-{request.param}")
    pages = {f"{name}.md": page(text) for name, (text, line, reason) in FAULTS.items()}
    pages |= {"loaded.md": page(LOADED[0]), "good.md": page(GOOD)}
    (folder / "faulty.py").write_text("a = 1\na / 0\n")
    status, printed, site = tiny.make_site(
        folder, pages, conf=f"sessions_timeout = {LIMIT}\nsessions_log = True", options=["-W"],
        environment={"SESSIONS_START_METHOD": request.param, "HOME": "/nonexistent"},
    )
    return status, printed, site


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported_with_page_line_and_reason(report, name):
    text, line, reason = FAULTS[name]
    lines = [at for at in report[1].splitlines() if f"docs/{name}.md:" in at]
    assert lines, report[1]
    numbers = [line] if isinstance(line, int) else line
    assert any(f"docs/{name}.md:{number}:" in lines[0] for number in numbers), lines
    assert any(words in lines[0] for words in reason.split("|")), lines
    assert len(lines) == 1, lines


def test_a_fault_in_a_loaded_program_names_the_program(report):
    assert f"faulty.py:{LOADED[1]}: ERROR: {LOADED[2]}" in report[1]


def test_the_build_fails_says_how_many_and_publishes_nothing(report):
    status, printed, site = report
    assert status == 2
    assert f"{len(FAULTS) + 1} of {len(FAULTS) + 3} pages failed; nothing was written" in printed
    assert not site.exists()


def test_the_other_pages_reports_are_complete(report):
    assert "page good: ok" in report[1]
    assert "docs/good.md" not in report[1]


def test_no_file_of_this_machine_is_shown(report):
    assert 'File "' not in report[1]
    assert "_ext/sessions" not in report[1]


def test_a_failed_promise_shows_what_was_expected_and_got(report):
    at = report[1].index("docs/promise.md:14:")
    assert ">>> 1 + 2\n    Expected:\n        4\n    Got:\n        3\n" in report[1][at : at + 300]


def test_no_process_of_a_page_is_left(tmp_path):
    mark = tmp_path / "pid"
    text = cell("import subprocess", "child = subprocess.Popen(['sleep', '1000'])", f"_ = open({str(mark)!r}, 'w').write(str(child.pid))")
    status, printed, site = tiny.make_site(tmp_path, {"a.md": page(text)})
    assert status == 0, printed
    assert not _alive(int(mark.read_text()))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_nothing_running_and_the_site_as_it_was(tmp_path, how):
    assert tiny.make_site(tmp_path, {"a.md": page(GOOD)})[0] == 0
    site = tmp_path / "build/html"
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    mark = tmp_path / "pid"
    text = cell("import os, time", f"_ = open({str(mark)!r}, 'w').write(str(os.getpid()))", "time.sleep(1000)")
    tiny.write_site(tmp_path, {"a.md": page(GOOD), "b.md": page(text)})
    build = subprocess.Popen(tiny.command(), cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    pid = int(_wait_for(lambda: mark.exists() and mark.read_text()))
    build.send_signal(how)
    printed, _ = build.communicate(timeout=60)
    if how == signal.SIGKILL:
        assert build.returncode == -how
    else:
        assert (build.returncode, printed) == (130, "interrupted; the site is as it was\n")
    assert _wait_for(lambda: not _alive(pid)), "the page's process outlived the build"
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="the warm process is found through /proc")
@pytest.mark.parametrize("later", [0, 0.1, 0.4])
def test_an_interrupt_while_torch_is_imported_is_one_line(tmp_path, later):
    tiny.write_site(tmp_path, {"a.md": page(GOOD)})
    build = subprocess.Popen(tiny.command(), cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    children = Path(f"/proc/{build.pid}/task/{build.pid}/children")
    _wait_for(lambda: any(b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children.read_text().split()))
    time.sleep(later)
    os.killpg(build.pid, signal.SIGINT)  # as a terminal does
    printed, _ = build.communicate(timeout=60)
    assert (build.returncode, printed) == (130, "interrupted; the site is as it was\n")


def test_a_second_build_in_the_same_folder_says_so(tmp_path):
    mark = tmp_path / "mark"
    text = cell("import time", f"_ = open({str(mark)!r}, 'w').write('1')", "time.sleep(6)")
    tiny.write_site(tmp_path, {"a.md": page(text)})
    first = subprocess.Popen(tiny.command(), cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")})
    _wait_for(mark.exists)
    status, printed, site = tiny.make_site(tmp_path, {"a.md": page(text)})
    assert (status, printed.strip()) == (3, "another build is at work in build; wait for it to end")
    assert first.wait(60) == 0
    assert (site / "a.html").exists()


def test_an_interrupt_while_a_process_starts_ends_that_process(monkeypatch):
    from _ext.sessions import pool, run, server, source

    kind, started = server.context().Process, []
    start = kind.start

    def interrupted(process):
        start(process)
        started.append(process)
        raise KeyboardInterrupt

    monkeypatch.setattr(kind, "start", interrupted)
    page = pool.Page("a", "a.md", [source.Item("code-cell", 3, "import time; time.sleep(1000)")])
    with pytest.raises(KeyboardInterrupt):
        pool.run_pages([page], run.Limits())
    assert started[0].exitcode is not None, "Python would wait for it at its end"


@pytest.mark.skipif(sys.platform != "linux", reason="pages are forked on Linux only")
def test_an_interrupt_before_the_pid_is_known_ends_that_process(monkeypatch):
    from multiprocessing import forkserver

    from _ext.sessions import pool, run, source

    read, started = forkserver.read_signed, []

    def interrupted(fd):
        started.append(read(fd))
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(forkserver, "read_signed", interrupted)
    page = pool.Page("a", "a.md", [source.Item("code-cell", 3, "import time; time.sleep(1000)")])
    with pytest.raises(KeyboardInterrupt):
        pool.run_pages([page], run.Limits())
    assert not _alive(started[0])


def test_an_interrupt_that_comes_again_leaves_no_folder(tmp_path, monkeypatch):
    from _ext.sessions import pool, run, source

    stop = pool._Running.stop

    def interrupted(one):
        signal.raise_signal(signal.SIGINT)
        stop(one)

    def watch(done, running):
        if len(running) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(pool._Running, "stop", interrupted)
    pages = [pool.Page(name, f"{name}.md", [source.Item("code-cell", 3, "import time; time.sleep(1000)")]) for name in "ab"]
    with pytest.raises(KeyboardInterrupt):
        pool.run_pages(pages, run.Limits(), jobs=2, watch=watch)
    assert not list(tmp_path.glob("page-*"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_process_that_cannot_start_fails_its_page_only(monkeypatch):
    from _ext.sessions import pool, run, server, source

    class Full:
        pid = None

        def __init__(self, *args, name, **kwargs):
            self.name = name

        def start(self):
            raise BlockingIOError(11, "Resource temporarily unavailable")

    real = server.context()

    class Context:
        Pipe = staticmethod(real.Pipe)

        @staticmethod
        def Process(*args, name, **kwargs):
            return (Full if name == "a" else real.Process)(*args, name=name, **kwargs)

    monkeypatch.setattr(server, "context", lambda: Context)
    item = source.Item("code-cell", 3, "1 + 1")
    pages = [pool.Page(name, f"{name}.md", [item]) for name in "ab"]
    pool.run_pages(pages, run.Limits())
    assert [failure.reason for path, failure in pages[0].failures] == [
        "no process for this page: [Errno 11] Resource temporarily unavailable"
    ]
    assert pages[1].failures == [] and pages[1].results[0].outputs[0]["data"]["text/plain"] == "2"


def test_a_disk_that_is_full_leaves_the_old_site(tmp_path):
    assert tiny.make_site(tmp_path, {"a.md": page(GOOD)})[0] == 0
    small = "ulimit -f 20; exec "  # 20 KiB a file: what the disk refuses, the limit refuses
    tiny.write_site(tmp_path, {"a.md": page(GOOD + "\nText.\n" * 3000)})
    ran = subprocess.run(["bash", "-c", small + " ".join(tiny.command(options=["-W", "-q"]))], cwd=tmp_path, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")}, timeout=60)
    printed = ran.stdout + ran.stderr
    assert ran.returncode != 0
    assert "File too large" in printed and len(printed.splitlines()) <= 2, printed
    assert "Text." not in (tmp_path / "build/html/a.html").read_text()


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    return what()
