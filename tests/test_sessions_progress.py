"""On a terminal one line that changes; in a log nothing, or a line a page when asked; at the end what took longest."""

import io

import tiny
from _ext.sessions import pool, report, run, source


def page(name, seconds, failed=False):
    one = pool.Page(name, f"{name}.md", [source.Item("code-cell", 1, "1"), source.Item("doctest", 3, ">>> 1\n1")])
    one.seconds = seconds
    one.results[1] = run.Result(1, promises=2)
    if failed:
        one.failures.append((one.path, run.Failure(1, "no", "detail\n")))
    return one


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_with_the_slowest_named():
    out = Terminal()
    progress = report.Progress(3, out=out)
    progress([], [page("a", 0)])
    progress([page("a", 0.2), page("b", 1.26, failed=True)], [page("c", 0)])
    last = out.getvalue().split("\r\033[K")[-1]
    assert last == "running pages: 2/3 done, 1 running, 1 failed (slowest: b 1.3 s)"
    progress([page("a", 0.2), page("b", 1.26), page("c", 1)], [])
    assert out.getvalue().count("\n") == 1


def test_a_log_has_nothing_unless_asked():
    out = io.StringIO()
    report.Progress(1, out=out)([page("a", 0.2)], [])
    assert out.getvalue() == ""
    report.Progress(1, lines=True, out=out)([page("a", 0.24)], [])
    assert out.getvalue() == "page a: ok, 0.2 s\n"


def test_the_summary_counts_and_names_the_longest():
    text = report.summary([page("a", 0.2), page("b", 1.26)])
    assert text == "2 pages ran: 2 cells, 4 promises; longest: b 1.3 s, a 0.2 s"


def test_a_long_detail_is_cut_in_the_middle():
    one = page("a", 1)
    one.failures.append((one.path, run.Failure(4, "reason", "\n".join(map(str, range(1000))))))
    (place, text), = report.failure_lines(one)
    assert place == "a.md:4" and len(text.splitlines()) <= 31 and text.endswith("999")


def test_a_quiet_build_still_ends_with_what_took_longest_and_where_the_site_is(tmp_path):
    text = tiny.notebook("# A\n\n```{code-cell}\n1\n```\n")
    status, printed, site = tiny.make_site(tmp_path, {"a.md": text})
    lines = printed.splitlines()
    assert status == 0 and len(lines) == 2, printed
    assert lines[0].startswith("1 page ran: 1 cell, 0 promises; longest: a ") and lines[1] == "the site is in build/html/index.html"
