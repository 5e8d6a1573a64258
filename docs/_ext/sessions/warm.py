"""Imported by the warm process: what every page needs, made once before the forks."""

import gc

from _ext.sessions import run, shell

run.prepare()
shell.warm()
gc.freeze()  # a page's garbage collections pass over what it did not make
gc.enable()  # _ext.sessions.importing turned it off
