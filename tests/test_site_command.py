"""The command that builds the site: its options, and streams that are closed, full, or read by nobody."""

import os
import subprocess
from pathlib import Path

import pytest

import tiny
from _ext.site import build

PAGES = {name: tiny.notebook("# A\n\n```{code-cell}\n2 + 2\n```\n") for name in ("a.md", "b.md")}


@pytest.mark.parametrize("options", [["-j", "auto"], ["-jauto"], ["--jobs", "auto"], ["--jobs=auto"]])
def test_auto_jobs_are_one_more_than_there_are_cores(options):
    assert build._with_jobs(["-W", *options, "-q"]) == ["-W", "-q", "-j", str(os.cpu_count() + 1)]


@pytest.mark.parametrize("options", [["-t", "auto"], ["-D", "language=auto", "-A", "auto"], ["-W", "-q"]])
def test_auto_elsewhere_is_left_alone(options):
    assert build._with_jobs(options) == options
    assert build._with_jobs(["-j", "3", *options]) == [*options, "-j", "3"]


def run(folder, redirection, options=("-W", "-q"), unbuffered=""):
    """Build with a shell's redirections; return (exit status, what came on the streams that are left, whether there is a site)."""
    tiny.write_site(folder, PAGES)
    line = f"{' '.join(tiny.command(options=options))} {redirection}"
    environment = {**os.environ, "PYTHONPATH": str(tiny.ROOT / "docs"), "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    return ran.returncode, ran.stdout + ran.stderr, Path(folder, "build/html/a.html").exists()


@pytest.mark.parametrize("closed", ["<&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_harm_nothing(closed, tmp_path):
    status, printed, there = run(tmp_path, closed)
    assert (status, there) == (0, True), printed


UNREAD = "> >(:)"  # a pipe whose reader is gone at once
LOST = pytest.mark.parametrize(
    "redirection, reason", [("> /dev/full", "No space left on device"), (UNREAD, "Broken pipe")], ids=["full", "unread"]
)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@LOST
def test_what_is_built_is_built_though_nobody_is_told(redirection, reason, tmp_path):
    status, printed, there = run(tmp_path, redirection)
    assert (status, there) == (120, True)
    assert printed == f"the site is in build/html/index.html; standard output: {reason}\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@LOST
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_report_that_is_lost_ends_the_build_in_one_line_and_is_no_fault_of_a_page(redirection, reason, unbuffered, tmp_path):
    status, printed, there = run(tmp_path, redirection, ["-W", "-j", "2"], unbuffered)
    assert (status, there) == (2, False)
    assert printed.startswith(f"not built: {reason}: ") and len(printed.splitlines()) == 1, printed


@pytest.mark.parametrize("options, status", [(["-W", "-q"], 120), (["-W"], 2)])
def test_both_streams_may_be_lost(options, status, tmp_path):
    assert run(tmp_path, f"{UNREAD} 2>&1", options)[:2] == (status, "")
