"""Measure the calls of the page on views: where the result lies, and whether torch calls it a view."""

from __future__ import annotations

import warnings
from typing import Any

from . import probes
from .samples import copied, run, sample
from .tree import said, tensors
from .view_list import inputs_of, measured_calls


class ViewsTarget:
    """One step a call."""

    def steps(self) -> list[tuple[str, ...]]:
        return [("view", call) for call in measured_calls()]

    def answer(self, step: tuple[str, ...]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return view_facts(step[1])


def view_facts(call: str) -> dict[str, str]:
    """Return ``storage``, ``storage_permuted`` and ``is_view`` (what ``_is_view()`` of the first result says)."""
    made = sample(call, inputs_of(call))
    facts = probes.storage(made)
    try:
        outputs = tensors(run(made.function, copied(made)))
        # There is no public way to ask; where this one goes, the fact goes too.
        facts["is_view"] = "yes" if outputs and outputs[0]._is_view() else "no"
    except (RuntimeError, AttributeError) as error:
        facts["is_view"] = "raises " + said(error)
    return facts
