"""Walk nested arguments and results, and compare them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor


def tree_map(function: Callable[[Any], Any], tree: Any, kinds: tuple[type, ...] = (Tensor,)) -> Any:
    """Return ``tree`` with ``function`` applied to every tensor (or other leaf of ``kinds``).

    Lists, tuples, named tuples and dicts keep their type; what is none of these is handed back as it is.
    """
    if isinstance(tree, kinds):
        return function(tree)
    if isinstance(tree, dict):
        return {key: tree_map(function, value, kinds) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        parts = [tree_map(function, value, kinds) for value in tree]
        if type(tree) in (list, tuple):
            return type(tree)(parts)
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return tree


def tensors(tree: Any) -> list[Tensor]:
    """Return every tensor in ``tree``, in order."""
    found: list[Tensor] = []
    tree_map(found.append, tree)
    return found


def holders(tree: Any) -> list[Tensor | np.ndarray]:
    """Return everything in ``tree`` that holds memory: tensors and NumPy arrays, in order."""
    found: list[Tensor | np.ndarray] = []
    tree_map(found.append, tree, kinds=(Tensor, np.ndarray))
    return found


def is_smooth(tensor: Tensor) -> bool:
    """Return whether the dtype can carry a gradient."""
    return tensor.is_floating_point() or tensor.is_complex()


def address(holder: Tensor | np.ndarray) -> int | None:
    """Return where the memory of a tensor or an array begins, or None where there is no such place (sparse layouts)."""
    if isinstance(holder, np.ndarray):
        while isinstance(holder.base, np.ndarray):
            holder = holder.base
        return holder.__array_interface__["data"][0]
    try:
        return holder.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return None


def data_bytes(tree: Any) -> int:
    """Return the bytes of all elements in ``tree``, counted as if each element stood alone."""
    return sum(holder.nbytes for holder in holders(tree))


_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
_INTERNAL = re.compile(r"\s*\((?:Triggered internally|function \w+ at) [^)]*\)|\s*Exception raised from .*", re.DOTALL)
_SOURCE = re.compile(r"\[enforce fail at [^\]]*\]\s*")
_PATH = re.compile(r"(?:/[\w.+-]+)+/site-packages/")


def said(error: BaseException, limit: int = 300) -> str:
    """Return ``Type: first line of the message`` without what differs between two runs or two machines."""
    text = _SOURCE.sub("", _INTERNAL.sub("", str(error)))
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    line = _PATH.sub("", without_addresses(line))
    if len(line) > limit:
        line = line[: limit - 1].rstrip() + "…"
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def without_addresses(text: str) -> str:
    """Return ``text`` with every memory address written as ``0x…``."""
    return _ADDRESS.sub("0x…", text)


def plain(tensor: Tensor) -> Tensor:
    """Return the tensor cut from its graph, with lazy conjugation and negation carried out."""
    return tensor.detach().resolve_conj().resolve_neg()


def close(one: Any, other: Any) -> bool:
    """Return whether two trees hold tensors of equal shape, dtype and, within 1e-4, value."""
    first, second = tensors(one), tensors(other)
    return len(first) == len(second) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.allclose(plain(a), plain(b), rtol=1e-4, atol=1e-6, equal_nan=True)
        for a, b in zip(first, second)
    )


def same_metadata(got: Any, want: Any) -> str:
    """Return ``works``, ``works, other strides`` or ``other shape or dtype``; values are not looked at."""

    def key(tree: Any, strides: bool) -> list:
        return [(tuple(t.shape), t.dtype, t.stride() if strides else None) for t in tensors(tree)]

    def strided(tree: Any) -> bool:
        return all(t.layout == torch.strided for t in tensors(tree))

    if key(got, False) != key(want, False):
        return "other shape or dtype"
    if strided(got) and strided(want) and key(got, True) != key(want, True):
        return "works, other strides"
    return "works"


def weights(outputs: list[Tensor]) -> list[Tensor]:
    """Return a tensor of numbers from 1 to 2 beside each output: the plain sum of a softmax is constant, a weighted one is not."""
    return [
        torch.linspace(1, 2, output.numel()).reshape(output.shape).to(output.dtype)
        if output.layout == torch.strided
        else torch.ones_like(output)
        for output in outputs
    ]


def ones(outputs: list[Tensor]) -> list[Tensor]:
    """Return a tensor of ones beside each output: the gradient of their sum."""
    return [torch.ones_like(output) for output in outputs]
