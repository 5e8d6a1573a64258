"""The questions put to an operation. Each probe is a pure function of a sample: it copies what it hands over, restores
what it switches, and returns ``{fact: value}`` with values that go to JSON as they are.

A probe answers only what it saw. Where it could not look it says so in the value; what it did not expect it raises,
and the runner writes the error down as the value.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .samples import DTYPES, Sample, copied, dtype_name, run
from .tree import (
    address,
    close,
    data_bytes,
    holders,
    is_smooth,
    ones,
    plain,
    said,
    same_metadata,
    tensors,
    tree_map,
    weights,
    without_addresses,
)

NONE = "none"
NO_TENSOR_IN = "no tensor as input"
WORKS = "works"


# -------------------------------------------------------------------------------------------- memory


def result(sample: Sample) -> dict[str, Any]:
    """``returns``, ``shape``, ``input_bytes``, ``new_bytes`` (storage that no argument had before), ``warns``."""
    arguments = copied(sample)
    before = {address(owner) for owner in holders(arguments)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = run(sample.function, arguments)
    outputs = holders(returned)
    facts: dict[str, Any] = {"returns": type(returned).__name__, "input_bytes": data_bytes(arguments[0][:1])}
    facts["warns"] = sorted({said(warning.message) for warning in caught})
    if outputs:
        facts["shape"] = ", ".join(str(tuple(output.shape)) for output in outputs[:4]) + (", …" if outputs[4:] else "")
        if all(address(output) is not None for output in outputs):
            blocks = {address(output): _block_bytes(output) for output in outputs}
            facts["new_bytes"] = sum(size for where, size in blocks.items() if where not in before)
    return facts


def _block_bytes(holder: Tensor | np.ndarray) -> int:
    return holder.nbytes if isinstance(holder, np.ndarray) else holder.untyped_storage().nbytes()


def storage(sample: Sample) -> dict[str, str]:
    """``storage`` and ``storage_permuted``: ``same object``, ``view``, ``copy``, ``no tensor``, or several with ``+``.

    ``view`` says that the result lies in memory of the input, which is what a reader means by it.
    """
    return {"storage": _storage(sample, "given"), "storage_permuted": _storage(sample, "permuted")}


def _storage(sample: Sample, layout: str) -> str:
    arguments = copied(sample, layout=layout)
    owners = holders(arguments)
    places = {address(owner) for owner in owners if _count(owner)} - {None}
    try:
        returned = run(sample.function, arguments)
    except Exception as error:
        return "raises " + said(error)
    if any(address(owner) is None for owner in owners):
        # The parts of a sparse tensor cannot be asked where they lie; what a second call hands out again is one of them.
        again = run(sample.function, arguments)
        places |= {address(output) for output in holders(returned)} & {address(output) for output in holders(again)} - {
            None
        }
    kinds = set()
    for output in holders(returned):
        if any(output is owner for owner in owners):
            kinds.add("same object")
        elif not _count(output):
            kinds.add("empty result")
        elif address(output) is None:
            kinds.add("no storage")
        else:
            kinds.add("view" if address(output) in places else "copy")
    if len(kinds) > 1:
        kinds.discard("empty result")
    return " + ".join(sorted(kinds)) or "no tensor"


def _count(holder: Tensor | np.ndarray) -> int:
    return holder.size if isinstance(holder, np.ndarray) else holder.numel()


def write_through(sample: Sample) -> dict[str, str]:
    """``write_through``: does a write into the result reach the input? ``reaches the input``, ``stays in the result`` or refused."""
    arguments = copied(sample)
    outputs = [output for output in holders(run(sample.function, arguments)) if _count(output)]
    if not outputs:
        return {"write_through": "no tensor"}

    def contents() -> list[np.ndarray | Tensor]:
        return [owner.copy() if isinstance(owner, np.ndarray) else plain(owner).clone() for owner in holders(arguments)]

    before, target = contents(), outputs[0]
    try:
        if isinstance(target, np.ndarray):
            target[...] = target + 1
        else:
            target.copy_(~target if target.dtype == torch.bool else target + 1)
    except RuntimeError as error:
        return {"write_through": _write_refused(error)}
    same = all(map(_equal, before, contents()))
    return {"write_through": "stays in the result" if same else "reaches the input"}


def _equal(one: np.ndarray | Tensor, other: np.ndarray | Tensor) -> bool:
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    one, other = _dense(one), _dense(other)
    return torch.equal(one, other) or torch.allclose(one, other, equal_nan=True)


# -------------------------------------------------------------------------------------------- gradient


def _inputs_with_grad(sample: Sample, leaf: bool) -> tuple[tuple, list[Tensor], list[Tensor]]:
    """Arguments for one call, their leaves, and the tensors handed over in their place (clones unless ``leaf``)."""
    arguments = copied(sample, grad=True)
    leaves = [tensor for tensor in tensors(arguments) if tensor.requires_grad]
    if leaf:
        return arguments, leaves, leaves
    stand_in = {id(tensor): tensor.clone() for tensor in leaves}
    return tree_map(lambda tensor: stand_in.get(id(tensor), tensor), arguments), leaves, list(stand_in.values())


class _Forward(NamedTuple):
    """A forward run: leaves, what was handed over for them and is what it was, outputs, and what can be differentiated."""

    leaves: list[Tensor]
    given: list[Tensor]
    untouched: list[Tensor]
    outputs: list[Tensor]
    live: list[Tensor]


def _forward(sample: Sample, leaf: bool = True) -> _Forward:
    arguments, leaves, given = _inputs_with_grad(sample, leaf)
    nodes = [tensor.grad_fn for tensor in given]
    try:
        returned = run(sample.function, arguments)
    except RuntimeError as error:
        if not leaf or "leaf" not in str(error):
            raise
        # An operation that writes into its input may not have a leaf there.
        return _forward(sample, leaf=False)
    live = [output for output in tensors(sample.finish(returned)) if output.requires_grad]
    untouched = [tensor for tensor, node in zip(given, nodes) if tensor.grad_fn is node]
    return _Forward(leaves, given, untouched, tensors(returned), live)


def autograd(sample: Sample) -> dict[str, Any]:
    """``gradient``, ``grad_fn``, ``saved_tensors``, ``saved_bytes``, ``second_backward``.

    ``gradient`` is ``yes``, ``zero everywhere``, ``none`` (the result does not require a gradient), ``no tensor``,
    ``no floating point input``, or ``backward raises ...``: only running backward tells it from ``yes``.
    """
    if not any(is_smooth(tensor) for tensor in tensors(sample.arguments)):
        return {"gradient": "no floating point input"}
    saved: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor.numel() * tensor.element_size())
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        leaves, _, untouched, outputs, live = _forward(sample)
    if not live:
        return {"gradient": NONE if outputs else "no tensor"}
    with_node = [output for output in outputs if output.requires_grad]

    def node(output: Tensor) -> str:
        if any(output is tensor for tensor in untouched):
            return "the input itself"
        # The digit counts versions of the node's code, which says nothing to a reader.
        return re.sub(r"\d+$", "", output.grad_fn.name()) if output.grad_fn else "the input itself"

    facts: dict[str, Any] = {
        "grad_fn": " + ".join(sorted({node(output) for output in with_node})),
        "saved_tensors": len(saved),
        "saved_bytes": sum(saved),
    }
    if len(with_node) != len(outputs):
        facts["outputs_with_gradient"] = f"{len(with_node)} of {len(outputs)}"

    def walk() -> tuple:
        return torch.autograd.grad(live, leaves, weights(live), allow_unused=True)

    try:
        gradients = walk()
    except (RuntimeError, NotImplementedError) as error:
        return facts | {"gradient": "backward raises " + said(error)}
    some = any(gradient is not None and bool((plain(gradient) != 0).any()) for gradient in map(_dense, gradients))
    facts["gradient"] = "yes" if some else "zero everywhere"
    try:
        walk()
        facts["second_backward"] = WORKS
    except RuntimeError as error:
        facts["second_backward"] = "needs retain_graph" if "second time" in str(error) else "raises " + said(error)
    return facts


def _dense(tensor: Tensor | None) -> Tensor | None:
    return tensor if tensor is None or tensor.layout == torch.strided else tensor.to_dense()


def write_into_input(sample: Sample) -> dict[str, str]:
    """``write_input``: an in-place write into the input between forward and backward; does backward notice?"""
    return {"write_input": _write_between(sample, "input")}


def write_into_result(sample: Sample) -> dict[str, str]:
    """``write_result``: the same with a write into the first result."""
    return {"write_result": _write_between(sample, "result")}


def _write_between(sample: Sample, into: str) -> str:
    if not any(is_smooth(tensor) for tensor in tensors(sample.arguments)):
        return "no floating point input"
    # Without hooks: a tensor that a hook packs is no longer guarded by its version.
    leaves, given, _, outputs, live = _forward(sample, leaf=False)
    if not live:
        return "no gradient"
    try:
        with torch.no_grad():
            (given[0] if into == "input" else next(output for output in outputs if output.requires_grad)).mul_(2)
    except RuntimeError as error:
        return _write_refused(error)
    try:
        torch.autograd.grad(live, leaves, ones(live), allow_unused=True)
    except RuntimeError as error:
        text = str(error)
        if "modified by an inplace" in text:
            return "backward raises"
        return _write_refused(error) if "multiple views" in text else "backward raises " + said(error)
    return "backward works"


def _write_refused(error: RuntimeError) -> str:
    text = str(error)
    if "more than one element" in text:
        return "refused: elements overlap in memory"
    if "multiple views" in text:
        return "refused: one of several views"
    return "refused: " + said(error)


def _as_function(sample: Sample) -> tuple[Callable[..., tuple], list[Tensor]]:
    """Return a function of the differentiable inputs alone, as gradcheck wants it, and those inputs."""
    arguments = copied(sample, grad=True)
    inputs = [tensor for tensor in tensors(arguments) if tensor.requires_grad]

    def function(*given: Tensor) -> tuple:
        # Copies: an operation that writes into its input would change what gradcheck holds.
        swap = {id(old): new.clone() for old, new in zip(inputs, given)}
        swapped = tree_map(lambda tensor: swap.get(id(tensor), tensor.clone()), arguments)
        return tuple(
            output
            for output in tensors(sample.finish(run(sample.checked or sample.function, swapped)))
            if is_smooth(output)
        )

    return function, inputs


def finite_differences(sample: Sample) -> dict[str, str]:
    """``finite_differences``: does the gradient agree with difference quotients in double precision?"""
    return {"finite_differences": _gradcheck(sample, "backward")}


def double_backward(sample: Sample) -> dict[str, str]:
    """``double_backward``: the gradient of the gradient, against difference quotients along random directions."""
    return {"double_backward": _gradcheck(sample, "double")}


def forward_mode(sample: Sample) -> dict[str, str]:
    """``forward_mode``: forward-mode derivatives, against difference quotients."""
    return {"forward_mode": _gradcheck(sample, "forward")}


def _gradcheck(sample: Sample, mode: str) -> str:
    function, inputs = _as_function(sample)
    if not inputs:
        return "no floating point input"
    outputs = function(*inputs)
    if not any(output.requires_grad for output in outputs):
        return "no gradient"
    if any(tensor.dtype not in (torch.float64, torch.complex128) for tensor in (*outputs, *inputs)):
        return "not checked: not in double precision"
    forward_only = dict(
        check_forward_ad=True, check_backward_ad=False, check_undefined_grad=False, check_batched_grad=False
    )
    try:
        if mode == "double":
            torch.autograd.gradgradcheck(function, inputs, **{"fast_mode": True, **sample.options})
        else:
            torch.autograd.gradcheck(function, inputs, **(forward_only if mode == "forward" else {}), **sample.options)
    except Exception as error:
        text = said(error, limit=160)
        if not any(word in text for word in ("mismatch", "Jacobian", "Numerical gradient")):
            return "raises " + text
        if not all(bool(torch.isfinite(_dense(plain(output))).all()) for output in outputs):
            return "not checked: the result is not finite"
        return "disagrees: " + text
    return WORKS


# -------------------------------------------------------------------------------------------- other ways to call it


def vmap(sample: Sample) -> dict[str, str]:
    """``vmap``: is ``torch.vmap`` over the input equal to a loop?"""
    if not tensors(sample.args[:1]):
        return {"vmap": NO_TENSOR_IN}
    if _is_uninitialised(sample):
        return {"vmap": UNINITIALISED}
    args, kwargs = copied(sample)
    batch = tree_map(lambda tensor: torch.stack([tensor, tensor.flip(0) if tensor.dim() else tensor]), args[0])

    def function(first: Any) -> Any:
        return run(sample.function, ((first, *args[1:]), kwargs))

    looped = [function(tree_map(lambda tensor: tensor[i].clone(), batch)) for i in (0, 1)]
    if not tensors(looped):
        # vmap wants a tensor back, so one is put beside the answer that is not one.
        torch.vmap(lambda first: (function(first), tensors(first)[0].sum())[1])(batch)
        return {"vmap": WORKS}
    mapped = torch.vmap(function)(batch)
    same = all(close(want, tree_map(lambda tensor: tensor[i], mapped)) for i, want in enumerate(looped))
    return {"vmap": WORKS if same else "differs from a loop"}


def meta(sample: Sample) -> dict[str, str]:
    """``meta``: does it work on the meta device, with the shape, dtype and strides of the real result?"""
    arguments = tree_map(lambda tensor: tensor.to("meta"), copied(sample))
    return {"meta": same_metadata(run(sample.function, arguments), run(sample.function, copied(sample)))}


def fake(sample: Sample) -> dict[str, str]:
    """``fake``: the same under FakeTensorMode, on which export and compile rely. There is no public way to ask."""
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode
    except ImportError:
        return {"fake": "not measured: this torch has no FakeTensorMode where it was"}
    arguments = copied(sample)
    with FakeTensorMode() as mode:
        got = run(sample.function, tree_map(mode.from_tensor, arguments))
    return {"fake": same_metadata(got, run(sample.function, copied(sample)))}


def compiled(sample: Sample) -> dict[str, str]:
    """``compile``: with ``torch.compile`` as it comes, how many calls end up in a graph?"""
    return {"compile": _compile(sample, fullgraph=False)}


def fullgraph(sample: Sample) -> dict[str, str]:
    """``fullgraph``: the same with ``fullgraph=True``, which also turns on capture of ``item`` and of data-dependent sizes."""
    return {"fullgraph": _compile(sample, fullgraph=True)}


def _compile(sample: Sample, fullgraph: bool) -> str:
    graphs: list[int] = []

    def backend(module: torch.fx.GraphModule, _: list) -> Callable:
        graphs.append(sum(node.op.startswith("call") for node in module.graph.nodes))
        return module.forward

    def function(args: tuple, kwargs: dict) -> Any:
        return sample.function(*args, **kwargs)

    torch.compiler.reset()
    torch.manual_seed(0)
    got = torch.compile(function, backend=backend, fullgraph=fullgraph)(*copied(sample))
    want = run(sample.function, copied(sample))
    calls = sum(graphs)
    if tensors(want) and not same_metadata(got, want).startswith(WORKS):
        return "result has another shape or dtype"
    if not calls:
        return "nothing captured"
    return WORKS if len(graphs) == 1 else f"{len(graphs)} graphs"


UNINITIALISED = "not compared: the result is memory that nobody has set"


def _is_uninitialised(sample: Sample) -> bool:
    """Whether the result holds whatever was in memory; such values are noise, and no probe compares them."""
    switched = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    try:
        # Under this switch torch fills memory that nobody has set, with NaN or the largest integer.
        torch.use_deterministic_algorithms(True, warn_only=True)
        filled = tensors(run(sample.function, copied(sample)))
    finally:
        torch.use_deterministic_algorithms(switched[0], warn_only=switched[1])
    plain_result = tensors(run(sample.function, copied(sample)))
    pairs = [
        (a, b) for a, b in zip(filled, plain_result) if a.layout == b.layout == torch.strided and a.shape == b.shape
    ]
    found = any(bool((_filled(a) & ~_filled(b)).any()) for a, b in pairs)
    for tensor, _ in pairs:
        # Otherwise the next tensor made here may get this memory, and the fill with it.
        with torch.no_grad():
            tensor.untyped_storage().fill_(0)
    return found


def _filled(tensor: Tensor) -> Tensor:
    tensor = plain(tensor)
    if is_smooth(tensor):
        return tensor.isnan()
    return tensor if tensor.dtype == torch.bool else tensor == torch.iinfo(tensor.dtype).max


def deterministic(sample: Sample) -> dict[str, str]:
    """``deterministic``: is it allowed under ``torch.use_deterministic_algorithms(True)``?"""
    switched = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    try:
        torch.use_deterministic_algorithms(True)
        function, inputs = _as_function(sample)
        live = [output for output in function(*inputs) if output.requires_grad]
        if live:
            torch.autograd.grad(live, inputs, ones(live), allow_unused=True)
    except RuntimeError as error:
        return {"deterministic": "raises " + said(error) if "determin" in str(error) else WORKS}
    finally:
        torch.use_deterministic_algorithms(switched[0], warn_only=switched[1])
    return {"deterministic": WORKS}


def out_argument(sample: Sample) -> dict[str, str]:
    """``out``: does ``out=`` exist, and does it hold the result afterwards?"""
    if sample.with_out is None:
        return {"out": "no"}
    want = run(sample.function, copied(sample))
    buffers = [torch.zeros_like(output) for output in tensors(want)]
    if not buffers:
        return {"out": "no"}
    unset = _is_uninitialised(sample)
    try:
        run(sample.with_out, copied(sample), out=buffers[0] if isinstance(want, Tensor) else tuple(buffers))
    except TypeError:
        return {"out": "no"}
    return {"out": "yes" if unset or close(buffers, want) else "accepted, holds something else"}


def in_place(sample: Sample) -> dict[str, str]:
    """``in_place``: is there a twin that writes into its input, and does it return that input?"""
    if sample.in_place is None:
        return {"in_place": "no"}
    arguments = copied(sample)
    try:
        returned = run(sample.in_place, arguments)
    except Exception as error:
        return {"in_place": "raises " + said(error)}
    return {"in_place": "yes" if returned is arguments[0][0] else "returns another tensor"}


def numpy_parity(sample: Sample, reference: Callable[..., Any]) -> dict[str, str]:
    """``numpy``: is the result equal to NumPy's, in shape, value and dtype?"""

    def flat(tree: Any) -> list[np.ndarray]:
        return [leaf for part in tree for leaf in flat(part)] if isinstance(tree, (list, tuple)) else [np.asarray(tree)]

    def arrays(tree: Any) -> Any:
        return tree_map(lambda tensor: plain(tensor).numpy(), tree)

    got = flat(arrays(run(sample.function, copied(sample))))
    want = flat(run(reference, arrays(copied(sample))))
    if [array.shape for array in got] != [array.shape for array in want]:
        return {"numpy": "other shape"}
    if not all(np.allclose(a, b, equal_nan=True) for a, b in zip(got, want)):
        return {"numpy": "other values"}
    other = sorted({f"{a.dtype} here, {b.dtype} in NumPy" for a, b in zip(got, want) if a.dtype != b.dtype})
    return {"numpy": "equal, but " + "; ".join(other) if other else "equal"}


