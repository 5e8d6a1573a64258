"""What is measured, as text: the calls of each operation, the inputs they are made on, and calls that go wrong.

Text, so that a box can print the very call that was measured, and so that nothing here needs torch.
``values(2, 3)`` makes a tensor of distinct numbers in the dtype that is being measured; see ``samples.values``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """One measured call: its text, NumPy's way to write it, its inputs by name, and which of them are the input."""

    text: str
    numpy: str | None = None
    inputs: Mapping[str, str] = field(default_factory=lambda: {"x": "values(2, 3)"})
    first: tuple[str, ...] = ()


@dataclass(frozen=True)
class Effect:
    """What a call leaves behind: a question in a few words, and lines of code whose last expression is the answer."""

    question: str
    code: str


@dataclass(frozen=True)
class Operation:
    """An operation as torch spells it (``path``, below ``torch.``), with what is measured on it.

    ``calls``: the first is the one that the box prints; the others are there where answers depend on arguments.
    ``bad``: calls that go wrong or surprise; they see the inputs of the first call.
    ``effects``: for what returns nothing of interest; each runs after ``setup``, in names of its own.
    """

    name: str
    path: str
    calls: tuple[Call, ...] = ()
    bad: tuple[str, ...] = ()
    setup: str = ""
    effects: tuple[Effect, ...] = ()

    def digest(self) -> str:
        """Return a short hash of everything that is measured here; it changes when a sample changes."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


def _x(shape: str = "2, 3", **others: str) -> dict[str, str]:
    return {"x": f"values({shape})", **others}


MASK = "torch.tensor([[True, False, True], [False, True, False]])"
COLUMNS = "torch.tensor([[0, 2], [1, 0]])"
OTHER = "values(2, 3, seed=5)"

_TWO = _x(y="values(2, 3, seed=1)")

# Counts the bytes that graphs keep for backward, in torch alone: a reader can run what a box shows. A box folds it away.
COUNT = """\
import weakref
alive = weakref.WeakSet()
class Saved:
    def __init__(self, tensor):
        self.tensor = tensor.detach()
        alive.add(self)
