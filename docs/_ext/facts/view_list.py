"""Calls whose result may lie in the memory of their input, as text, and what PyTorch's page on view operations lists.

Torch is not imported here. Each call is measured on the tensors of ``INPUTS``.
"""

from __future__ import annotations

import ast
import re

INPUTS = {
    "x": "values(4, 6)",
    "v": "values(4)",
    "c": "values(2, 3, 4)",
    "z": "torch.complex(values(4, 6), values(4, 6, seed=1))",
    "p": "values(4, 3, 2)",
    "s": "torch.eye(3, dtype=torch.float64).to_sparse().coalesce()",
    "i": "torch.arange(6).reshape(2, 3)",
}

# What the page "Tensor Views" of PyTorch lists, in its order: its name for it -> the call that is measured here.
OFFICIAL = {
    "basic slicing and indexing": "x[0, 2:]",
    "adjoint": "x.adjoint()",
    "as_strided": "x.as_strided((2, 2), (1, 2))",
    "detach": "x.detach()",
    "diagonal": "x.diagonal()",
    "expand": "x[:1].expand(4, 6)",
    "expand_as": "x[:1].expand_as(x)",
    "movedim": "c.movedim(0, 1)",
    "narrow": "x.narrow(0, 1, 2)",
    "permute": "x.permute(1, 0)",
    "select": "x.select(0, 1)",
    "squeeze": "x[:1].squeeze()",
    "transpose": "x.transpose(0, 1)",
    "t": "x.t()",
    "T": "x.T",
    "H": "x.H",
    "mT": "x.mT",
    "mH": "x.mH",
    "real": "z.real",
    "imag": "z.imag",
    "view_as_real": "torch.view_as_real(z)",
    "unflatten": "x.unflatten(1, (2, 3))",
    "unfold": "x.unfold(1, 2, 2)",
    "unsqueeze": "x.unsqueeze(0)",
    "view": "x.view(6, 4)",
    "view_as": "x.view_as(x.new_empty(6, 4))",
    "unbind": "x.unbind()",
    "split": "x.split(2)",
    "hsplit": "x.hsplit(2)",
    "vsplit": "x.vsplit(2)",
    "tensor_split": "x.tensor_split(2)",
    "split_with_sizes": "x.split_with_sizes([1, 3])",
    "swapaxes": "x.swapaxes(0, 1)",
    "swapdims": "x.swapdims(0, 1)",
    "chunk": "x.chunk(2)",
    "indices": "s.indices()",
    "values": "s.values()",
    "reshape": "x.reshape(6, 4)",
    "reshape_as": "x.reshape_as(x.new_empty(6, 4))",
    "flatten": "x.flatten()",
    "contiguous": "x.contiguous()",
}

# Not on that page; each is asked the same question.
OTHERS = (
    "torch.view_as_complex(p)",
    "c.dsplit(2)",
    "c.moveaxis(0, 1)",
    "torch.broadcast_to(x[:1], (4, 6))",
    "torch.broadcast_tensors(x[:1], x)",
    "torch.meshgrid(v, v, indexing='ij')",
    "z.conj()",
    "torch.linalg.diagonal(x)",
    "torch.atleast_1d(x)",
    "torch.atleast_2d(v)",
    "torch.atleast_3d(x)",
    "x.unsafe_chunk(2)",
    "x.unsafe_split(2)",
    "x.data",
    "torch.einsum('ij->ji', x)",
    "torch.einsum('ii->i', x[:4, :4])",
    "x.ravel()",
    "torch.positive(x)",
    "x.conj()",
    "x.conj_physical()",
    "x.resolve_conj()",
    "x.resolve_neg()",
    "x.to(torch.float64)",
    "x.double()",
    "x.type_as(x)",
    "x.cpu()",
    "torch.cartesian_prod(v)",
    "torch.as_tensor(x)",
    "torch.asarray(x)",
    "torch.nn.functional.dropout(x, training=False)",
    "x.requires_grad_()",
    "x.numpy()",
    "torch.from_numpy(x.numpy())",
    "torch.from_dlpack(x)",
    "torch.block_diag(x)",
    "x.nan_to_num()",
    "x.flip(0)",
    "x.rot90()",
    "x.index_select(0, torch.tensor([0]))",
    "torch.cat([x])",
    "x.repeat(1, 1)",
    "x.tile((1,))",
    "x.roll(0, 0)",
    "x.take_along_dim(x.new_zeros(4, 1, dtype=torch.int64), 1)",
    "x.masked_select(x > 0)",
    "x.clone()",
    "torch.tensor(x.tolist())",
    "x.sum_to_size(4, 6)",
)

# Finer points: calls of the same name whose answers differ.
FINER = {
    "real and imag": ("z.real", "torch.real(x)"),
    "conjugates": ("z.conj()", "x.conj()", "z.conj().resolve_conj()", "x.H", "x.adjoint()"),
    "flatten": ("v.flatten()", "x.flatten()", "x.t().flatten()"),
    "reshape": ("x.reshape(4, 6)", "x.reshape(6, 4)", "x.t().reshape(4, 6)"),
    "view": ("x.view(4, 6)", "x.t().view(4, 6)", "x.t().view(6, 4)", "x.view(torch.int64)"),
    "indexing": (
        "x[0]",
        "x[0:2]",
        "x[:]",
        "x[...]",
        "x[None]",
        "x[True]",
        "x[torch.tensor(0)]",
        "x[[0, 1]]",
        "x[x > 0]",
        "x[torch.tensor([0, 1])]",
    ),
    "contiguous": ("x.contiguous()", "x.t().contiguous()", "x[:, :1].contiguous()", "x[:1].t().contiguous()"),
    "to": ("x.to(torch.float64)", "x.to(torch.float32)", "x.to(torch.float64, copy=True)"),
    "squeeze": ("x.squeeze()", "x[:1].squeeze()"),
    "expand": ("x.expand(4, 6)", "x.expand(-1, -1)", "x[:1].expand(4, 6)", "torch.broadcast_to(x, (4, 6))"),
    "detach": ("x.detach()", "x.data", "x.detach().clone()"),
    "chunk and split": ("x.chunk(1)", "x.split(9)", "x.unsafe_chunk(2)"),
}


def measured_calls() -> tuple[str, ...]:
    """Return every call that is measured for the page, once, in the order of its first mention."""
    finer = (call for group in FINER.values() for call in group)
    return tuple(dict.fromkeys((*OFFICIAL.values(), *OTHERS, *finer)))


def names() -> set[str]:
    """Return every operation that the page has a call of, as torch spells it: ``t``, ``linalg.diagonal``, ``__getitem__``."""
    return {*OFFICIAL, *map(name_of, measured_calls())}


def name_of(call: str) -> str:
    """Return what a call calls last, without ``torch.``: ``contiguous`` for ``x.t().contiguous()``."""
    node = ast.parse(call, mode="eval").body
    node = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Subscript):
        return "__getitem__"
    text = ast.unparse(node)
    return text.removeprefix("torch.") if text.startswith("torch.") else text.rpartition(".")[2]


def inputs_of(call: str) -> dict[str, str]:
    """Return the inputs that the text of a call mentions, with the expressions that make them."""
    mentioned = set(re.findall(r"(?<![\w.'])([a-z])(?=[\[\].,) ]|$)", call))
    return {name: expression for name, expression in INPUTS.items() if name in mentioned}
