"""Every probe is held against an operation that answers yes, one that answers no, and one that breaks it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from _ext.facts import probes
from _ext.facts.effects import effect
from _ext.facts.samples import DTYPES, Sample, in_place_twin, sample, values, with_out
from _ext.facts.targets import ask

X = {"x": "values(2, 3)"}


def of(call, **inputs):
    """The sample of a call; x is a 2x3 tensor unless said otherwise."""
    return sample(call, {**X, **inputs})


def asked(probe, call, **inputs):
    """What a probe says of a call, errors of the operation included."""
    return ask(probe, probes.OF_A_SAMPLE[probe], of(call, **inputs))


def raising(*_, **__):
    raise RuntimeError("broken on purpose")


def test_every_probe_of_a_sample_is_tested_here():
    source = Path(__file__).read_text(encoding="utf-8")
    asked_for = {name: function.__name__ for name, function in probes.OF_A_SAMPLE.items()}
    assert [
        name
        for name, function in asked_for.items()
        if f'"{name}"' not in source and f"probes.{function}(" not in source
    ] == []


@pytest.mark.parametrize("probe", probes.OF_A_SAMPLE)
def test_an_operation_that_raises_is_an_answer_and_no_crash(probe):
    broken = Sample(function=raising, args=(values(2, 3),), with_out=raising, in_place=raising)
    answer = ask(probe, probes.OF_A_SAMPLE[probe], broken)
    told = list(answer.values())[0]
    if probe == "deterministic":
        assert told == "works"  # an error that is not about determinism is no answer to this question
    elif probe == "fullgraph":
        assert told.startswith("raises Unsupported")
    else:
        assert "RuntimeError: broken on purpose" in told


def test_result_counts_new_bytes_and_input_bytes():
    assert asked("result", "x.repeat(2, 2)") == {
        "returns": "Tensor",
        "shape": "(4, 6)",
        "input_bytes": 48,
        "new_bytes": 192,
        "warns": [],
    }
    assert asked("result", "x.expand(2, 3)")["new_bytes"] == 0
    assert asked("result", "x.numel()") == {"returns": "int", "input_bytes": 48, "warns": []}
    assert asked("result", "x.numpy()")["new_bytes"] == 0
    assert asked("result", "x.numpy().copy()")["new_bytes"] == 48


def test_result_tells_warnings_and_leaves_their_place_out():
    warned = asked("result", "x.reshape(1, 2, 3).T")["warns"]
    assert len(warned) == 1 and warned[0].startswith("UserWarning: The use of `x.T`") and "Triggered" not in warned[0]


@pytest.mark.parametrize(
    "call, plain, permuted",
    [
        ("x.view(6)", "view", "raises RuntimeError: view size is not compatible"),
        ("x.reshape(6)", "view", "copy"),
        ("x.contiguous()", "same object", "copy"),
        ("x.clone()", "copy", "copy"),
        ("x.detach()", "view", "view"),
        ("x.numel()", "no tensor", "no tensor"),
        ("x[:0]", "empty result", "empty result"),
        ("x.numpy()", "view", "view"),
        ("(x, x[0], x + 1)", "copy + same object + view", "copy + same object + view"),
    ],
)
def test_storage_for_a_contiguous_and_for_a_permuted_input(call, plain, permuted):
    answer = asked("storage", call)
    assert answer["storage"] == plain
    assert answer["storage_permuted"].startswith(permuted)


def test_storage_finds_the_parts_of_a_sparse_tensor_and_a_copy_of_them():
    sparse = {"s": "torch.eye(3).to_sparse().coalesce()"}
    assert ask("storage", probes.storage, sample("s.values()", sparse))["storage"] == "view"
    assert ask("storage", probes.storage, sample("s.values().clone()", sparse))["storage"] == "copy"


@pytest.mark.parametrize(
    "call, answer",
    [
        ("x.t()", "reaches the input"),
        ("x.t().contiguous()", "stays in the result"),
        ("x[:1].expand(4, 3)", "refused: elements overlap in memory"),
        ("x.numel()", "no tensor"),
        ("x.numpy()", "reaches the input"),
    ],
)
def test_write_through(call, answer):
    assert asked("write_through", call) == {"write_through": answer}


@pytest.mark.parametrize(
    "call, gradient",
    [
        ("x.exp()", "yes"),
        ("x.round()", "zero everywhere"),
        ("x.detach()", "none"),
        ("x.tolist()", "raises"),
        ("torch.unique(x)", "backward raises NotImplementedError: the derivative for '_unique2' is not implemented."),
        ("x.numel()", "no tensor"),
        ("x.long()", "none"),
        ("x.to(torch.complex32)", "yes"),
        ("x - x.mean()", "yes"),  # the gradient of its plain sum is zero
    ],
)
def test_autograd_tells_a_gradient_from_the_look_of_one(call, gradient):
    answer = asked("autograd", call)["gradient"]
    assert answer == gradient or (call == "x.tolist()" and answer == "no tensor")


def test_autograd_counts_what_is_saved_and_walks_twice():
    assert asked("autograd", "x + 1") == {
        "gradient": "yes", "grad_fn": "AddBackward", "saved_tensors": 0, "saved_bytes": 0, "second_backward": "works",
    }  # fmt: skip
    squared = asked("autograd", "x * x")
    assert (squared["saved_tensors"], squared["saved_bytes"], squared["second_backward"]) == (
        2,
        96,
        "needs retain_graph",
    )
    assert asked("autograd", "x.contiguous()")["grad_fn"] == "the input itself"
    assert asked("autograd", "torch.sort(x)")["outputs_with_gradient"] == "1 of 2"


def test_autograd_of_an_operation_that_may_not_write_into_a_leaf():
    answer = asked("autograd", "x.mul_(2)")
    assert (answer["gradient"], answer["grad_fn"]) == ("yes", "MulBackward")
    assert asked("autograd", "x.requires_grad_()")["grad_fn"] == "the input itself"


def test_only_what_requires_a_gradient_in_the_sample_requires_one_in_a_probe():
    def normed(x, mean, variance):
        return torch.nn.functional.batch_norm(x, mean, variance)

    arguments = (values(2, 3), torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64))
    assert "running_mean" in ask("autograd", probes.autograd, Sample(normed, arguments))["gradient"]
    marked = Sample(normed, (arguments[0].requires_grad_(), *arguments[1:]))
    assert probes.autograd(marked)["gradient"] == "yes"
    assert probes.finite_differences(marked) == {"finite_differences": "works"}


def test_autograd_without_a_floating_point_input():
    assert asked("autograd", "i + 1", x="torch.arange(3)", i="torch.arange(3)") == {
        "gradient": "no floating point input"
    }


@pytest.mark.parametrize(
    "call, into_input, into_result",
    [
        ("x + 1", "backward works", "backward works"),
        ("x * x", "backward raises", "backward works"),
        ("x.exp()", "backward works", "backward raises"),
        ("x[:1].expand(4, 3)", "backward works", "refused: elements overlap in memory"),
        ("x.split(1)", "refused: one of several views", "refused: one of several views"),
        ("x.detach()", "no gradient", "no gradient"),
    ],
)
def test_writes_between_forward_and_backward(call, into_input, into_result):
    assert asked("write_into_input", call) == {"write_input": into_input}
    assert asked("write_into_result", call) == {"write_result": into_result}


class WrongGradient(torch.autograd.Function):
    """Says that the gradient of 2x is 3."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, grad):
        return grad * 3

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 3