# -------------------------------------------------------------------------------------------- dtypes and bad input

Sampler = Callable[[torch.dtype], list[Sample]]


def dtypes(sampler: Sampler) -> dict[str, Any]:
    """What each of ``DTYPES`` gives.

    ``dtypes_refused``: dtype to error. ``dtypes_changed``: dtype to the dtype of the result, where it is another one.
    ``dtypes_not_tried``: those in which no sample could be made.
    """

    def one(sample: Sample) -> str:
        returned = run(sample.function, copied(sample))
        names = dict.fromkeys(str(output.dtype).removeprefix("torch.") for output in holders(returned))
        return ", ".join(names) or type(returned).__name__

    changed, refused, not_tried = {}, {}, []
    for dtype in DTYPES:
        answers, error = _over(sampler, dtype, one)
        if not answers and error is None:
            not_tried.append(dtype_name(dtype))
        if not all(_keeps(dtype_name(dtype), answer) for answer in answers):
            changed[dtype_name(dtype)] = " or ".join(sorted(set(answers)))
        if error is not None:
            refused[dtype_name(dtype)] = error
    names = {name for value in changed.values() for name in re.split(", | or ", value)}
    if len(set(changed.values())) == 1 and names.isdisjoint(map(dtype_name, DTYPES)):
        changed = {}  # the same Python type for every dtype: ``returns`` says it
    return {"dtypes_refused": refused, "dtypes_changed": changed, "dtypes_not_tried": not_tried}


