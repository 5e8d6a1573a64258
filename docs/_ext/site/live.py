"""Rebuild after each edit and reload the browser: python -m _ext.site.live SOURCE BUILDDIR [--port N] [Sphinx's options].

The pieces are sphinx-autobuild's; the build is this site's own, so that a failing page leaves the last good site in place.
"""

import argparse
import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

import uvicorn
from sphinx_autobuild.filter import IgnoreFilter
from sphinx_autobuild.middleware import JavascriptInjectorMiddleware
from sphinx_autobuild.server import RebuildServer
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, WebSocketRoute
from starlette.staticfiles import StaticFiles

HOST = "127.0.0.1"
IGNORED = [r"(^|/)__pycache__(/|$)", r"(^|/)\.[^/]*$", r"(~|\.tmp|\.ipynb)$"]  # what tools and editors leave


class Rebuild:
    """Build the site in a process of its own; called with the paths that changed."""

    def __init__(self, source, folder, options, address):
        self.command = [sys.executable, "-m", "_ext.site", "html", source, folder, *options, "-q"]
        self.address = address

    def __call__(self, *, changed_paths=()):
        names = sorted({_short(path) for path in changed_paths})
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            say(f"changed: {', '.join(names[:3])}{more}")
        began = time.monotonic()
        status = subprocess.run(self.command, stdin=subprocess.DEVNULL).returncode
        took = f"{time.monotonic() - began:.1f} s"
        if status:
            say(f"not built ({took}): mend what is named above; the last good site is still at {self.address}")
        else:
            say(f"built in {took}: {self.address}")


def say(text):
    """Print a line of our own, told from Sphinx's."""
    print(f"[live] {text}", flush=True)


def main(arguments=None):
    """Build, serve and watch until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m _ext.site.live", allow_abbrev=False)
    parser.add_argument("source")
    parser.add_argument("folder", metavar="builddir")
    parser.add_argument("--port", type=int, default=8000)
    known, options = parser.parse_known_args(arguments)
    port = _free(known.port)
    address = f"http://{HOST}:{port}"
    site = Path(known.folder, "html").resolve()
    site.mkdir(parents=True, exist_ok=True)  # the server starts whether or not the first build is good
    rebuild = Rebuild(known.source, known.folder, options, address)
    rebuild()
    watched = [path for path in (Path(known.source), Path("examples"), Path("conf.py")) if path.exists()]
    watcher = RebuildServer(watched, IgnoreFilter([Path(known.folder)], IGNORED), rebuild)
    app = Starlette(
        routes=[
            WebSocketRoute("/websocket-reload", watcher, name="reload"),
            Mount("/", app=StaticFiles(directory=site, html=True), name="static"),
        ],
        middleware=[Middleware(JavascriptInjectorMiddleware, ws_url=f"{HOST}:{port}")],
        lifespan=watcher.lifespan,
    )
    say(f"watching {', '.join(map(_short, watched))}; Ctrl-C ends")
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.run(app, host=HOST, port=port, log_level="warning", timeout_graceful_shutdown=1)


def _free(port):
    """The port asked for, or any free one when it is taken."""
    for wanted in (port, 0):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, wanted))
            return probe.getsockname()[1]
    raise SystemExit(f"no free port on {HOST}")


def _short(path):
    with contextlib.suppress(ValueError):
        path = Path(path).resolve().relative_to(Path.cwd())
    return path.as_posix()


if __name__ == "__main__":
    main()
