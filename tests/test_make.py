"""The commands of the README: what they run, that they install once, and what they say when they cannot."""

import os
import shutil
import stat
import subprocess
import sys

import pytest

import tiny

sys.path.insert(0, str(tiny.ROOT / "docs/_ext/site"))
import python as site_python  # noqa: E402 - a file that any Python reads stands outside packages

COMMANDS = ["help", "html", "doctest", "linkcheck", "live", "test", "bench", "facts", "facts-all", "clean"]
STUB = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *"-m venv"*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  *"-m pip"*) {pip} ;;
esac
"""


@pytest.fixture
def project(tmp_path):
    """A copy of what make needs, and a Python that only writes down how it was called."""
    (tmp_path / "docs/_ext/site").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "docs/_ext/site/python.py"):
        shutil.copy(tiny.ROOT / name, tmp_path / name)
    return tmp_path


def stub(folder, pip="true"):
    path = folder / "stubpython"
    path.write_text(STUB.format(log=folder / "calls", pip=pip))
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


def make(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "O", "VENV", "SPHINXOPTS"}}
    return subprocess.run(["make", *arguments], cwd=folder, capture_output=True, text=True, env=environment, timeout=60)


def calls(folder):
    return (folder / "calls").read_text().splitlines()


def test_help_names_every_command(project):
    printed = make(project).stdout
    assert [line.split()[1] for line in printed.splitlines() if line.startswith("make ")] == COMMANDS


def test_a_second_run_installs_nothing(project):
    python = f"PYTHON={stub(project)}"
    assert make(project, "html", python).returncode == 0
    first = calls(project)
    assert sum("-m pip install" in call for call in first) == 1 and sum("-m venv" in call for call in first) == 1
    assert make(project, "html", python).returncode == 0
    assert [call for call in calls(project)[len(first) :] if "pip" in call or "venv" in call] == []
    requirements = project / "requirements.txt"
    os.utime(requirements, (requirements.stat().st_mtime + 10,) * 2)
    make(project, "html", python)
    assert sum("-m pip install" in call for call in calls(project)) == 2


def test_html_passes_options_on(project):
    make(project, "html", f"PYTHON={stub(project)}", "O=-D one=1", "SPHINXOPTS=-n")
    assert calls(project)[-1] == "-m _ext.site html docs docs/_build -c . -n -D one=1"


def test_warnings_are_errors_and_work_is_parallel(project):
    make(project, "html", f"PYTHON={stub(project)}")
    assert "-W" in calls(project)[-1].split() and "-j auto" in calls(project)[-1]


def test_an_empty_venv_uses_the_python_on_the_path(project):
    assert make(project, "doctest", "VENV=", f"PYTHON={stub(project)}").returncode == 0
    assert calls(project) == ["-m _ext.site doctest docs docs/_build -c . -W -j auto -q"]
    assert not (project / ".venv").exists()


def test_an_install_that_fails_says_so_in_one_line_and_is_tried_again(project):
    python = f"PYTHON={stub(project, pip='echo many; echo lines; echo ERROR: no network >&2; exit 1')}"
    for _ in range(2):
        ran = make(project, "html", python)
        assert ran.returncode != 0
        said = [line for line in ran.stderr.splitlines() if not line.startswith("make")]
        assert said == ["not installed: ERROR: no network (all of it: .venv/install.log)"]
    assert not any("_ext.site" in call for call in calls(project))


@pytest.mark.parametrize(
    "version, system, machine, words",
    [
        ((3, 10, 2), "Linux", "x86_64", "Python 3.11 or newer is needed, this is 3.10"),
        ((3, 12, 0), "Darwin", "x86_64", "no wheel for Intel Macs"),
    ],
)
def test_a_python_that_cannot_is_refused_in_one_line(version, system, machine, words):
    reason = site_python.refusal(version, system, machine)
    assert words in reason and "\n" not in reason


@pytest.mark.parametrize("version, system, machine", [((3, 11, 0), "Linux", "x86_64"), ((3, 13, 1), "Darwin", "arm64"), ((3, 12, 0), "Windows", "AMD64")])
def test_a_python_that_can_is_not_refused(version, system, machine):
    assert site_python.refusal(version, system, machine) is None


def test_a_refused_python_stops_make_before_it_installs(project):
    old = project / "oldpython"
    old.write_text(f"#!/bin/sh\n{sys.executable} -c \"import sys; sys.version_info = (3, 9, 1); import runpy; runpy.run_path('$1', run_name='__main__')\"\n")
    old.chmod(0o755)
    ran = make(project, "html", f"PYTHON={old}")
    assert ran.returncode != 0
    assert [line for line in ran.stderr.splitlines() if not line.startswith("make")] == [
        "cannot build the site: Python 3.11 or newer is needed, this is 3.9; try: make html PYTHON=python3.11"
    ]
    assert not (project / ".venv").exists()


def test_the_reason_is_written_in_a_python_that_any_python_reads():
    text = (tiny.ROOT / "docs/_ext/site/python.py").read_text()
    assert "f\"" not in text and ":=" not in text and "match " not in text
