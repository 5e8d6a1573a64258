"""Imported by the warm process: what every page needs, made once before the forks."""

from _ext.sessions import run, shell

run.prepare()
shell.warm()
