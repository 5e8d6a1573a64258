"""What can be measured: a target is a list of steps, each one question, asked in order and answered on its own.

A step that kills its process costs that step alone: the runner goes on with the next one in another process.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
import torch

from . import probes, processes
from .effects import effect
from .gather import ONCE, first_fact
from .operations import OPERATIONS, Call, Operation
from .samples import Sample, namespace, sample
from .tree import said


class Target(Protocol):
    """Something to measure."""

    def steps(self) -> list[tuple[str, ...]]:
        """Return the questions, as tuples of text."""

    def answer(self, step: tuple[str, ...]) -> Any:
        """Answer one of them with plain data. What it raises is a fault of the measurement, not of the operation."""


def ask(probe: str, function: Any, *arguments: Any) -> dict[str, Any]:
    """Run a probe with warnings silenced; an error that the operation raises is the answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments)
        except MemoryError:
            raise
        except Exception as error:
            return {first_fact(probe): "raises " + said(error)}


class OperationTarget:
    """One entry of ``operations.OPERATIONS``: its calls, bad calls and effects."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._calls = {call.text: call for call in operation.calls}
        self._samples: dict[str, Sample] = {}

    def steps(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = [("inputs",)] if self.operation.calls else []
        for call in self.operation.calls:
            names = [*probes.OF_A_SAMPLE, "dtypes", "dtypes_backward", *(["numpy"] if call.numpy else [])]
            if call is not self.operation.calls[0]:
                names = [name for name in names if name not in ONCE]
            found += [("call", call.text, name) for name in names]
        found += [("effect", effect.question) for effect in self.operation.effects]
        found += [("bad", text) for text in self.operation.bad]
        return found

    def answer(self, step: tuple[str, ...]) -> Any:
        if step == ("inputs",):
            return inputs(self.operation.calls[0])
        kind, text = step[:2]
        if kind == "effect":
            return effect(self.operation.setup, next(e.code for e in self.operation.effects if e.question == text))
        if kind == "bad":
            return bad_call(self.operation, text)
        return self._probe(self._calls[text], step[2])

    def _probe(self, call: Call, probe: str) -> dict[str, Any]:
        if probe in ("dtypes", "dtypes_backward"):
            return ask(probe, getattr(probes, probe), lambda dtype: [sample(call.text, call.inputs, call.first, dtype)])
        made = self._samples.setdefault(call.text, sample(call.text, call.inputs, call.first))
        if probe == "numpy":
            return ask(probe, probes.numpy_parity, made, sample(call.numpy, call.inputs, call.first).function)
        return ask(probe, probes.OF_A_SAMPLE[probe], made)


def inputs(call: Call) -> dict[str, str]:
    """Return what each input is, in a reader's words: ``float64 (2, 3)``, or the expression where its values matter."""
    names = namespace()
    told = {}
    for name, expression in call.inputs.items():
        names[name] = value = eval(expression, names)
        kind = f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
        kind = f"array, {kind}" if isinstance(value, np.ndarray) else kind
        told[name] = kind if "values(" in expression else expression
    return told


def bad_call(operation: Operation, text: str) -> str:
    """Evaluate ``text`` beside the inputs of the operation's first call."""
    names = namespace()
    if operation.calls:
        for name, expression in operation.calls[0].inputs.items():
            names[name] = eval(expression, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return probes.bad_call(lambda: eval(text, names))


def start_afresh() -> None:
    """Set torch's switches to what a new process has: a worker takes several targets, and one may change them."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.autograd.set_detect_anomaly(False)
    torch.set_deterministic_debug_mode("default")
    torch.set_printoptions(profile="default")
    torch.set_warn_always(True)  # else what torch says once a process is said to the first target alone
    processes.spare_the_seeds_of_devices()
    torch.manual_seed(0)
    processes.spare_the_stopwatch()


def open_target(spec: tuple[str, ...]) -> Target:
    """Return the target that a spec names: ``("operation", NAME)`` or ``("views",)``."""
    start_afresh()
    if spec[0] == "operation":
        return OperationTarget(OPERATIONS[spec[1]])
    if spec[0] == "views":
        from .views import ViewsTarget

        return ViewsTarget()
    raise KeyError(spec)
