"""The sentence behind each short word of a box: what was done, and what came out. Plain text with `code` in backticks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .wording import bytes_, error_of, is_error, write

Facts = Mapping[str, Any]

_PLACES = {
    "copy": "lies in memory of its own",
    "view": "lies in the memory of the input",
    "same object": "is the input itself, not another tensor",
    "no tensor": "is not a tensor",
    "empty result": "has no elements",
    "no storage": "has a layout without a storage that one could compare",
}


def _place(value: str) -> str:
    if is_error(value):
        return f"is not there: the call raises `{error_of(value)}`"
    return " and in part ".join(_PLACES.get(part, part) for part in value.split(" + "))


def result(facts: Facts) -> str:
    storage, permuted = facts.get("storage", ""), facts.get("storage_permuted", "")
    told = f"The result {_place(storage)}."
    if storage == permuted:
        told += " The same holds for an input whose dimensions are permuted in memory."
    else:
        told += f" For an input whose dimensions are permuted in memory it {_place(permuted)}."
    if shape := facts.get("shape"):
        told += f" Its shape is `{shape}`." if "), (" not in shape else f" The shapes are `{shape}`."
    through = facts.get("write_through", "")
    if through == "reaches the input":
        told += " A write into the result changes the input."
    elif through == "stays in the result":
        told += " A write into the result leaves the input as it was."
    elif through.startswith("refused"):
        told += f" A write into the result is refused: {_quoted(through)}."
    return told


def _quoted(value: str) -> str:
    text = error_of(value)
    return f"`{text}`" if is_error(value) else text


def memory(facts: Facts) -> str:
    if "new_bytes" not in facts:
        return f"The result is of type `{facts.get('returns')}`; the input has {bytes_(facts.get('input_bytes', 0))}."
    if not facts["new_bytes"]:
        return f"No storage was made that the input did not have. The elements of the input take {bytes_(facts['input_bytes'])}."
    return f"The call made {bytes_(facts['new_bytes'])} of storage that none of its arguments had. The elements of the input take {bytes_(facts['input_bytes'])}."


def gradient(facts: Facts) -> str:
    value = facts.get("gradient", "")
    if value == "none":
        return "With an input that requires a gradient, the result does not require one: `requires_grad` is False."
    if value == "no tensor":
        return "The call returns no tensor, so nothing can be differentiated."
    if value == "no floating point input":
        return "The measured call has no floating point tensor as input, so nothing can be differentiated."
    if is_error(value):
        told = (
            f"The result has the `grad_fn` `{facts['grad_fn']}`, yet backward raises"
            if "grad_fn" in facts
            else "With an input that requires a gradient the call raises"
        )
        return f"{told} `{error_of(value)}`."
    node = facts.get("grad_fn", "")
    told = (
        "The result is the input itself, with the input's own `grad_fn`."
        if node == "the input itself"
        else f"The result's `grad_fn` is `{node}` (the version digit at its end left out)."
    )
    if value == "zero everywhere":
        told += " Backward runs and every element of the gradient is 0."
    if some := facts.get("outputs_with_gradient"):
        told += f" {some} returned tensors carry a gradient."
    checked = facts.get("finite_differences", "")
    if checked == "works":
        told += " In double precision the gradient agrees with finite differences."
    elif checked.startswith("disagrees"):
        told += f" It does not agree with finite differences: {checked.removeprefix('disagrees: ')}."
    elif checked.startswith("not checked"):
        why = checked.removeprefix("not checked: ").replace("not in", "the call is not throughout in")
        told += f" It is not held against finite differences: {why}."
    elif is_error(checked):
        told += f" The check against finite differences raises `{error_of(checked)}`."
    return told


def saved(facts: Facts) -> str:
    if not facts.get("saved_tensors"):
        return "Forward saves no tensor for backward."
    count = facts["saved_tensors"]
    return f"Forward saves {count} tensor{'' if count == 1 else 's'} for backward, {bytes_(facts['saved_bytes'])} counted element by element; what shares memory with an input costs nothing new."


def second_backward(facts: Facts) -> str:
    value = facts.get("second_backward", "")
    if value == "works":
        return "Backward runs twice without `retain_graph=True`: nothing that it needs is freed by the first walk."
    if value == "needs retain_graph":
        return "The first backward frees what was saved, so a second one raises, unless the first is called with `retain_graph=True`."
    return f"A second backward raises `{error_of(value)}`."


def writes(facts: Facts) -> str:
    told = [_write(facts, fact) for fact in ("write_input", "write_result") if write(facts, fact) != "–"]
    if told:
        return f"Between forward and backward a tensor is multiplied by 2 in place, under `no_grad`. {' '.join(told)}"
    return {
        "reaches the input": "A write into the result changes the input.",
        "stays in the result": "A write into the result leaves the input as it was.",
    }.get(facts.get("write_through", "")) or f"A write into the result is refused: {_quoted(facts['write_through'])}."


def _write(facts: Facts, fact: str) -> str:
    what = "The input" if fact == "write_input" else "The result"
    value = facts[fact]
    return {
        "backward works": f"{what}: backward does not notice, since it needs neither the old values nor their version.",
        "backward raises": f"{what}: backward raises, since a tensor that it saved has another version than at forward.",
        "refused: elements overlap in memory": f"{what}: the write is refused, since more than one element lies in one place of memory.",
        "refused: one of several views": f"{what}: autograd refuses it, since the call returns several views of one tensor.",
    }.get(value) or (
        f"{what}: the write is refused: `{error_of(value)}`."
        if value.startswith("refused")
        else f"{what}: `{error_of(value)}`."
    )


def dtypes(facts: Facts) -> str:
    refused = facts.get("dtypes_refused")
    if isinstance(refused, str):
        return f"The probe over dtypes: {refused}."
    if not refused and facts.get("dtypes_not_tried"):
        return f"Every dtype works in which the input can be made; in {', '.join(facts['dtypes_not_tried'])} it cannot."
    if not refused:
        return "All twelve dtypes that were tried work: bool, five integer, four floating point and two complex ones."
    texts: dict[str, list[str]] = {}
    for dtype, text in refused.items():
        texts.setdefault(text, []).append(dtype)
    return " ".join(f"{', '.join(names)}: `{text}`." for text, names in texts.items())


def changed(facts: Facts) -> str:
    told = "; ".join(f"`{source}` gives `{target}`" for source, target in facts.get("dtypes_changed", {}).items())
    return f"{told}. Every other dtype is kept."


def out_and_twin(facts: Facts) -> str:
    twin, out = facts.get("in_place", "no"), facts.get("out", "no")
    told = {
        "yes": "There is a method with `_` at its end that writes into the input and returns it.",
        "no": "There is no method of that name with `_` at its end.",
        "returns another tensor": "There is a method with `_` at its end; on this call it returns another tensor than the input.",
    }.get(twin) or f"There is a method with `_` at its end; on this call it raises `{error_of(twin)}`."
    told += {
        "yes": " `out=` is accepted, and holds the result afterwards.",
        "no": " `out=` is not accepted.",
    }.get(out) or f" With `out=`: {out}."
    return told


def numpy(facts: Facts, call: str) -> str:
    value = facts["numpy"]
    if value == "equal":
        return f"`{call}` in NumPy gives the same shape, values and dtype."
    if value.startswith("equal, but"):
        return f"`{call}` in NumPy gives the same shape and values; the dtype differs: {value.removeprefix('equal, but ')}."
    return f"`{call}` in NumPy: {value}."


_SELDOM = {
    "double_backward": "The gradient of the gradient (`gradgradcheck`): {}.",
    "forward_mode": "Forward-mode derivatives (`gradcheck` with `check_forward_ad`): {}.",
    "vmap": "`torch.vmap` over the input, against a loop: {}.",
    "compile": "Under `torch.compile` as it comes: {}.",
    "fullgraph": "Under `torch.compile(fullgraph=True)`, which also turns on the capture of data-dependent values: {}.",
    "meta": "On the meta device, shape, dtype and strides against those of the real result: {}.",
    "fake": "Under FakeTensorMode, on which `torch.export` relies, against the real result: {}.",
    "deterministic": "With `torch.use_deterministic_algorithms(True)`: {}.",
    "dtypes_backward_refused": "Forward works in these dtypes and backward raises: {}.",
    "warns": "The call warns: {}.",
}


def seldom(fact: str, value: Any) -> str:
    if isinstance(value, dict):
        told = "; ".join(f"{dtype}: `{text}`" for dtype, text in value.items())
    elif isinstance(value, list):
        told = "; ".join(f"`{text}`" for text in value)
    elif is_error(value):
        told = f"raises `{error_of(value)}`"
    else:
        told = value
    return _SELDOM[fact].format(told)