@pytest.mark.parametrize("probe", ["finite_differences", "forward_mode"])
def test_gradchecks_agree_disagree_and_say_what_they_cannot_check(probe):
    assert asked(probe, "x.exp()") == {probe: "works"}
    assert asked(probe, "x.detach()") == {probe: "no gradient"}
    assert asked(probe, "x.float()")[probe].startswith("not checked")
    assert asked(probe, "x.sqrt()")[probe] == "not checked: the result is not finite"
    wrong = Sample(function=WrongGradient.apply, args=(values(2, 3),))
    assert probes.OF_A_SAMPLE[probe](wrong)[probe].startswith("disagrees: GradcheckError: Jacobian")


def test_double_backward():
    assert asked("double_backward", "x ** 3") == {"double_backward": "works"}
    assert asked("double_backward", "x.detach()") == {"double_backward": "no gradient"}
    once = Sample(function=OnceOnly.apply, args=(values(2, 3),))
    assert ask("double_backward", probes.double_backward, once)["double_backward"].startswith(
        "disagrees: GradcheckError"
    )


class OnceOnly(torch.autograd.Function):
    """x squared, whose backward may not be differentiated."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad


def test_gradcheck_leaves_the_sample_of_an_operation_that_writes_as_it_was():
    made = of("x.mul_(2)")
    before = made.args[0].clone()
    assert probes.finite_differences(made) == {"finite_differences": "works"}
    assert torch.equal(made.args[0], before)


def test_vmap():
    assert asked("vmap", "x.sum(0)") == {"vmap": "works"}
    assert asked("vmap", "x.numel()") == {"vmap": "works"}
    assert asked("vmap", "torch.unique(x)")["vmap"].startswith("raises RuntimeError: vmap: We do not support batching")
    assert ask("vmap", probes.vmap, Sample(torch.zeros, ((2, 3),))) == {"vmap": probes.NO_TENSOR_IN}
    calls = iter(range(100))
    drifting = Sample(function=lambda x: x + next(calls), args=(values(2, 3),))
    assert probes.vmap(drifting) == {"vmap": "differs from a loop"}


def test_meta():
    assert asked("meta", "x.repeat(2, 2)") == {"meta": "works"}
    assert asked("meta", "x[x > 0]")["meta"].startswith("raises ")
    shape = Sample(function=lambda x: x.reshape(-1) if x.is_meta else x, args=(values(2, 3),))
    assert probes.meta(shape) == {"meta": "other shape or dtype"}
    strides = Sample(function=lambda x: x.clone() if x.is_meta else x.t().contiguous().t(), args=(values(2, 3),))
    assert probes.meta(strides) == {"meta": "works, other strides"}


def test_fake():
    assert asked("fake", "x.repeat(2, 2)") == {"fake": "works"}
    assert asked("fake", "torch.masked_select(x, x > 0)")["fake"].startswith("raises DynamicOutputShapeException")


def test_fake_on_a_torch_that_keeps_it_elsewhere(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch._subclasses.fake_tensor", None)
    assert asked("fake", "x.exp()")["fake"].startswith("not measured")


def test_compile_counts_captured_calls_in_both_modes():
    assert asked("compile", "x.exp()") == {"compile": "works"}
    assert asked("fullgraph", "x.exp()") == {"fullgraph": "works"}
    item = {"x": "values()"}
    assert ask("compile", probes.compiled, sample("x.item()", item)) == {"compile": "nothing captured"}
    assert ask("fullgraph", probes.fullgraph, sample("x.item()", item)) == {"fullgraph": "works"}
    assert asked("compile", "x.numel()") == {"compile": "nothing captured"}
    assert asked("fullgraph", "x.requires_grad_()")["fullgraph"].startswith("raises Unsupported")


def test_deterministic_restores_the_switch():
    assert asked("deterministic", "x.exp()") == {"deterministic": "works"}
    refused = asked(
        "deterministic", "torch.nn.functional.max_unpool1d(x[None], torch.tensor([[[0, 2, 4], [1, 3, 5]]]), 2)"
    )
    assert refused["deterministic"].startswith(
        "raises RuntimeError: max_unpooling2d_forward_out does not have a deterministic"
    )
    assert not torch.are_deterministic_algorithms_enabled()


def test_out():
    assert asked("out", "torch.exp(x)") == {"out": "yes"}
    assert asked("out", "x.exp()") == {"out": "yes"}
    assert asked("out", "torch.clone(x)") == {"out": "no"}
    assert asked("out", "x + 1") == {"out": "no"}
    ignoring = Sample(function=torch.exp, args=(values(2, 3),), with_out=lambda x, out: torch.exp(x))
    assert probes.out_argument(ignoring) == {"out": "accepted, holds something else"}


def test_in_place():
    assert asked("in_place", "torch.exp(x)") == {"in_place": "yes"}
    assert asked("in_place", "torch.repeat_interleave(x, 2)") == {"in_place": "no"}
    assert asked("in_place", "x.round(decimals=1.5)")["in_place"].startswith("raises TypeError")
    elsewhere = Sample(function=torch.exp, args=(values(2, 3),), in_place=torch.exp)
    assert probes.in_place(elsewhere) == {"in_place": "returns another tensor"}


def test_numpy_parity():
    def against(call, reference):
        return probes.numpy_parity(of(call), sample(reference, X).function)["numpy"]

    assert against("x.repeat(2, 2)", "np.tile(x, (2, 2))") == "equal"
    assert against("x.repeat(2, 2)", "np.repeat(x, 2)") == "other shape"
    assert against("torch.flip(x, (0,))", "x") == "other values"
    assert against("x.argmax().int()", "np.argmax(x)") == "equal, but int32 here, int64 in NumPy"
    assert ask("numpy", probes.numpy_parity, of("x.exp()"), raising) == {
        "numpy": "raises RuntimeError: broken on purpose"
    }


def test_effects_answer_yes_no_and_what_is_raised():
    setup = "x = torch.ones(2, requires_grad=True)"
    assert effect(setup, "y = x * 2\ny.requires_grad") == "yes"
    assert effect(setup, "x.detach().requires_grad") == "no"
    assert effect(setup, "x.sum().backward()\nx.grad") == "tensor([1., 1.])"
    assert effect(setup, "(x * 2).backward()") == "RuntimeError: grad can be implicitly created only for scalar outputs"
    with pytest.raises(NameError):
        effect("x = values(2)", "x")  # a reader has torch, and no helper of this site


def by_dtype(call):
    return lambda dtype: [sample(call, X, dtype=dtype)]


def test_dtypes_refused_and_changed():
    mean = probes.dtypes(by_dtype("torch.mean(x)"))
    assert list(mean["dtypes_refused"]) == ["bool", "uint8", "int8", "int16", "int32", "int64"]
    assert mean["dtypes_refused"]["bool"].startswith("RuntimeError: mean(): could not infer output dtype")
    assert mean["dtypes_changed"] == {}
    assert probes.dtypes(by_dtype("x.abs()"))["dtypes_changed"] == {"complex64": "float32", "complex128": "float64"}
    assert probes.dtypes(by_dtype("x.numel()")) == {"dtypes_refused": {}, "dtypes_changed": {}, "dtypes_not_tried": []}
    assert probes.dtypes(by_dtype("x.sum().item()"))["dtypes_changed"]["bool"] == "int"


def test_dtypes_where_no_sample_can_be_made():
    answer = probes.dtypes(lambda dtype: raising())
    assert len(answer["dtypes_not_tried"]) == len(DTYPES)
    assert answer["dtypes_refused"] == answer["dtypes_changed"] == {}


def test_dtypes_where_some_samples_are_refused():
    answer = probes.dtypes(lambda dtype: [sample("x.abs()", X, dtype=dtype), sample("x.round()", X, dtype=dtype)])
    assert answer["dtypes_refused"]["complex64"].startswith("some samples: ")
    assert "float32" not in answer["dtypes_refused"]


def test_samples_that_change_a_dtype_differently_are_all_told():
    def calls(*texts):
        return probes.dtypes(lambda dtype: [sample(text, X, dtype=dtype) for text in texts])["dtypes_changed"]

    assert calls("x > 0")["int8"] == "bool"
    assert calls("x > 0", "x + x")["int8"] == "bool or int8"
    assert "int8" not in calls("x + x", "x - x")
    assert calls("x.argmax()", "x.argmax().int()")["float32"] == "int32 or int64"


def test_dtypes_without_backward():
    assert probes.dtypes_backward(by_dtype("x.exp()")) == {"dtypes_backward_refused": {}}
    refused = probes.dtypes_backward(by_dtype("torch.unique(x)"))["dtypes_backward_refused"]
    assert refused["float32"].startswith("NotImplementedError: the derivative for")
    assert "complex64" not in refused  # forward refuses it already


def test_bad_calls():
    assert probes.bad_call(lambda: torch.ones(2).view(3)) == "RuntimeError: shape '[3]' is invalid for input of size 2"
    assert probes.bad_call(lambda: torch.ones(2, 2).shape) == "no error: torch.Size([2, 2])"
    assert probes.bad_call(lambda: torch.ones(2).numel) == "no error: <built-in method numel of Tensor object at 0x…>"


def test_memory_that_nobody_has_set_is_not_compared():
    assert asked("vmap", "torch.empty_like(x)") == {"vmap": probes.UNINITIALISED}
    assert asked("vmap", "x.new_empty(2)") == {"vmap": probes.UNINITIALISED}
    assert asked("vmap", "x.sqrt()") == {"vmap": "works"}  # NaN that is a result is no such memory
    assert asked("out", "torch.empty_like(x)") == {"out": "no"}
    assert not torch.are_deterministic_algorithms_enabled()


def test_what_is_free_in_a_result_is_taken_out_before_it_is_differentiated():
    with_phase = Sample(function=torch.linalg.eig, args=(values(3, 3),))
    assert "ill-defined" in ask("autograd", probes.autograd, with_phase)["gradient"]
    without = Sample(
        function=torch.linalg.eig, args=(values(3, 3),), finish=lambda result: (result[0], result[1].abs())
    )
    assert probes.autograd(without)["gradient"] == "yes"
    assert probes.autograd(without)["grad_fn"] == "LinalgEigBackward"


def test_values_are_distinct_and_away_from_kinks():
    x = values(4, 5)
    assert len(x.unique()) == 20
    assert float(x.abs().min()) > 0.01
    assert float((x - x.round()).abs().max()) < 0.5
    assert values(2, 3, dtype=torch.bool).any() and not values(2, 3, dtype=torch.bool).all()
    assert values(3, dtype=torch.complex64).imag.abs().min() > 0
    assert np.array_equal(values(2, 3).numpy(), values(2, 3).numpy())


def test_twins_are_derived_from_the_text_of_a_call():
    assert with_out("x.clamp(-1, 1)") == "torch.clamp(x, -1, 1, out=out)"
    assert with_out("torch.cat([x, y])") == "torch.cat([x, y], out=out)"
    assert with_out("x.expand_as(y)") is None
    assert with_out("x + y") is None
    assert in_place_twin("torch.clamp(x, -1, 1)") == "x.clamp_(-1, 1)"
    assert in_place_twin("x.t()") == "x.t_()"
    assert in_place_twin("x.mul_(2)") is None
    assert in_place_twin("torch.cat([x, y])") is None
