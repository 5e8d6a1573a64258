"""Imported by the warm process: what every page needs, made once before the forks."""

import gc
import os
import signal

from _ext.sessions import importing, run, shell  # noqa: F401 - `run` is what a page's process calls

shell.warm()
os.environ.clear()
os.environ.update(importing.ENVIRONMENT)
gc.freeze()  # a page's garbage collections pass over what it did not make
gc.enable()  # _ext.sessions.importing turned it off
signal.signal(signal.SIGINT, signal.default_int_handler)  # what the fork server gives back to each page
