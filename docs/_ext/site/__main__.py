"""Build the site whole or not at all: python -m _ext.site BUILDER SOURCE BUILDDIR [Sphinx's options]."""

import atexit
import gc
import os
import sys
from contextlib import suppress

from _ext.site.build import main


def fill_streams():
    """Open what this process was started without: the next file to be opened would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))
            os.set_inheritable(getattr(sys, name).fileno(), True)


if __name__ == "__main__":
    # Doctrees are many objects that live long: looking through them each 700 objects was a sixth of a build.
    gc.set_threshold(50_000, 20, 100)
    fill_streams()
    try:
        status = main(*sys.argv[1:4], sys.argv[4:])
    except OSError:  # it could not even say why
        status = 2
    atexit._run_exitfuncs()  # the fork server's folder is removed there
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # what must be read is flushed where it is printed
            stream.flush()
    os._exit(status)  # Python's own way out takes doctrees apart, object by object
