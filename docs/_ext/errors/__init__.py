"""The error index: from the text of an error to the page that explains it.

Each page in ``docs/errors/`` names the messages that it explains in its front matter, as templates; that is the one
place where they stand.  ``template`` compiles them, ``match`` finds them in any pasted text, ``pages`` reads the pages,
``extension`` gives Sphinx the list, the box and the links both ways, ``observe`` runs code that raises on purpose, and
``records`` and ``review`` hold the messages against the installed torch.

A page has, in this order: the message as title; one sentence that says what it means; a section ``## Cause: ...`` for
each cause, with the smallest code that raises it as a promise, why, a paragraph ``**Cure:**`` with code that runs, and a
promise of the right value; ``## Wrong cures`` where people copy one; ``## See also``.  Its front matter is::

    error:
      family: view                 # a key of pages.FAMILIES
      type: RuntimeError           # or a list
      messages:
        - |-
          shape '<shape>' is invalid for input of size <int>
        - text: |-
            an older wording
          until: "1.8"             # the last release that raised it; the text of the page says so too
        - text: |-
            a message that is not raised here
          needs: a CUDA device
      operations: [view]           # pages that explain the operation

Placeholders are those of ``template.PLACEHOLDERS``.  Faults that raise nothing live in ``docs/errors/silent/``, with
``family: silent`` and a section ``## The check that would have caught it``.
"""

from _ext.errors.pages import find

__all__ = ["find"]
