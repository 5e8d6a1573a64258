"""Turn the text of a call into something that can be run again and again on fresh tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .tree import is_smooth, tensors, tree_map

DTYPES = (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
)  # fmt: skip


def dtype_name(dtype: torch.dtype) -> str:
    """Return ``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Sample:
    """One call of an operation: the function and the arguments it is measured on.

    ``args[0]`` is *the input* (a tensor, or a list of tensors for ``cat``); probes copy the arguments before each call.
    ``with_out`` takes the arguments and ``out=``; ``in_place`` is the twin that writes into its input; both may be missing.
    ``finish`` takes what is free out of a result before it is differentiated (the sign of an eigenvector).
    ``checked`` stands in for the function where gradients are held against finite differences; ``options`` go to gradcheck.
    """

    function: Callable[..., Any]
    args: tuple
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    with_out: Callable[..., Any] | None = None
    in_place: Callable[..., Any] | None = None
    finish: Callable[[Any], Any] = lambda result: result
    checked: Callable[..., Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple:
        """Everything that is handed over: ``(args, kwargs)``."""
        return (self.args, dict(self.kwargs))


def run(function: Callable[..., Any], arguments: tuple, **extra: Any) -> Any:
    """Call ``function``; a random operation draws the same numbers at every call."""
    torch.manual_seed(0)
    args, kwargs = arguments
    return function(*args, **kwargs, **extra)


def copied(sample: Sample, grad: bool = False, layout: str = "given") -> tuple:
    """Return the arguments of ``sample``, copied.

    ``layout`` is ``given``, or ``permuted``: every tensor of two dimensions or more holds the same values at the same
    places with its first and last dimension swapped in memory.
    With ``grad`` each floating point or complex tensor requires a gradient; only those that do in the sample, where any does.
    """
    marked = any(tensor.requires_grad for tensor in tensors(sample.arguments))

    def one(holder: Tensor | np.ndarray) -> Tensor | np.ndarray:
        if isinstance(holder, np.ndarray):
            return holder.copy() if layout == "given" else np.asfortranarray(holder)
        copy = _clone(holder)
        if layout == "permuted" and copy.dim() >= 2 and copy.layout == torch.strided:
            strides = copy.transpose(0, -1).contiguous().transpose(0, -1).stride()
            copy = torch.empty_strided(copy.shape, strides, dtype=copy.dtype).copy_(copy)
        return copy.requires_grad_(grad and is_smooth(copy) and (holder.requires_grad or not marked))

    return tree_map(one, sample.arguments, kinds=(Tensor, np.ndarray))


def _clone(tensor: Tensor) -> Tensor:
    tensor = tensor.detach()
    if tensor.layout == torch.strided and not tensor.is_conj() and not tensor.is_neg():
        storage = tensor.untyped_storage()
        if storage.nbytes() != tensor.numel() * tensor.element_size():
            # A part of a larger storage: keep the rest, as_strided may reach into it.
            whole = tensor.new_empty(0).set_(storage.clone(), tensor.storage_offset(), tensor.size(), tensor.stride())
            return whole
    return tensor.clone()


# -------------------------------------------------------------------------------------------- from text


def values(
    *shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return a tensor of distinct values in a fixed shuffled order, away from zero, from ties and from halves.

    Integers count from 1, booleans alternate, complex numbers get a mirrored imaginary part.
    """
    count = int(np.prod(shape)) if shape else 1
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    if dtype == torch.bool:
        numbers = torch.arange(count) % 2
    elif dtype.is_floating_point or dtype.is_complex:
        numbers = (order.double() + 0.37) / count * (high - low) + low
    else:
        numbers = order + 1
    tensor = numbers.reshape(shape).to(dtype)
    return tensor + 1j * tensor.flip(-1) if dtype.is_complex and tensor.dim() else tensor


def namespace(dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """Return the names that the text of a sample may use; ``values`` makes tensors of ``dtype``."""

    def of_dtype(*shape: int, **options: Any) -> Tensor:
        return values(*shape, **{"dtype": dtype, **options})

    return {"torch": torch, "np": np, "Tensor": Tensor, "F": torch.nn.functional, "values": of_dtype, "dtype": dtype}


def sample(
    call: str, inputs: Mapping[str, str], first: tuple[str, ...] = (), dtype: torch.dtype = torch.float64
) -> Sample:
    """Return the sample that the text ``call`` describes.

    ``inputs`` maps each tensor's name to the expression that makes it, in order; later ones may use earlier ones.
    ``first`` names the tensors that together are the input; by default the first one alone.
    """
    names = namespace(dtype)
    made: dict[str, Any] = {}
    for name, expression in inputs.items():
        made[name] = eval(expression, {**names, **made})
    first = first or tuple(inputs)[:1]
    rest = tuple(name for name in inputs if name not in first)
    group = [made[name] for name in first]
    args = ((group if len(first) > 1 else group[0]) if first else None, *(made[name] for name in rest))

    def function_of(text: str | None, *extra: str) -> Callable[..., Any] | None:
        if text is None:
            return None
        bare = eval(f"lambda {', '.join([*first, *rest, *extra])}: {text}", names)
        if len(first) > 1:
            return lambda head, *tail, **out: bare(*head, *tail, **out)
        return bare if first else lambda _, **out: bare(**out)

    return Sample(
        function=function_of(call),
        args=args,
        with_out=function_of(with_out(call), "out"),
        in_place=function_of(in_place_twin(call)) if len(first) == 1 else None,
    )


def with_out(call: str) -> str | None:
    """Return ``call`` with ``out=out``, in the form ``torch.NAME(...)`` where torch has that function; else None."""
    tree = ast.parse(call, mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Attribute):
        return None
    if not _is_module(tree.func.value):
        if not hasattr(torch, tree.func.attr):
            return None
        tree.args.insert(0, tree.func.value)
        tree.func.value = ast.Name("torch")
    tree.keywords.append(ast.keyword("out", ast.Name("out")))
    return ast.unparse(tree)


def in_place_twin(call: str) -> str | None:
    """Return ``x.NAME_(...)`` for ``torch.NAME(x, ...)`` or ``x.NAME(...)`` where tensors have that method; else None."""
    tree = ast.parse(call, mode="eval").body
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Attribute):
        return None
    name = tree.func.attr + "_"
    if tree.func.attr.endswith("_") or not hasattr(Tensor, name):
        return None
    owner = tree.func.value
    if _is_module(owner):
        if not tree.args or not isinstance(tree.args[0], ast.Name):
            return None
        owner = tree.args.pop(0)
    tree.func = ast.Attribute(owner, name)
    return ast.unparse(tree)


def _is_module(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "Tensor", "np")
