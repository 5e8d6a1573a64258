"""Build the site whole or not at all: python -m _ext.site BUILDER SOURCE BUILDDIR [Sphinx's options]."""

import atexit
import gc
import os
import sys

from _ext.site.build import main

if __name__ == "__main__":
    # Doctrees are many objects that live long: looking through them each 700 objects was a sixth of a build.
    gc.set_threshold(50_000, 20, 100)
    status = main(*sys.argv[1:4], sys.argv[4:])
    atexit._run_exitfuncs()  # the fork server's folder is removed there
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # Python's own way out takes doctrees apart, object by object
