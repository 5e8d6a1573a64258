"""Run Sphinx in a folder of its own, and publish what it wrote only when nothing failed.

Sphinx writes page by page and forgets its warnings once a page is read.
So it works in BUILDDIR/.work; a good build is copied and takes the site's place in one rename,
and after a bad one the next build reads every page again.
"""

import argparse
import logging
import os
import shutil
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from _ext.sessions import server

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


# One more than there are cores: of Sphinx's jobs, one hands out the pages that the others write.
JOBS = str((os.cpu_count() or 1) + 1)


def main(builder, source, folder, options):
    """Build; return the exit status.

    0 good, 1 warnings, 2 an error, 3 another build runs here, 120 built but not told, 130 interrupted.
    """
    work = Path(folder, ".work", builder)
    doctrees = Path(folder, ".work", f"{builder}-doctrees")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        work.mkdir(parents=True, exist_ok=True)
        with _alone(work.with_suffix(".lock")):
            _forget_removed(source, work, doctrees)
            if "sessions_run=0" not in options:
                server.start_for(source, doctrees)
            try:
                status = _sphinx(["-b", builder, "-d", str(doctrees), *_with_jobs(options), source, str(work)])
            except KeyboardInterrupt:
                _read_all_again(doctrees)
                raise
            if status == 0:
                return _tell(_finish(builder, work, Path(folder, builder)))
            _read_all_again(doctrees)
            return status
    except _Busy:
        print(f"another build is at work in {folder}; wait for it to end", file=sys.stderr)
        return 3
    except OSError as error:
        _read_all_again(doctrees)
        print(f"not built: {error.strerror}: {_place(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left to do is to leave; another one would be a traceback
        print("interrupted; the site is as it was", file=sys.stderr)
        return 130


def _read_all_again(doctrees):
    with suppress(OSError):  # then there is none
        Path(doctrees, "environment.pickle").unlink()


def _forget_removed(source, work, doctrees):
    """Remove what an earlier build wrote for pages whose source is gone: Sphinx leaves it."""
    for tree in doctrees.rglob("*.doctree"):
        name = str(tree.relative_to(doctrees).with_suffix(""))
        if not any(Path(source, name + suffix).exists() for suffix in (".md", ".rst", ".ipynb")):
            for path in (tree, work / f"{name}.html", work / f"{name}.ipynb"):
                path.unlink(missing_ok=True)


def _with_jobs(options):
    """Put the number of jobs in the place of `auto`."""
    parser = argparse.ArgumentParser(prog="python -m _ext.site", add_help=False)
    parser.add_argument("-j", "--jobs")
    known, others = parser.parse_known_args(options)
    jobs = JOBS if known.jobs == "auto" else known.jobs
    return [*others, "-j", jobs] if jobs else others


def _sphinx(arguments):
    from sphinx.cmd.build import main as sphinx_main

    with _short_endings():
        return sphinx_main(arguments)


@contextmanager
def _short_endings():
    """Tell a fault of the pages, of the disk or of the user in one line; Sphinx's crash report is for its own."""
    from sphinx._cli.util import errors
    from sphinx.errors import SphinxError

    crash_report, lost_line = errors.handle_exception, logging.Handler.handleError

    def tell(exception, /, *, stderr=sys.stderr, **more):
        # An extension's fault comes wrapped: what it wraps says whose fault it is.
        exception = getattr(exception, "orig_exc", None) or exception
        if isinstance(exception, KeyboardInterrupt):
            raise exception
        if isinstance(exception, OSError):
            print(f"not built: {exception.strerror or exception}: {_place(exception)}", file=stderr)
        elif isinstance(exception, SphinxError):
            print(f"not built: {exception}", file=stderr)
        else:
            crash_report(exception, stderr=stderr, **more)

    def lose(handler, record):
        if isinstance(sys.exc_info()[1], OSError):
            raise  # nobody reads on: one end, not a traceback a line
        lost_line(handler, record)

    errors.handle_exception, logging.Handler.handleError = tell, lose
    try:
        yield
    finally:
        errors.handle_exception, logging.Handler.handleError = crash_report, lost_line


def _place(error):
    """Say where an OSError came up."""
    return error.filename or ("standard output" if isinstance(error, BrokenPipeError) else "writing the site")


def _tell(text):
    """Print what there is now; return the exit status, Python's own where standard output takes nothing."""
    try:
        print(text, flush=True)
    except OSError as error:
        with suppress(OSError):  # often the same pipe
            print(f"{text}; standard output: {error.strerror}", file=sys.stderr)
        return 120
    return 0


def _finish(builder, work, site):
    """Publish what is to be published; say in one line what there is now."""
    if builder == "html":
        _publish(work, site)
        return f"the site is in {site}/index.html"
    return "every promise holds" if builder == "doctest" else f"{builder}: nothing to complain of"


def _publish(work, site):
    """Put a copy of `work` in the place of `site`; a copy that fails leaves `site` as it was."""
    fresh, old = site.with_name(f".{site.name}.new"), site.with_name(f".{site.name}.old")
    for path in (fresh, old):
        _remove(path)
    try:
        shutil.copytree(work, fresh, ignore=shutil.ignore_patterns(".buildinfo*"))
    except (OSError, shutil.Error):
        _remove(fresh)
        raise
    if site.exists():
        site.rename(old)
    fresh.rename(site)
    _remove(old)


def _remove(path):
    if path.is_file() or path.is_symlink():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


class _Busy(Exception):
    """Another build holds the lock."""


@contextmanager
def _alone(path):
    """Hold a lock that ends with this process, however it ends."""
    with open(path, "w") as lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise _Busy from None
        yield


def _interrupt(signum, frame):
    raise KeyboardInterrupt
