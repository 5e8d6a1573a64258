"""Odd and hostile pages: no promise passes without being kept, and no page harms the build or another page."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import tiny
from _ext.sessions import pool, run, source
from test_sessions_failures import _alive, _wait_for, cell, page, promise


def run_text(text, folder=".", **limits):
    """Run a page that is only text; return it with its failures as (line, reason)."""
    ran = pool.Page("a", "a.md", source.items_of(page(text), folder))
    pool.run_pages([ran], run.Limits(**limits))
    return ran, [(failure.line, failure.reason) for path, failure in ran.failures]


# Text from line 11 on -> the one failure.
UNKEPT = {
    "after a blank line": (promise(">>> 1", "1", "", "2"), (15, "promise holds a line that is never checked: 2")),
    "before the first example": (promise("2", ">>> 1", "1"), (12, "promise holds a line that is never checked: 2")),
    "two marks": (promise(">>> 1", "1", "", ">> 2"), (15, "promise holds a line that is never checked: >> 2")),
    "below a comment": (promise(">>> 1", "1", ">>> # 2", "3"), (15, "promise holds a line that is never checked: 3")),
    "skipped": (promise(">>> 1", "1", ">>> 1  # doctest: +SKIP", "2"), (14, "promise does not hold with the doctest option SKIP")),
    "detail ignored": (
        promise(">>> 1 / 0  # doctest: +IGNORE_EXCEPTION_DETAIL", "Traceback (most recent call last):", "    ...", "ZeroDivisionError: no"),
        (12, "promise does not hold with the doctest option IGNORE_EXCEPTION_DETAIL"),
    ),
    "true for one": (promise(">>> True", "1"), (12, "promise failed")),
    "empty": ("```{doctest}\n```\n", (12, "promise holds no example")),
    "second of two with one text": (
        cell("x = 0") + "\n" + promise(">>> x", "0") + "\n" + cell("x = 1") + "\n" + promise(">>> x", "0"), (25, "promise failed"),
    ),
    "tildes": ("~~~{doctest}\n>>> 1\n2\n~~~\n", (12, "promise failed")),
    "interrupts": (promise(">>> 1", "1", ">>> raise KeyboardInterrupt"), (14, "promise raised KeyboardInterrupt")),
    "prints below Python": (promise(">>> import os", ">>> os.system('echo low')", "0"), (12, "promise shows what the page does not: low")),
    "display": (
        promise(">>> from IPython.display import Image, display", ">>> display(Image(b'x', format='png'))"),
        (12, "promise shows what the page does not: image/png, text/plain"),
    ),
    "prints before its error": (
        promise(">>> print('more'); 1 / 0", "Traceback (most recent call last):", "    ...", "ZeroDivisionError: division by zero"),
        (12, "promise prints more than the error it shows"),
    ),
    "examples that do not run": (
        cell("import doctest", "doctest.DocTestRunner.run = lambda *a, **k: None") + "\n" + promise(">>> 1", "2"),
        (17, "0 of 1 examples of this promise ran"),
    ),
    "exit": (promise(">>> exit()"), (12, "promise raised SystemExit")),
    "repr of a cell": (
        cell("class R:", "    def __repr__(self): raise ValueError('no')", "R()"), (12, "cell shows an error: ValueError: no"),
    ),
}


@pytest.mark.parametrize("name", UNKEPT)
def test_nothing_passes_unchecked(name):
    text, failure = UNKEPT[name]
    assert run_text(text)[1] == [failure]


def test_weakest_options_that_pages_use_still_hold():
    text = promise(">>> print('a', '  b')  # doctest: +NORMALIZE_WHITESPACE", "a b", ">>> 'abc'  # doctest: +ELLIPSIS", "'a...'", ">>> # a remark")
    assert run_text(text)[1] == []


@pytest.mark.parametrize(
    "text, line, reason",
    [
        (":::{doctest}\n>>> 1\n2\n:::\n", 11, "this {doctest} would not run"),
        ("> ```{doctest}\n> >>> 1\n> 2\n> ```\n", 11, "this {doctest} would not run"),
        (":::{note}\n```{code-cell}\n1\n```\n:::\n", 12, "this {code-cell} would not run"),
        ("````{note}\n```{code-cell}\n1\n```\n````\n", 12, "this {code-cell} would not run"),
        ("- a\n\n  ```{code-cell}\n  1\n  ```\n", 13, "this {code-cell} would not run"),
        ("```{code-cell}\na = 'x\u2028y'\n```\n", 12, "holds the character '\\u2028'"),
        ("```{code-cell}\na = 1\x0c\n```\n", 12, "holds the character '\\x0c'"),
    ],
)
def test_what_would_not_run_as_it_stands_is_refused(text, line, reason):
    with pytest.raises(source.PageError) as error:
        source.items_of(page(text), ".")
    assert error.value.line == line and error.value.reason.startswith(reason)


def test_marks_inside_a_fence_do_not_end_it():
    text = cell("def f():", '    """', "    ```", '    """', "f()") + "\n~~~text\n```{doctest}\n~~~\n\n:::{note}\na\n:::\n\n" + cell("2")
    assert [item.source for item in source.items_of(page(text), ".")] == ['def f():\n    """\n    ```\n    """\nf()', "2"]


@pytest.mark.parametrize(
    "text, line",
    [
        ("```{code-cell}\n\n\n1 / 0\n```\n", 14),
        ("```{code-cell}\n:tags: []\n\n\n1 / 0\n```\n", 15),
        ("```{doctest}\n\n\n>>> 1\n2\n```\n", 14),
        (cell("a = 1", "b = 2", "eval('1 +')"), 14),
    ],
)
def test_lines_are_the_editors(text, line):
    assert [at for at, reason in run_text(text)[1]] == [line]


# What a page's own objects and tricks may not do: text -> failures.
HARM = {
    "text of its own class": (cell("class S(str): pass", "import sys", "_ = sys.stdout.write(S('x'))"), []),
    "bytes as text": (cell("import sys", "_ = sys.stdout.write(b'x')"), [(13, "cell failed: TypeError: write() argument must be str, not bytes")]),
    "display of its own object": (
        cell("class C: pass", "from IPython.display import display", "display({'application/json': C()}, raw=True)"),
        [(14, "cell failed: TypeError: Object of type C is not JSON serializable")],
    ),
    "half a character": (
        cell("print('\\ud800')"),
        [(12, "cell failed: UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800' in position 1: surrogates not allowed")],
    ),
    "a thread that prints too much": (
        cell("import threading", "t = threading.Thread(target=print, args=('x' * 3_000_000,)); t.start(); t.join()"),
        [(12, "the page has more than 1,000,000 bytes of output")],
    ),
    "a stream that stays replaced": (
        cell("import io, sys", "sys.stdout = io.StringIO()"), [(12, "leaves sys.stdout replaced: what follows would print nothing")],
    ),
    "a closed stream": (cell("import sys", "sys.stdout.close()") + "\n" + promise(">>> 1", "2"), [(17, "promise failed")]),
    "closed descriptors": (cell("import os", "os.close(1); os.close(2)") + "\n" + promise(">>> 1", "2"), [(17, "promise failed")]),
    "every descriptor closed": (cell("import os", "os.closerange(3, 200)"), [(12, "its process ended (exit 1)")]),
    "a fork that goes on": (
        cell("import os, time", "pid = os.fork()", "if pid: time.sleep(1)") + "\n" + promise(">>> pid == 0", "True"), [(18, "promise failed")],
    ),
    "names of the room's own": (cell("doctest = item = result = shell = In = Out = _ = 5; print = None") + "\n" + promise(">>> item", "5"), []),
    "no folder": (cell("import os", "os.rmdir(os.getcwd())") + "\n" + promise(">>> 1", "2"), [(17, "promise failed")]),
    "a question": (cell("input()"), [(12, "cell failed: EOFError: EOF when reading a line")]),
}


@pytest.mark.parametrize("name", HARM)
def test_a_hostile_page_fails_alone_and_says_why(name):
    text, failures = HARM[name]
    assert run_text(text)[1] == failures


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/stdout")
def test_a_page_that_empties_its_output_does_not_shift_what_comes_next():
    ran, failures = run_text(cell("import os", "_ = os.system('echo one; : > /dev/stdout')") + "\n" + cell("_ = os.system('echo two')"))
    assert failures == []
    assert [[output["text"] for output in ran.results[at].outputs] for at in (0, 1)] == [[], ["two\n"]]


def test_hundreds_of_failures_are_told_in_short():
    from _ext.sessions import report

    ran, failures = run_text(promise(*(line for at in range(100) for line in (f">>> {at}", "no"))))
    told = list(report.failure_lines(ran))
    assert len(failures) == 100 and len(told) == 21 and told[-1] == ("a.md:52", "and 80 more failures from here on")


def test_two_pictures_of_one_text_are_drawn_each_in_its_place(tmp_path):
    text = cell("import torch", "x = torch.arange(4.0)") + "\n```{tensor-layout} A\nx\n```\n\n" + cell("x = torch.arange(60.0).view(5, 12)") + "\n```{tensor-layout} A\nx\n```\n"
    status, printed, site = tiny.make_site(tmp_path, {"a.md": page(text)})
    assert status == 0, printed
    first, second = (part.partition("</svg>")[0] for part in (site / "a.html").read_text().split('class="drawing')[1:])
    assert first != second


@pytest.mark.parametrize(
    "last, failures",
    [("1", []), ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", [(12, "its process was killed (SIGSEGV)")]), ("while True: pass", None)],
)
def test_a_page_leaves_nothing_on_disk(last, failures, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = run_text(cell("import tempfile", "_ = tempfile.mkdtemp(), open('file', 'w')", last), seconds=1)[1]
    assert found == failures or failures is None and len(found) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("last", ["1", "time.sleep(100)", "signal.signal(signal.SIGALRM, signal.SIG_IGN); time.sleep(100)"])
def test_a_child_in_a_session_of_its_own_ends_with_the_page(last, tmp_path):
    mark = tmp_path / "pid"
    daemon = f"(setsid sh -c 'echo $$ > {mark}; exec sleep 1000' </dev/null &)"  # its parent is gone at once
    run_text(cell("import os, signal, time", f"_ = os.system({daemon!r})", f"while not os.path.exists({str(mark)!r}): pass", last), seconds=1)
    pid = int(_wait_for(mark.read_text))
    try:
        assert _wait_for(lambda: not _alive(pid), 2)
    finally:
        if _alive(pid):
            os.kill(pid, signal.SIGKILL)


GOOD = page(cell("2 + 2") + "\n" + promise(">>> 3 + 3", "6"))


def test_a_page_that_is_removed_leaves_the_site(tmp_path):
    status, printed, site = tiny.make_site(tmp_path, {"a.md": GOOD, "b.c d é.md": GOOD})
    assert status == 0 and (site / "b.c d é.html").exists(), printed
    (tmp_path / "docs/b.c d é.md").unlink()
    status, printed, site = tiny.make_site(tmp_path, {"a.md": GOOD})
    assert status == 0 and (site / "a.html").exists(), printed
    assert not list(site.glob("b.c*"))


def test_promises_that_are_not_run_do_not_hold(tmp_path):
    status, printed, _ = tiny.make_site(tmp_path, {"a.md": GOOD}, builder="doctest", options=("-W", "-q", "-D", "sessions_run=0"))
    assert (status, printed.strip()) == (2, "not built: no promise was checked: sessions_run is off")


@pytest.mark.parametrize("options", [("-q",), ("-W", "-q")])
@pytest.mark.parametrize(
    "pages, reason",
    [
        ({"a.md": page("```{include} more\n```\n"), "more": "More.\n\n" + promise(">>> 1", "2")}, "docs/more:3: this {doctest} was not run"),
        ({"a.md": "# A\n\n" + cell("1 / 0")}, "docs/a.md:1: page not run as it stands: it does not start with the front matter of a notebook"),
    ],
)
def test_what_was_not_run_is_not_published(pages, reason, options, tmp_path):
    status, printed, site = tiny.make_site(tmp_path, pages, options=options)
    assert (status, printed.strip(), site.exists()) == (2, f"not built: {reason}", False)


def test_an_output_folder_that_is_a_file_is_told_in_one_line(tmp_path):
    (tmp_path / "build").write_text("mine")
    status, printed, _ = tiny.make_site(tmp_path, {"a.md": GOOD})
    assert (status, printed.strip()) == (2, "not built: Not a directory: build/.work/html")
    assert (tmp_path / "build").read_text() == "mine"


def test_a_file_in_the_place_of_the_site_gives_way(tmp_path):
    (tmp_path / "build").mkdir()
    (tmp_path / "build/html").write_text("old")
    for _ in range(2):
        status, printed, site = tiny.make_site(tmp_path, {"a.md": GOOD})
        assert status == 0, printed
    assert (site / "a.html").exists() and sorted(path.name for path in site.parent.iterdir()) == [".work", "html"]


def test_both_builders_work_side_by_side(tmp_path):
    tiny.write_site(tmp_path, {"a.md": GOOD})
    start = dict(cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    builds = [subprocess.Popen(tiny.command(builder), **start) for builder in ("html", "doctest")]
    printed = [build.communicate(timeout=100)[0] for build in builds]
    assert [build.returncode for build in builds] == [0, 0], printed
    assert (tmp_path / "build/html/a.html").exists() and printed[1].endswith("every promise holds\n")


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_line_endings_and_a_byte_order_mark_change_no_line_number(ending, tmp_path):
    folder = tiny.write_site(tmp_path, {})
    text = "\ufeff" + page(promise(">>> 1", "1", ">>> 'é'", "'e'"))
    (folder / "docs/a.md").write_bytes(text.replace("\n", ending).encode())
    ran = subprocess.run(tiny.command("doctest"), cwd=folder, env={**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and "docs/a.md:14: ERROR: promise failed" in ran.stderr + ran.stdout
