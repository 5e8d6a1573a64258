"""The error index: from the text of an error to the page that explains it.

Each page in ``docs/errors/`` names the messages that it explains in its front matter, as templates; that is the one
place where they stand.  ``template`` compiles them, ``match`` finds them in any pasted text, ``pages`` reads the pages,
``extension`` gives Sphinx the list and the box, ``records`` and ``review`` hold the messages against the installed torch.
"""

from _ext.errors.pages import find

__all__ = ["find"]