count = torch.autograd.graph.saved_tensors_hooks(Saved, lambda saved: saved.tensor)
held = lambda: f"{sum(saved.tensor.nbytes for saved in alive):,} bytes"
"""
_ONES = f"{COUNT}x = torch.ones(1000, requires_grad=True)"
_HELD = f"""\
{_ONES}
with count:
    loss = (x * x).exp().sum()"""

_ALL = (
    # ------------------------------------------------------------------------------------ gradients
    Operation(
        "detach",
        "Tensor.detach",
        (Call("x.detach()"),),
        setup="x = torch.ones(3, requires_grad=True)\ny = x.exp()",
        effects=(
            Effect("Result requires grad", "y.detach().requires_grad"),
            Effect("Result counts as a view (_is_view())", "y.detach()._is_view()"),
            Effect("Write into y.detach(), then backward", "y.detach().zero_()\ny.sum().backward()\nx.grad"),
            Effect("Write into y.data, then backward (exact: e)", "y.data.zero_()\ny.sum().backward()\nx.grad"),
        ),
    ),
    Operation(
        "detach_",
        "Tensor.detach_",
        (Call("x.detach_()"),),
        bad=("torch.ones(4, requires_grad=True).mul(2).split(2)[0].detach_()",),
        setup="x = torch.ones(3, requires_grad=True)\ny = x * 2",
        effects=(
            Effect("y requires grad afterwards", "y.detach_().requires_grad"),
            Effect("y is a leaf afterwards", "y.detach_().is_leaf"),
            Effect("A result made before still reaches x", "z = y * 3\ny.detach_()\nz.sum().backward()\nx.grad"),
        ),
    ),
    Operation(
        "backward",
        "Tensor.backward",
        bad=(
            "torch.ones(3, requires_grad=True).mul(2).backward()",
            "torch.ones(()).backward()",
            "torch.ones(3, requires_grad=True).mul(2).backward(torch.ones(2))",
            "torch.ones(3, requires_grad=True).mul(2).backward(torch.ones(()))",
            "torch.ones(3, requires_grad=True).mul(2).backward(torch.ones(3).long())",
            "torch.ones(3, requires_grad=True).mul(2).backward(1.0)",
        ),
        setup="x = torch.ones(3, requires_grad=True)\ny = x * 2",
        effects=(
            Effect("Returns", "y.sum().backward()"),
            Effect("x.grad after y.sum().backward()", "y.sum().backward()\nx.grad"),
            Effect("x.grad after y.backward(torch.ones(3))", "y.backward(torch.ones(3))\nx.grad"),
            Effect(
                "x.grad after y.backward(torch.tensor([1.0, 10.0, 100.0]))",
                "y.backward(torch.tensor([1.0, 10.0, 100.0]))\nx.grad",
            ),
            Effect("y.backward() without a gradient", "y.backward()"),
            Effect(
                "x.grad after a second, new forward and backward",
                "y.sum().backward()\n(x * 2).sum().backward()\nx.grad",
            ),
            Effect(
                "y.grad afterwards",
                "import warnings\ny.sum().backward()\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    answer = y.grad\nanswer",
            ),
            Effect(
                "A gradient in float64 for a float32 result",
                "y.backward(torch.ones(3, dtype=torch.float64))\nx.grad.dtype",
            ),
            Effect("y.backward(torch.ones(3), inputs=[y])", "y.backward(torch.ones(3), inputs=[y])\nx.grad"),
        ),
    ),
    Operation(
        "retain_graph",
        "Tensor.backward",
        bad=("torch.ones(()).backward(retain_graph=True)",),
        setup=_HELD,
        effects=(
            Effect("Held by the graph after forward", "held()"),
            Effect("Held after backward()", "loss.backward()\nheld()"),
            Effect("Held after backward(retain_graph=True)", "loss.backward(retain_graph=True)\nheld()"),
            Effect("Held after backward(create_graph=True)", "loss.backward(create_graph=True)\nheld()"),
            Effect("Held after del loss, without backward", "del loss\nheld()"),
            Effect("Second backward() after backward()", "loss.backward()\nloss.backward()"),
            Effect(
                "x.grad after backward(retain_graph=True) and backward()",
                'loss.backward(retain_graph=True)\nonce = x.grad.clone()\nloss.backward()\n"doubled" if torch.equal(x.grad, 2 * once) else x.grad',
            ),
            Effect(
                "(x + 1).sum(), which saves nothing, walked twice",
                "loss = (x + 1).sum()\nloss.backward()\nloss.backward()\nx.grad.unique()",
            ),
            Effect(
                "Two losses over one trunk, one backward() each",
                "trunk = (x * x).exp()\ntrunk.sum().backward()\ntrunk.mean().backward()",
            ),
            Effect(
                "Two losses over one trunk, (a + b).backward()",
                'trunk = (x * x).exp()\n(trunk.sum() + trunk.mean()).backward()\n"works"',
            ),
        ),
    ),
    Operation(
        "requires_grad_",
        "Tensor.requires_grad_",
        (Call("x.requires_grad_()"),),
        bad=("torch.arange(3).requires_grad_()", "torch.ones(3, requires_grad=True).mul(2).requires_grad_(False)"),
        setup="x = torch.ones(3)",
        effects=(
            Effect("Returns x itself", "x.requires_grad_() is x"),
            Effect("x is a leaf afterwards", "x.requires_grad_().is_leaf"),
            Effect("A result made before requires grad", "y = x * 2\nx.requires_grad_()\ny.requires_grad"),
        ),
    ),
    Operation(
        "no_grad",
        "no_grad",
        setup=_ONES,
        effects=(
            Effect(
                "Held by the graph of (x * x).exp(), recording",
                "with count:\n    y = (x * x).exp()\nheld()",
            ),
            Effect("Held under no_grad", "with count, torch.no_grad():\n    y = (x * x).exp()\nheld()"),
            Effect("Result requires grad", "with torch.no_grad():\n    y = x * 2\ny.requires_grad"),
            Effect(
                "A leaf made inside can require grad",
                "with torch.no_grad():\n    w = torch.ones(3, requires_grad=True)\nw.requires_grad",
            ),
            Effect("In-place write into a leaf", "with torch.no_grad():\n    x.mul_(2)\nx.requires_grad"),
            Effect(
                "Result used in a graph later",
                "with torch.no_grad():\n    y = x * 2\n(y * x).sum().backward()\nx.grad.unique()",
            ),
        ),
    ),
    Operation(
        "inference_mode",
        "inference_mode",
        setup=_ONES,
        effects=(
            Effect(
                "Held by the graph of (x * x).exp()",
                "with count, torch.inference_mode():\n    y = (x * x).exp()\nheld()",
            ),
            Effect("Result is an inference tensor", "with torch.inference_mode():\n    y = x * 2\ny.is_inference()"),
            Effect(
                "Result saved for backward later",
                "with torch.inference_mode():\n    y = x * 2\n(y * x).sum().backward()",
            ),
            Effect("In-place write into the result later", "with torch.inference_mode():\n    y = x * 2\ny.mul_(2)"),
            Effect(
                "A clone of the result used in a graph",
                "with torch.inference_mode():\n    y = x * 2\n(y.clone() * x).sum().backward()\nx.grad.unique()",
            ),
        ),
    ),
    Operation(
        "enable_grad",
        "enable_grad",
        setup=_ONES,
        effects=(
            Effect(
                "Inside no_grad, result requires grad",
                "with torch.no_grad(), torch.enable_grad():\n    y = x * 2\ny.requires_grad",
            ),
            Effect(
                "Inside inference_mode, result requires grad",
                "with torch.inference_mode(), torch.enable_grad():\n    y = x * 2\ny.requires_grad",
            ),
            Effect(
                "Held by the graph inside no_grad",
                "with count, torch.no_grad(), torch.enable_grad():\n    y = (x * x).exp()\nheld()",
            ),
        ),
    ),
    Operation(
        "zero_grad",
        "optim.Optimizer.zero_grad",
        setup="w = torch.ones(3, requires_grad=True)\noptimizer = torch.optim.SGD([w], lr=0.1)\n(2 * w).sum().backward()\nkept = w.grad",
        effects=(
            Effect("w.grad afterwards", "optimizer.zero_grad()\nw.grad"),
            Effect("w.grad after zero_grad(set_to_none=False)", "optimizer.zero_grad(set_to_none=False)\nw.grad"),
            Effect("A reference to the old gradient afterwards", "optimizer.zero_grad()\nkept"),
            Effect("The same with set_to_none=False", "optimizer.zero_grad(set_to_none=False)\nkept"),
            Effect("w.grad without it, after a second backward", "(2 * w).sum().backward()\nw.grad"),
        ),
    ),
    Operation(
        "retain_grad",
        "Tensor.retain_grad",
        bad=("torch.ones(3).retain_grad()",),
        setup="x = torch.ones(3, requires_grad=True)\ny = x * 2",
        effects=(
            Effect(
                "y.grad without it",
                "import warnings\nwith warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    y.sum().backward()\n    answer = y.grad\nanswer",
            ),
            Effect("y.grad with it", "y.retain_grad()\ny.sum().backward()\ny.grad"),
            Effect("On a leaf", 'x.retain_grad()\n"does nothing" if not x.retains_grad else "retains"'),
        ),
    ),
    Operation(
        "register_hook",
        "Tensor.register_hook",
        bad=("torch.ones(3).register_hook(print)",),
        setup="x = torch.ones(3, requires_grad=True)\ny = x * 2",
        effects=(
            Effect("A hook that returns nothing", "y.register_hook(lambda grad: None)\ny.sum().backward()\nx.grad"),
            Effect(
                "A hook that returns another gradient",
                "y.register_hook(lambda grad: grad * 10)\ny.sum().backward()\nx.grad",
            ),
            Effect(
                "A hook that returns another shape", "y.register_hook(lambda grad: torch.ones(2))\ny.sum().backward()"
            ),
            Effect(
                "After handle.remove()",
                "handle = y.register_hook(lambda grad: grad * 10)\nhandle.remove()\ny.sum().backward()\nx.grad",
            ),
            Effect(
                "A hook that writes into the gradient",
                "y.register_hook(lambda grad: grad.mul_(10))\ny.sum().backward()\nx.grad",
            ),
        ),
    ),
    Operation(
        "autograd.grad",
        "autograd.grad",
        bad=(
            "torch.autograd.grad(torch.ones(3, requires_grad=True) * 2, torch.ones(3))",
            "torch.autograd.grad(torch.ones(2, requires_grad=True).sum(), torch.ones(2, requires_grad=True))",
        ),
        setup=_HELD,
        effects=(
            Effect("x.grad afterwards", "torch.autograd.grad(loss, x)\nx.grad"),
            Effect("Held after grad(loss, x)", "torch.autograd.grad(loss, x)\nheld()"),
            Effect(
                "Held after grad(loss, x, create_graph=True)",
                "grad, = torch.autograd.grad(loss, x, create_graph=True)\nheld()",
            ),
            Effect("Result requires grad", "torch.autograd.grad(loss, x)[0].requires_grad"),
            Effect(
                "Result requires grad with create_graph=True",
                "torch.autograd.grad(loss, x, create_graph=True)[0].requires_grad",
            ),
            Effect(
                "An input that loss does not use, allow_unused=True",
                "torch.autograd.grad(loss, torch.ones(2, requires_grad=True), allow_unused=True)[0]",
            ),
        ),
    ),
    # ------------------------------------------------------------------------------------ size, stride, leaving torch
    Operation(
        "numel",
        "Tensor.numel",
        (Call("x.numel()", "x.size"),),
        bad=("x.numel", "len(torch.tensor(1.0))"),
        setup="wide = torch.ones(1).expand(10**9)",
        effects=(
            Effect("Elements of wide", 'f"{wide.numel():,}"'),
            Effect("Bytes of its storage", "wide.untyped_storage().nbytes()"),
            Effect("wide.nbytes", 'f"{wide.nbytes:,}"'),
        ),
    ),
    Operation("stride", "Tensor.stride", (Call("x.stride()"),), bad=("x.stride(2)",)),
    Operation(
        "item",
        "Tensor.item",
        (Call("x.item()", "x.item()", _x("")),),
        bad=("torch.ones(2, 3).item()", "torch.tensor([]).item()"),
    ),
    Operation("tolist", "Tensor.tolist", (Call("x.tolist()", "x.tolist()"),)),
    Operation(
        "numpy",
        "Tensor.numpy",
        (Call("x.numpy()"),),
        bad=(
            "torch.ones(2, requires_grad=True).numpy()",
            "torch.ones(2, dtype=torch.bfloat16).numpy()",
            "torch.ones(2, device='meta').numpy()",
        ),
    ),
    Operation(
        "from_numpy",
        "from_numpy",
        (Call("torch.from_numpy(a)", inputs={"a": "values(2, 3).numpy()"}),),
        bad=(
            "torch.from_numpy([1.0, 2.0])",
            "torch.from_numpy(a[::-1])",
            "torch.from_numpy(np.array(['a']))",
            "torch.from_numpy(np.float64(1.0))",
        ),
    ),
    Operation(
        "to",
        "Tensor.to",
        (Call("x.to(torch.float64)"), Call("x.to(torch.float32)"), Call("x.to(torch.float64, copy=True)")),
        bad=("x.to(torch.float64) is x", "x.to('nowhere')", "torch.ones(2, device='meta').to('cpu')"),
    ),
    # ------------------------------------------------------------------------------------ copies
    Operation("clone", "clone", (Call("x.clone()", "np.copy(x)"),)),
    Operation(
        "repeat",
        "Tensor.repeat",
        (
            Call("x.repeat(2, 2)", "np.tile(x, (2, 2))"),
            Call("x.repeat(2, 1, 1)", "np.tile(x, (2, 1, 1))"),
            Call("x.repeat(1, 1)", "np.tile(x, (1, 1))"),
        ),
        bad=(
            "x.repeat(2)",
            "x.repeat(-1, 1)",
            "x.repeat(2.0, 1)",
            "x.repeat(0, 1).shape",
            "torch.ones(1).repeat(2**40)",
        ),
    ),
    Operation(
        "repeat_interleave",
        "repeat_interleave",
        (
            Call("torch.repeat_interleave(x, 2)", "np.repeat(x, 2)"),
            Call("torch.repeat_interleave(x, 2, dim=0)", "np.repeat(x, 2, axis=0)"),
            Call(
                "torch.repeat_interleave(x, counts, dim=0)",
                "np.repeat(x, counts, axis=0)",
                _x(counts="torch.tensor([1, 2])"),
            ),
            Call("torch.repeat_interleave(x, counts, dim=0, output_size=3)", None, _x(counts="torch.tensor([1, 2])")),
            Call("torch.repeat_interleave(x, 1)", "np.repeat(x, 1)"),
        ),
        bad=(
            "torch.repeat_interleave(x, torch.tensor([1, 2, 3]), dim=0)",
            "torch.repeat_interleave(x, -1)",
            "torch.repeat_interleave(x, torch.tensor([1.0, 2.0]), dim=0)",
            "torch.repeat_interleave(x, torch.tensor([1, 2]), dim=0, output_size=5)",
            "torch.repeat_interleave(x, torch.tensor([-1, 2]), dim=0)",
            "torch.repeat_interleave(torch.tensor([2, -1, -1]), output_size=0)",
            "torch.repeat_interleave(x, [1, 2], dim=0)",
            "torch.repeat_interleave(x, 2, dim=2)",
        ),
    ),
    Operation(
        "tile",
        "tile",
        (
            Call("torch.tile(x, (2, 2))", "np.tile(x, (2, 2))"),
            Call("torch.tile(x, (2,))", "np.tile(x, (2,))"),
            Call("torch.tile(x, (1, 1))", "np.tile(x, (1, 1))"),
        ),
        bad=("torch.tile(x, (-1,))", "torch.tile(x, 2)"),
    ),
    # ------------------------------------------------------------------------------------ views
    Operation(
        "expand",
        "Tensor.expand",
        (
            Call("x.expand(4, 3)", "np.broadcast_to(x, (4, 3))", _x("1, 3")),
            Call("x.expand(2, -1, 3)", None, _x("1, 3")),
        ),
        bad=("torch.ones(2, 3).expand(4, 3)", "x.expand(3)", "x.expand(-1, 1, 3)"),
    ),
    Operation(
        "expand_as",
        "Tensor.expand_as",
        (Call("x.expand_as(y)", "np.broadcast_to(x, y.shape)", _x("1, 3", y="values(4, 3)")),),
        bad=("x.expand_as(torch.ones(3))",),
    ),
    Operation(
        "broadcast_to",
        "broadcast_to",
        (Call("torch.broadcast_to(x, (4, 3))", "np.broadcast_to(x, (4, 3))", _x("1, 3")),),
        bad=("torch.broadcast_to(torch.ones(2, 3), (4, 3))",),
    ),
    Operation(
        "reshape",
        "reshape",
        (Call("x.reshape(3, 2)", "np.reshape(x, (3, 2))"),),
        bad=("x.reshape(4, 2)", "x.reshape(-1, -1)", "x.reshape(-1, 4)"),
    ),
    Operation(
        "view",
        "Tensor.view",
        (Call("x.view(3, 2)", "x.reshape(3, 2)"),),
        bad=("x.t().view(6)", "x.view(4, 2)", "x.view(-1, -1)", "x[:, :2].view(4)"),
    ),
    Operation(
        "permute",
        "permute",
        (Call("x.permute(1, 0)", "np.transpose(x, (1, 0))"),),
        bad=("x.permute(0)", "x.permute(0, 0)", "x.permute(0, 2)"),
    ),
    Operation(
        "transpose",
        "transpose",
        (Call("x.transpose(0, 1)", "np.swapaxes(x, 0, 1)"),),
        bad=("x.transpose(0, 2)", "x.transpose(0)"),
    ),
    Operation("contiguous", "Tensor.contiguous", (Call("x.contiguous()", "np.ascontiguousarray(x)"),)),
    Operation("flatten", "flatten", (Call("torch.flatten(x)", "np.ravel(x)"),), bad=("torch.flatten(x, 1, 0)",)),
    Operation(
        "squeeze",
        "squeeze",
        (Call("torch.squeeze(x)", "np.squeeze(x)", _x("2, 1, 3")), Call("torch.squeeze(x, 0)", None, _x("2, 3"))),
        bad=("torch.squeeze(x, 3)", "torch.squeeze(x, 0).shape"),
    ),
    Operation(
        "unsqueeze",
        "unsqueeze",
        (Call("torch.unsqueeze(x, 0)", "np.expand_dims(x, 0)"),),
        bad=("torch.unsqueeze(x, 4)", "torch.unsqueeze(x)"),
    ),
    Operation(
        "narrow",
        "narrow",
        (Call("torch.narrow(x, 1, 0, 2)", "x[:, 0:2]"),),
        bad=("torch.narrow(x, 1, 2, 2)", "torch.narrow(x, 1, 0, -1)"),
    ),
    Operation(
        "unfold",
        "Tensor.unfold",
        (Call("x.unfold(1, 2, 1)", "np.lib.stride_tricks.sliding_window_view(x, 2, 1)"),),
        bad=("x.unfold(1, 4, 1)", "x.unfold(1, 2, 0)"),
    ),
    Operation(
        "diagonal", "diagonal", (Call("torch.diagonal(x)", "np.diagonal(x)"),), bad=("torch.diagonal(torch.ones(3))",)
    ),
    Operation(
        "real",
        "real",
        (
            Call(
                "torch.real(z)",
                "np.real(z)",
                {"z": "torch.complex(values(2, 3), values(2, 3, seed=1)) if dtype == torch.float64 else values(2, 3)"},
            ),
            Call("torch.real(x)", "np.real(x)"),
        ),
    ),
    # ------------------------------------------------------------------------------------ joining and cutting
    Operation(
        "cat",
        "cat",
        (Call("torch.cat([x, y])", "np.concatenate([x, y])", _TWO, ("x", "y")),),
        bad=(
            "torch.cat([x, y.t()])",
            "torch.cat([])",
            "torch.cat([x, y.int()]).dtype",
            "torch.cat([x, torch.ones(3)])",
            "torch.cat(x, y)",
        ),
    ),
    Operation(
        "stack",
        "stack",
        (Call("torch.stack([x, y])", "np.stack([x, y])", _TWO, ("x", "y")),),
        bad=("torch.stack([x, y.t()])", "torch.stack([])", "torch.stack([x, y], dim=4)"),
    ),
    Operation(
        "split",
        "split",
        (Call("torch.split(x, 1)", "np.split(x, 2)"),),
        bad=("torch.split(x, [1, 2])", "torch.split(x, -1)", "torch.split(x, 0)"),
    ),
    Operation(
        "chunk",
        "chunk",
        (
            Call("torch.chunk(x, 2)", "np.array_split(x, 2)"),
            Call("torch.chunk(x, 2, dim=1)", "np.array_split(x, 2, 1)"),
        ),
        bad=("torch.chunk(x, 0)", "len(torch.chunk(x, 5))"),
    ),
    # ------------------------------------------------------------------------------------ picking and placing
    Operation(
        "gather",
        "gather",
        (Call("torch.gather(x, 1, index)", "np.take_along_axis(x, index, 1)", _x(index=COLUMNS)),),
        bad=(
            "torch.gather(x, 1, torch.tensor([[3]]))",
            "torch.gather(x, 1, torch.tensor([[-1]]))",
            "torch.gather(x, 1, torch.tensor([0]))",
            "torch.gather(x, 1, index.int()).shape",
            "torch.gather(x, 1, torch.zeros(3, 1, dtype=torch.int64))",
        ),
    ),
    Operation(
        "take_along_dim",
        "take_along_dim",
        (Call("torch.take_along_dim(x, index, 1)", "np.take_along_axis(x, index, 1)", _x(index=COLUMNS)),),
        bad=(
            "torch.take_along_dim(x, torch.tensor([[3]]), 1)",
            "torch.take_along_dim(x, torch.tensor([[9]]))",
            "torch.take_along_dim(x, index.int(), 1)",
        ),
    ),
    Operation(
        "index_select",
        "index_select",
        (Call("torch.index_select(x, 1, index)", "np.take(x, index, 1)", _x(index="torch.tensor([0, 2])")),),
        bad=(
            "torch.index_select(x, 1, torch.tensor(3))",
            "torch.index_select(x, 1, torch.tensor([0.0]))",
            "torch.index_select(x, 1, torch.tensor(-1))",
            "torch.index_select(x, 1, torch.tensor([[0]]))",
        ),
    ),
    Operation(
        "scatter",
        "scatter",
        (Call("torch.scatter(x, 1, index, source)", None, _x(index=COLUMNS, source="values(2, 2, seed=3)")),),
        bad=("torch.scatter(x, 1, torch.tensor([[3]]), x)", "torch.scatter(x, 1, index, source.float())"),
    ),
    Operation(
        "scatter_",
        "Tensor.scatter_",
        (
            Call("x.scatter_(1, index, source)", None, _x(index=COLUMNS, source="values(2, 2, seed=3)")),
            Call("x.scatter_(1, index, 1)", None, _x(index=COLUMNS)),
        ),
        bad=(
            "x.scatter_(1, torch.tensor([[3]]), 1.0)",
            "x.scatter_(1, index, source.float())",
            "x.scatter_(1, index, torch.ones(1, 2).double())",
            "torch.ones(2, 3, requires_grad=True).scatter_(1, index, 1.0)",
        ),
    ),
    Operation(
        "scatter_add_",
        "Tensor.scatter_add_",
        (Call("x.scatter_add_(1, index, source)", None, _x(index=COLUMNS, source="values(2, 2, seed=3)")),),
        bad=(
            "x.scatter_add_(1, torch.tensor([[3]]), torch.ones(1, 1).double())",
            "x.scatter_add_(1, index, source.float())",
            "x.scatter_add_(1, index, 1)",
        ),
    ),
    Operation(
        "masked_select",
        "masked_select",
        (Call("torch.masked_select(x, mask)", "x[mask]", _x(mask=MASK)),),
        bad=("torch.masked_select(x, mask.int())", "torch.masked_select(x, mask.t())"),
    ),
    Operation(
        "masked_fill",
        "Tensor.masked_fill",
        (Call("x.masked_fill(mask, 1)", "np.where(mask, np.asarray(1, x.dtype), x)", _x(mask=MASK)),),
        bad=(
            "x.masked_fill(mask.int(), 0)",
            "x.int().masked_fill(mask, 0.5)",
            "x.masked_fill(mask, torch.ones(2))",
            "x.masked_fill(mask.t(), 0)",
        ),
    ),
    Operation(
        "where",
        "where",
        (Call("torch.where(mask, x, y)", "np.where(mask, x, y)", _x(mask=MASK, y=OTHER)),),
        bad=(
            "torch.where(mask.int(), x, y)",
            "torch.where(mask, x, y.int()).dtype",
            "torch.where(mask.t(), x, y)",
            "torch.where(mask, x)",
        ),
    ),
    # ------------------------------------------------------------------------------------ reductions and order
    Operation(
        "sum",
        "sum",
        (Call("torch.sum(x)", "np.sum(x)"), Call("torch.sum(x, 1)", "np.sum(x, 1)")),
        bad=("torch.sum(x, 2)", "torch.sum(torch.tensor([])).item()"),
    ),
    Operation(
        "mean",
        "mean",
        (Call("torch.mean(x)", "np.mean(x)"),),
        bad=("torch.mean(x.long())", "torch.mean(torch.tensor([])).item()"),
    ),
    Operation(
        "max",
        "max",
        (Call("torch.max(x)", "np.max(x)"), Call("torch.max(x, 1)")),
        bad=("torch.max(torch.tensor([]))", "torch.max(x.cfloat())", "torch.max(x, 2)"),
    ),
    Operation(
        "min",
        "min",
        (Call("torch.min(x)", "np.min(x)"), Call("torch.min(x, 1)")),
        bad=("torch.min(torch.tensor([]))", "torch.min(x.cfloat())", "torch.min(x, 2)"),
    ),
    Operation(
        "amax",
        "amax",
        (Call("torch.amax(x)", "np.max(x)"), Call("torch.amax(x, 1)", "np.max(x, 1)")),
        bad=("torch.amax(torch.ones(0, 3))", "torch.amax(torch.ones(0, 3), 0)", "torch.amax(x.cfloat())"),
    ),
    Operation(
        "argmax",
        "argmax",
        (Call("torch.argmax(x)", "np.argmax(x)"),),
        bad=("torch.argmax(torch.tensor([]))", "torch.argmax(x > 0)"),
    ),
    Operation("sort", "sort", (Call("torch.sort(x)", "(np.sort(x), np.argsort(x))"),), bad=("torch.sort(x.cfloat())",)),
    Operation("topk", "topk", (Call("torch.topk(x, 2)"),), bad=("torch.topk(x, 4)", "torch.topk(x > 0, 1)")),
    Operation("unique", "unique", (Call("torch.unique(x)", "np.unique(x)"),), bad=("torch.unique(x.cfloat())",)),
    Operation("cumsum", "cumsum", (Call("torch.cumsum(x, 1)", "np.cumsum(x, 1)"),), bad=("torch.cumsum(x)",)),
    # ------------------------------------------------------------------------------------ element by element
    Operation(
        "clamp",
        "clamp",
        (Call("torch.clamp(x, -1, 1)", "np.clip(x, -1, 1)"),),
        bad=("torch.clamp(x)", "torch.clamp(x, 1, 0).unique().tolist()", "torch.clamp(x.cfloat(), 0)"),
    ),
    Operation("abs", "abs", (Call("torch.abs(x)", "np.abs(x)"),), bad=("torch.abs(x > 0)",)),
    Operation(
        "round",
        "round",
        (Call("torch.round(x)", "np.round(x)"),),
        bad=("torch.round(torch.tensor([0.5, 1.5, 2.5])).tolist()", "torch.round(x.cfloat())"),
    ),
    Operation(
        "sign",
        "sign",
        (Call("torch.sign(x)", "np.sign(x)"),),
        bad=("torch.sign(x.cfloat())", "torch.sign(torch.tensor(float('nan'))).item()"),
    ),
    Operation(
        "floor",
        "floor",
        (Call("torch.floor(x)", "np.floor(x)"),),
        bad=("torch.floor(x.cfloat())", "torch.floor(x > 0)"),
    ),
    Operation(
        "flip",
        "flip",
        (Call("torch.flip(x, (0,))", "np.flip(x, (0,))"),),
        bad=("torch.flip(x, (0, 0))", "torch.flip(x)"),
    ),
    Operation("roll", "roll", (Call("torch.roll(x, 1, 1)", "np.roll(x, 1, 1)"),), bad=("torch.roll(x, (1, 2), 0)",)),
    Operation("add", "add", (Call("torch.add(x, y)", "np.add(x, y)", _x(y=OTHER)),), bad=("x + x.t()",)),
    Operation("mul", "mul", (Call("torch.mul(x, y)", "np.multiply(x, y)", _x(y=OTHER)),), bad=("x * x.t()",)),
    Operation("exp", "exp", (Call("torch.exp(x)", "np.exp(x)"),)),
    Operation(
        "sqrt",
        "sqrt",
        (Call("torch.sqrt(x)", "np.sqrt(x)", {"x": "values(2, 3, low=0.5)"}),),
        bad=("torch.sqrt(torch.tensor(4)).dtype", "torch.sqrt(torch.tensor(-1.0)).item()"),
    ),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}
