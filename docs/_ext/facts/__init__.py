"""Fact boxes: what an operation really does, measured on the installed torch.

Prose about an operation goes stale without anyone noticing.
This room measures what such prose would say (view or copy, bytes, gradient, what an in-place write breaks, dtypes, errors),
keeps the answers in one JSON file a torch version, and fails the build when an answer changes.

Data flows one way::

    operations (text) -> samples (tensors) -> probes -> record (JSON) -> box, tables, list of changes -> Sphinx

``operations`` and everything right of ``record`` never import torch; the probes never import Sphinx.
"""
