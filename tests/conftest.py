"""What tests share: the whole site, built once a run, and a browser to read it with."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs")]
FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
 --disable-component-update --disable-sync""".split()


def pytest_addoption(parser):
    parser.addoption("--site", help="test the site in this folder, in place of one that is built for the tests")


@dataclass(frozen=True)
class Site:
    """The built site: its folder, and the page names that its sources give (`operations/detach`)."""

    folder: Path
    pages: tuple

    def of(self, section):
        """Names of a section's pages, its index left out."""
        return [name for name in self.pages if name.startswith(f"{section}/") and not name.endswith("/index")]


@pytest.fixture(scope="session")
def site(request, tmp_path_factory):
    """Build the whole site as `make html` does."""
    given = request.config.getoption("--site")
    folder = Path(given).resolve() if given else _built(tmp_path_factory.mktemp("whole"))
    sources = sorted(path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
    pages = tuple(path.with_suffix("").as_posix() for path in sources if path.parts[0][0] != "_")
    return Site(folder, pages)


def _built(folder):
    arguments = [sys.executable, "-m", "_ext.site", "html", "docs", str(folder), "-c", ".", "-W", "-j", "auto", "-q"]
    environment = {**os.environ, "PYTHONPATH": "docs"}
    for name in ("SITE_URL", "GITHUB_REPOSITORY"):
        environment.pop(name, None)
    ran = subprocess.run(arguments, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode:
        pytest.fail(f"the site was not built:\n{ran.stdout}", pytrace=False)
    return folder / "html"


@pytest.fixture(scope="session")
def browser():
    """Start Chromium once; skip, and say so, where there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        bundled = Path(playwright.chromium.executable_path)
        found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if found is None and not bundled.exists():
            pytest.skip("no Chromium: install it (Debian: apt-get install chromium), or run: python -m playwright install chromium")
        chromium = playwright.chromium.launch(executable_path=found or str(bundled), args=FLAGS)
        yield chromium
        chromium.close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def serve():
    """Give a function that serves a folder on this machine and returns its address."""
    servers = []

    def start(folder):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def address(site, serve):
    """Where the whole site is served."""
    return serve(site.folder)
