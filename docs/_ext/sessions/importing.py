"""Imported first by the warm process: what it imports stays, so looking for garbage meanwhile only takes time."""

import gc
import os

from _ext.sessions import server

gc.disable()
for name in server.HUGE_PAGES:  # they have done their work; what a page starts is not to inherit them
    os.environ.pop(name, None)
