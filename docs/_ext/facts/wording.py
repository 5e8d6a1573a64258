"""Short words for the values of facts, for box and tables alike. Text in, text out; neither torch nor HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Facts = Mapping[str, Any]

LABELS = {
    "compile": "torch.compile",
    "deterministic": "Deterministic algorithms",
    "double_backward": "Gradient of the gradient",
    "dtypes_backward_refused": "Dtypes without backward",
    "dtypes_changed": "Dtype of the result",
    "dtypes_not_tried": "Dtypes not tried",
    "dtypes_refused": "Dtypes refused",
    "fake": "Fake tensors",
    "finite_differences": "Finite differences",
    "forward_mode": "Forward mode",
    "fullgraph": "torch.compile(fullgraph=True)",
    "grad_fn": "grad_fn",
    "gradient": "Gradient",
    "in_place": "In-place twin",
    "input_bytes": "Input",
    "inputs": "Inputs",
    "meta": "Meta device",
    "new_bytes": "New memory",
    "numpy": "NumPy",
    "out": "out=",
    "outputs_with_gradient": "Results with a gradient",
    "path": "Name",
    "call": "Measured call",
    "returns": "Returns",
    "saved_bytes": "Bytes saved for backward",
    "saved_tensors": "Tensors saved for backward",
    "second_backward": "Second backward",
    "setup": "Set-up",
    "shape": "Shape",
    "storage": "Result",
    "storage_permuted": "Result for a permuted input",
    "vmap": "torch.vmap",
    "warns": "Warning",
    "write_input": "Write into the input, then backward",
    "write_result": "Write into the result, then backward",
    "write_through": "Write into the result",
    "is_view": "_is_view()",
}

# Shown only where they are not the plain "works".
SELDOM = (
    "double_backward",
    "forward_mode",
    "vmap",
    "compile",
    "fullgraph",
    "meta",
    "fake",
    "deterministic",
    "dtypes_backward_refused",
    "warns",
)

_GROUPS = (
    ("all dtypes", "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"),
    ("floating point", "float16 bfloat16 float32 float64"),
    ("integers", "uint8 int8 int16 int32 int64"),
    ("complex", "complex64 complex128"),
)


def label(fact: str) -> str:
    """Return what a reader calls a fact; a part of one (``dtypes_refused · bool``) keeps its part."""
    name, separator, part = fact.partition(" · ")
    return LABELS.get(name, name) + separator + part


def bytes_(count: int) -> str:
    """Return ``1 byte`` or ``12,000 bytes``."""
    return f"{count:,} byte{'' if count == 1 else 's'}"


def dtype_groups(names: Any) -> str:
    """Return dtypes in few words: ``bool, integers, complex``."""
    left, words = list(names), []
    for word, members in _GROUPS:
        group = members.split()
        if all(name in left for name in group):
            words.append(word)
            left = [name for name in left if name not in group]
    return ", ".join([*(name for name in left if name == "bool"), *words, *(name for name in left if name != "bool")])


def is_error(value: Any) -> bool:
    """Return whether the value of a fact tells that something raised, hung or died."""
    return isinstance(value, str) and value.startswith(
        ("raises ", "backward raises ", "refused: R", "kills ", "ends the ", "does not end", "needs more")
    )


def error_of(value: str) -> str:
    """Return the error that a value quotes: ``RuntimeError: ...``."""
    return value.removeprefix("backward ").removeprefix("raises ").removeprefix("refused: ")


def parts(value: Any) -> list[str]:
    """Return the answers that a value holds: several where it depends on the sample."""
    text = str(value)
    return text.removeprefix("depends: ").split(" | ") if text.startswith("depends: ") else [text]


def short(value: str) -> str:
    """Return a value cut to what fits on a line: ``raises RuntimeError`` without the message."""
    if value.startswith("depends: "):
        words = list(dict.fromkeys(map(short, parts(value))))
        return words[0] if len(words) == 1 else "depends: " + " | ".join(words)
    if not is_error(value):
        return value
    head, _, _ = value.partition(": ") if not value.startswith("refused") else ("refused", "", "")
    return head


# -------------------------------------------------------------------------------------------- one fact, few words


def result(facts: Facts) -> str:
    """Return view, copy or same object, with the answer for a permuted input where it is another one."""
    plain, permuted = short(facts.get("storage", "not measured")), short(facts.get("storage_permuted", ""))
    if plain == permuted or not permuted:
        return plain
    return f"{plain}; permuted input: {permuted}"


def memory(facts: Facts) -> str:
    """Return new bytes against input bytes."""
    if "new_bytes" not in facts:
        return "no tensor" if facts.get("storage") == "no tensor" else "–"
    new = facts["new_bytes"]
    return f"{'none' if not new else bytes_(new)} (input: {bytes_(facts['input_bytes'])})"


def gradient(facts: Facts) -> str:
    """Return yes, zero everywhere, none, or that backward raises."""
    value = facts.get("gradient", "not measured")
    return {"no tensor": "none: no tensor returned", "no floating point input": "none: no floating point input"}.get(
        value, short(value)
    )


def gradient_in_full(facts: Facts) -> str:
    """Return ``yes (RepeatBackward), agrees with finite differences`` and the like."""
    word = gradient(facts)
    if "grad_fn" in facts:
        word += f" ({facts['grad_fn']})" if facts["grad_fn"] != "the input itself" else ", the input's own"
    if facts.get("gradient") == "yes":
        checked = facts.get("finite_differences", "not measured")
        word += (
            ", agrees with finite differences"
            if checked == "works"
            else f", finite differences: {short(checked).partition(':')[0]}"
        )
    return word


def saved(facts: Facts) -> str:
    """Return what backward keeps: ``nothing`` or ``2 tensors, 96 bytes``."""
    if "saved_tensors" not in facts:
        return "–"
    count = facts["saved_tensors"]
    return "nothing" if not count else f"{count} tensor{'' if count == 1 else 's'}, {bytes_(facts['saved_bytes'])}"


def second_backward(facts: Facts) -> str:
    """Return whether the graph can be walked twice."""
    value = facts.get("second_backward", "–")
    return "needs retain_graph=True" if value == "needs retain_graph" else short(value)


def write(facts: Facts, fact: str) -> str:
    """Return what a write between forward and backward does (``write_input`` or ``write_result``)."""
    value = facts.get(fact, "–")
    if value in ("no gradient", "no floating point input", "no tensor") or value == facts.get("gradient"):
        return "–"  # nothing to break, or broken without any write
    return short(value)


HARMLESS = ("backward works after either", "stays in the result")


def writes(facts: Facts) -> str:
    """Return what in-place writes into input and result do; empty where nothing can be written."""
    into_input, into_result = write(facts, "write_input"), write(facts, "write_result")
    if into_input == into_result == "–":
        through = facts.get("write_through", "no tensor")
        return {"no tensor": "", "reaches the input": "into the result: reaches the input"}.get(through, short(through))
    if into_input == into_result:
        return f"{into_input} after either" if into_input.startswith("backward") else f"{into_input} for either"
    return f"into the input: {into_input}; into the result: {into_result}"


def accepted(facts: Facts) -> str:
    """Return ``all accepted`` or which are refused."""
    word = refused(facts)
    if isinstance(facts.get("dtypes_refused"), str):
        return word
    told = "all accepted" if word == "none" else f"{word} refused"
    untried = dtype_groups(facts.get("dtypes_not_tried") or ())
    return f"{told}; {untried} not tried" if untried else told


def twins(facts: Facts) -> str:
    """Return which of in-place twin and ``out=`` exist."""
    twin, out = short(facts.get("in_place", "no")), facts.get("out", "no")
    return f"{'in-place twin' if twin == 'yes' else 'no in-place twin' if twin == 'no' else f'in-place twin {twin}'}, {'out=' if out == 'yes' else 'no out=' if out == 'no' else f'out= {out}'}"


def refused(facts: Facts, fact: str = "dtypes_refused") -> str:
    """Return the dtypes that are refused, in few words."""
    value = facts.get(fact)
    if isinstance(value, str):
        return short(value)
    if value is None:
        return "–"
    some = [dtype for dtype, text in value.items() if is_of_some(text)]
    always = dtype_groups(dtype for dtype in value if dtype not in some)
    return "; ".join(filter(None, (always, some and f"in some calls {dtype_groups(some)}"))) or "none"


def is_of_some(text: str) -> bool:
    """Return whether an error came with some samples of a dtype and not with others."""
    return text.startswith("some samples: ")


def changed(facts: Facts) -> str:
    """Return how the dtype changes: ``bool, integers → int64``; empty where it does not."""
    value = facts.get("dtypes_changed") or {}
    if isinstance(value, str):
        return short(value)
    by_target: dict[str, list[str]] = {}
    for source, target in value.items():
        by_target.setdefault(target, []).append(source)
    return "; ".join(f"{dtype_groups(sources)} → {target}" for target, sources in by_target.items())


def seldom(facts: Facts) -> list[tuple[str, str]]:
    """Return ``(fact, value)`` for what is not the plain "works" among the facts that nearly always work."""
    found = []
    differentiable = bool({"yes", "zero everywhere"} & set(parts(facts.get("gradient"))))
    for fact in SELDOM:
        value = facts.get(fact)
        if value in (None, "works", "no gradient", "no floating point input", "no tensor as input", {}, []):
            continue
        if fact in ("double_backward", "forward_mode", "dtypes_backward_refused") and not differentiable:
            continue  # the gradient's own row says it
        found.append((fact, value))
    return found


def one(facts: Facts, fact: str) -> str:
    """Return any fact in few words."""
    value = facts.get(fact)
    if value is None:
        return "–"
    if fact == "dtypes_not_tried":
        return dtype_groups(value) or "none"
    if fact in ("dtypes_refused", "dtypes_backward_refused"):
        return refused(facts, fact)
    if fact == "dtypes_changed":
        return changed(facts) or "unchanged"
    if fact in ("new_bytes", "saved_bytes", "input_bytes") and isinstance(value, int):
        return bytes_(value)
    if fact == "second_backward":
        return second_backward(facts)
    if isinstance(value, list):
        return "; ".join(value) or "none"
    return short(str(value))