def _keeps(dtype: str, value: str) -> bool:
    # max and sort return indices beside the values: the dtype of the first result is the one that follows the input's.
    return value.split(", ")[0] == dtype


def dtypes_backward(sampler: Sampler) -> dict[str, Any]:
    """``dtypes_backward_refused``: floating point and complex dtypes where forward works and backward raises."""

    def one(sample: Sample) -> str:
        try:
            ran = _forward(sample)
        except Exception:
            return "forward refused"
        if ran.live:
            torch.autograd.grad(ran.live, ran.leaves, ones(ran.live), allow_unused=True)
        return WORKS

    smooth = [dtype for dtype in DTYPES if dtype.is_floating_point or dtype.is_complex]
    found = {dtype_name(dtype): _over(sampler, dtype, one)[1] for dtype in smooth}
    return {"dtypes_backward_refused": {dtype: error for dtype, error in found.items() if error is not None}}


def _over(sampler: Sampler, dtype: torch.dtype, one: Callable[[Sample], str]) -> tuple[list[str], str | None]:
    """Return the answers and the first error over the samples of a dtype: no answer and None where there is no sample."""
    answers: list[str] = []
    error = None
    try:
        samples = sampler(dtype)
    except Exception:
        return [], None
    for sample in samples:
        try:
            answers.append(one(sample))
        except Exception as failure:
            error = said(failure, 160) if error is None else error
    if error is not None and answers:
        error = "some samples: " + error
    return answers, error


def bad_call(function: Callable[[], Any]) -> str:
    """Return what a call answers: ``Type: message``, or ``no error: value``."""
    try:
        returned = function()
    except Exception as error:
        return said(error, limit=500)
    text = without_addresses(" ".join(str(returned).split()))
    return "no error: " + (text if len(text) <= 120 else text[:119] + "…")


# The probes of one sample, in the order in which they run: what is asked first is cheap and cannot hurt the rest.
OF_A_SAMPLE: dict[str, Callable[[Sample], dict[str, Any]]] = {
    "result": result,
    "storage": storage,
    "write_through": write_through,
    "autograd": autograd,
    "write_into_input": write_into_input,
    "write_into_result": write_into_result,
    "out": out_argument,
    "in_place": in_place,
    "deterministic": deterministic,
    "finite_differences": finite_differences,
    "double_backward": double_backward,
    "forward_mode": forward_mode,
    "vmap": vmap,
    "meta": meta,
    "fake": fake,
    "compile": compiled,
    "fullgraph": fullgraph,
}
