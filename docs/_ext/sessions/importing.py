"""Imported first by the warm process: what it imports stays, so looking for garbage meanwhile only takes time."""

import gc
import os
import signal

from _ext.sessions import server

gc.disable()
if server.HUGE_PAGES.items() <= os.environ.items():  # they have done their work; what a page starts is not to inherit them
    for name in server.HUGE_PAGES:
        del os.environ[name]
# Ctrl-C goes to this process too. The build tells of it and ends, and this process ends with the build.
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
ENVIRONMENT = dict(os.environ)  # imports add to it: torch._dynamo a folder for what it compiles, which pages would share
