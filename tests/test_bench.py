"""The benchmark measures whole builds: its sites build, its clock counts every process, its table says what was measured."""

import json
import os
import shutil
import sys

import pytest

import tiny
from _ext.bench import __main__ as bench
from _ext.bench import measure, report, sites
from _ext.sessions import source

TEXT = tiny.notebook(
    """
    # One

    See [two](two.md) and [torch](https://example.org).

    ```{facts} one
    ```

    ```{autograd-graph} A
    import torch
    ```

    ```{code-cell}
    1 + 1
    ```

    ```{doctest}
    >>> 1 + 1
    2
    ```
    """
)


def test_a_page_keeps_its_cells_and_loses_what_only_this_site_draws():
    text = sites.plain(TEXT)
    assert [item.source for item in source.items_of(text, ".")] == ["1 + 1"]
    assert "```pycon\n>>> 1 + 1\n2\n```" in text
    assert "facts" not in text and "autograd" not in text and "(two.md)" not in text and "example.org" in text


def test_a_site_has_as_many_pages_as_asked_and_builds(tmp_path):
    site = sites.make(tmp_path / "site", [("one", sites.plain(TEXT))], 4, sites.OURS, sites.READER)
    assert len(list(site.rglob("page_*.md"))) == 4
    environment = {**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")}
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", ".", "docs", "build"]
    figures = measure.timed(command, site, environment)
    assert figures.status == 0, figures.printed
    assert len(list((site / "build").rglob("page_*.html"))) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes through /proc, which only Linux has")
def test_cpu_and_memory_of_children_are_counted():
    code = (
        "import subprocess, sys, time\n"
        "child = 'x = bytearray(60_000_000)\\nimport time\\nend = time.process_time() + 0.5\\nwhile time.process_time() < end: pass'\n"
        "subprocess.run([sys.executable, '-c', child])"
    )
    figures = measure.timed([sys.executable, "-c", code], ".", dict(os.environ), memory=True)
    assert figures.cpu >= 0.5 and figures.wall >= 0.5
    assert figures.largest > 55 and figures.memory >= figures.largest


def test_the_table_holds_medians_and_ratios(tmp_path):
    def times(*walls):
        return [measure.Figures(wall, 2 * wall, 0) for wall in walls]

    modes = {
        "nothing run": times(1, 3, 2), "cold": times(4, 5, 3), "edit": times(1.5), "nothing run, edit": times(1), "unchanged": times(1),
        "import torch": times(1.5), "all code, warm": times(0.5), "MyST-NB force": times(40), "MyST-NB off": times(6),
        "memory": [measure.Figures(1, 1, 0, memory=500, largest=300)],
    }
    about = {"aborted": ["`cache` at 5 pages"] * 2 + ["`cache` at 20 pages"]} | dict.fromkeys(["command", "date", "cores", "python", "torch", "sphinx", "myst-nb", "rounds", "kinds of pages"], "-")
    report.write(tmp_path, {20: modes}, {"operations": 40, "cold": 7.96, "warm": 0.2}, about)
    text = (tmp_path / "builds.md").read_text()
    assert "| **this build, cold** | 4.00 (3.00–5.00) |" in text
    found = report.ratios({20: modes})
    assert text.startswith("A site of 20 pages, each of which runs, is built from nothing in 4.0 s:\n1.0 times what ")
    assert found["cold, of (nothing run + all code + one import)"][20] == 4 / (2 + 0.5 + 1.5)
    assert found["cold, of (nothing run as they come + all code + one import)"][20] == 4 / (6 + 0.5 + 1.5)
    assert "facts of 40 operations and of the page on views: 8.0 s of CPU time" in text
    assert found["times faster than MyST-NB's fastest"][20] == 10
    assert found["edit, of an edit with nothing run"][20] == 1.5
    assert json.loads((tmp_path / "builds.json").read_text())["results"]["20"]["cold"][0]["wall"] == 4
    assert (tmp_path / "builds.svg").read_text().startswith("<?xml")
    assert "MyST-NB aborted, and was started again: `cache` at 5 pages 2 times, `cache` at 20 pages once." in text


def test_a_mode_of_myst_nb_that_aborts_is_started_again_and_told(tmp_path, monkeypatch):
    ends = iter([1, 0])
    monkeypatch.setattr(bench, "timed", lambda *what: measure.Figures(1, 1, next(ends), printed="x\nOperationalError: table exists\nPlease report\n"))
    running = bench.Bench(tmp_path, [("a", "# A\n")])
    running._stock(5, "cache")
    assert running.aborted == ["`cache` at 5 pages"] and len(running.results[5]["MyST-NB cache"]) == 1
    assert bench._reason("x\nOperationalError: table exists\nPlease report\n") == "OperationalError: table exists"


def test_the_committed_table_and_plot_are_those_of_the_committed_figures(tmp_path):
    kept = tiny.ROOT / "docs/_bench"
    shutil.copy(kept / "builds.json", tmp_path)
    report.draw(tmp_path)
    for name in ("builds.md", "builds.svg"):
        assert (tmp_path / name).read_text() == (kept / name).read_text()
