"""Facts about what a call leaves behind: bytes that a graph holds, gradients, what a later call does."""

from __future__ import annotations

import ast
import warnings
from typing import Any

import torch

from .tree import said, without_addresses


def effect(setup: str, code: str) -> str:
    """Run ``setup`` and ``code`` and return the value of the last expression as text, or the error.

    They see ``torch`` and nothing else, as a reader does who pastes them below ``import torch``.
    Booleans are told as yes and no. An error in ``setup`` is raised: it is a fault of the sample.
    """
    names: dict[str, Any] = {"torch": torch}
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
