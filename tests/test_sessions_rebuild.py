"""After an edit only what it touches runs again, and two builds of the same sources are equal."""

import os
import shutil
import time
from pathlib import Path

import pytest

import tiny

PAGE = "# {0}\n\n```{{code-cell}}\n'{0}'\n```\n\nText.\n"
LOADS = "# Loads\n\n```{code-cell}\n:load: ../program.py\n```\n"
LOG = {"conf": "sessions_log = True", "options": ["-W"]}


def ran(printed):
    return sorted(line.split()[1].rstrip(":") for line in printed.splitlines() if line.startswith("page "))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A built site of three pages, one of which loads a program."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "program.py").write_text("print('program')\n")
    pages = {"a.md": tiny.notebook(PAGE.format("a")), "b.md": tiny.notebook(PAGE.format("b")), "c.md": tiny.notebook(LOADS)}
    status, printed, _ = tiny.make_site(folder, pages, **LOG)
    assert status == 0, printed
    assert ran(printed) == ["a", "b", "c"]
    return folder, pages


def build(site, **changed):
    folder, pages = site
    time.sleep(0.05)
    for name, text in changed.items():
        (folder / name.replace("__", ".")).write_text(text)
    import subprocess, sys

    done = subprocess.run(tiny.command(options=LOG["options"]), cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs")}, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_build_without_a_change_runs_nothing(site):
    printed = build(site)
    assert ran(printed) == []
    assert " ran: " not in printed


def test_an_edited_page_runs_alone(site):
    assert ran(build(site, **{"docs/a__md": tiny.notebook(PAGE.format("edited"))})) == ["a"]
    assert "edited" in (site[0] / "build/html/a.html").read_text()


def test_an_edited_program_runs_its_page_again(site):
    assert ran(build(site, program__py="print('changed')\n")) == ["c"]
    assert "changed" in (site[0] / "build/html/c.html").read_text()


def test_a_failed_page_fails_again_until_it_is_mended(site):
    folder, pages = site
    for _ in range(2):
        status, printed, _ = tiny.make_site(folder, {**pages, "b.md": tiny.notebook("# b\n\n```{code-cell}\n1 / 0\n```\n")}, **LOG)
        assert status == 2 and "docs/b.md:12" in printed
    status, printed, _ = tiny.make_site(folder, pages, **LOG)
    assert status == 0 and "b" in ran(printed)


def test_a_warning_fails_again_until_it_is_mended(site):
    folder, pages = site
    for _ in range(2):
        status, printed, _ = tiny.make_site(folder, {**pages, "b.md": tiny.notebook("# b\n\n[x](nowhere.md)\n")}, **LOG)
        assert status == 1 and "nowhere" in printed


def test_the_doctest_builder_runs_every_page_each_time_and_writes_nothing(site):
    folder, pages = site
    for _ in range(2):
        status, printed, out = tiny.make_site(folder, pages, builder="doctest", **LOG)
        assert status == 0 and ran(printed) == ["a", "b", "c"], printed
        assert printed.endswith("every promise holds\n")
    assert not list((folder / "build").glob("**/doctest/**/*.html"))


def test_two_clean_builds_are_equal_on_any_path_and_on_any_day(tmp_path):
    pages = {"a.md": tiny.notebook(PAGE.format("a") + PLOT), "b.md": tiny.notebook("# b\n\n```{code-cell}\nprint({'x', 'y', 'z'})\n```\n")}
    sites = []
    for name, environment in (("one", {"PYTHONHASHSEED": "1"}), ("a longer name/two", {"PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "0", "TZ": "Asia/Tokyo"})):
        status, printed, site = tiny.make_site(tmp_path / name, pages, environment=environment)
        assert status == 0, printed
        sites.append(site)
    assert tiny.differences(*sites) == []


PLOT = "\n```{code-cell}\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n```\n"


def test_a_difference_would_be_seen(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "same").write_text("1")
        (tmp_path / name / "other").write_text(name)
    (tmp_path / "a" / "alone").write_text("")
    assert tiny.differences(tmp_path / "a", tmp_path / "b") == ["alone", "other"]
    shutil.rmtree(tmp_path / "a")


def test_every_page_is_drawn_again_when_the_code_that_draws_is_another(tmp_path, monkeypatch):
    from _ext.sessions import extension

    rooms = shutil.copytree(extension.ROOMS, tmp_path / "_ext", ignore=shutil.ignore_patterns("__pycache__"))
    before = extension.fingerprint()
    monkeypatch.setattr(extension, "ROOMS", rooms)
    assert extension.fingerprint() == before
    for name, other in (("bench/report.py", False), ("facts/box.py", True), ("pictures/graph.py", True), ("site/mathml.py", True)):
        with (rooms / name).open("a") as file:
            file.write("\n")
        assert (extension.fingerprint() != before) == other, name
        before = extension.fingerprint()
