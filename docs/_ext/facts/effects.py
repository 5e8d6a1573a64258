"""Facts about what a call leaves behind: bytes that a graph holds, gradients, what a later call does."""

from __future__ import annotations

import ast
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from .samples import namespace
from .tree import said, without_addresses


class Held:
    """What the graph that was recorded inside ``with held() as graph`` still keeps for backward."""

    def __init__(self) -> None:
        self._kept: list[weakref.ref] = []

    @property
    def total(self) -> int:
        """Bytes of the saved tensors that are alive now."""
        return sum(kept.tensor.nbytes for ref in self._kept if (kept := ref()) is not None)

    @property
    def bytes(self) -> str:
        """The same in words: ``12,000 bytes``."""
        return f"{self.total:,} bytes"


class _Kept:
    """One saved tensor; it dies when the node that saved it lets go."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@contextmanager
def held() -> Iterator[Held]:
    """Watch what is saved for backward inside the block."""
    graph = Held()

    def pack(tensor: Tensor) -> _Kept:
        kept = _Kept(tensor.detach())  # the result itself would hold its own graph alive
        graph._kept.append(weakref.ref(kept))
        return kept

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept.tensor):
        yield graph


def effect(setup: str, code: str) -> str:
    """Run ``setup`` and ``code`` in fresh names and return the value of the last expression as text, or the error.

    Booleans are told as yes and no. An error in ``setup`` is raised: it is a fault of the sample.
    """
    names: dict[str, Any] = {**namespace(), "held": held}
    body = ast.parse(code).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(setup, names)
        try:
            exec(compile(ast.Module(body, []), "<effect>", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "<effect>", "eval"), names) if last else None
        except Exception as error:
            return said(error, limit=500)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return without_addresses(" ".join(str(value).split()))
