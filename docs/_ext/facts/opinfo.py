"""Measure what torch's own sample database covers. The database is private to torch's tests: its import is guarded.

It needs numpy and expecttest beside torch. Where it cannot be imported, ``Unavailable`` says why, and the last committed
record stays what is published.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor

from . import probes
from .gather import first_fact
from .samples import Sample, copied, dtype_name, run
from .targets import ask, start_afresh
from .tree import said, same_metadata, tensors

MAIN_DTYPES = (torch.float64, torch.complex128, torch.int64, torch.bool, torch.float32, torch.bfloat16)
LOOKED_AT = 60  # samples that are made in the main dtype; the database may make thousands
LOOKED_AT_ELSEWHERE = 6  # in every other dtype
PASSED_OVER = 200  # samples with an empty tensor that are made before others are given up: unfold begins with 81
MEASURED = 3
STORED = 8  # storage is cheap to ask, and what readers ask first
SMALL = 400  # elements of a sample; a gradient check costs their square
FULL_CHECK = 40  # up to so many elements every entry of the Jacobian is compared, beyond it a random projection


class Unavailable(RuntimeError):
    """torch's sample database cannot be imported here."""


@lru_cache(maxsize=1)
def database() -> dict[str, Any]:
    """Return name -> OpInfo. Raises Unavailable."""
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise Unavailable(f"torch's sample database cannot be imported: {error}") from None
    return {full_name(info): info for info in op_db}


def full_name(info: Any) -> str:
    """Return an OpInfo's name with its variant: ``linalg.det.singular``."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def path(name: str) -> str | None:
    """Return where torch documents a name (``Tensor.item``, ``nn.functional.relu``), or None where it does not.

    The database calls methods that write into their tensor by a name without ``_`` that torch does not have: ``cauchy``.
    """
    if any(part.startswith("_") for part in name.split(".")):
        return None
    plain = (name, f"Tensor.{name}")
    places = plain if any(_resolved(where) is not None for where in plain) else (f"Tensor.{name}_",)
    return next((where for where in places if _is_documented(_resolved(where))), None)


def _is_documented(found: Any) -> bool:
    return found is not None and bool((inspect.getdoc(found) or "").strip())


def _resolved(where: str) -> Any:
    found: Any = torch
    for part in where.split("."):
        found = getattr(found, part, None)
    return found


def public(name: str) -> Any:
    """Return the public function of a name, or None."""
    where = path(name)
    return _resolved(where) if where else None


def twin(info: Any) -> Any:
    """Return what writes an operation's result into its input, or None: ``NAME_``, or the argument ``inplace=True``.

    The database leaves out some that there are.
    """
    if info.inplace_variant is not None:
        return info.inplace_variant
    module, _, name = info.name.rpartition(".")
    for where in (f"{module}.{name}_",) if module else (f"Tensor.{name}_", f"{name}_"):
        if (found := _resolved(where)) is not None:
            return found
    function = public(info.name)
    try:
        takes = inspect.signature(function).parameters if function else ()
    except (TypeError, ValueError):  # built in: it says nothing of its arguments
        takes = ()
    return partial(function, inplace=True) if "inplace" in takes else None


class OpInfoTarget:
    """One entry of the database, asked the questions of ``probes``; an answer is merged over samples."""

    def __init__(self, name: str) -> None:
        self.info = database()[name]
        self._samples: dict[torch.dtype, list[Sample]] = {}
        self._told: set[str] = set()  # what was warned of as samples were made: not of the operation
        self.dtype = next((dtype for dtype in MAIN_DTYPES if dtype in self.info.dtypes), torch.float64)

    def steps(self) -> list[tuple[str, ...]]:
        return [("about",), *(("probe", name) for name in (*probes.OF_A_SAMPLE, "dtypes", "dtypes_backward"))]

    def answer(self, step: tuple[str, ...]) -> Any:
        if step == ("about",):
            return {"path": path(self.info.name), "dtype": dtype_name(self.dtype), "samples": len(self._of(self.dtype))}
        probe = step[1]
        if probe in ("dtypes", "dtypes_backward"):
            return ask(probe, getattr(probes, probe), lambda dtype: spread(self._of(dtype), MEASURED))
        count = {"storage": STORED, "result": 1, "compile": 1, "fullgraph": 1, "in_place": STORED}.get(probe, MEASURED)
        try:
            samples = spread(self._of(self.dtype), count)
        except Exception as error:
            return {first_fact(probe): f"no sample: {type(error).__name__}"}
        answers = [ask(probe, probes.OF_A_SAMPLE[probe], sample) for sample in samples]
        if probe in ("compile", "fullgraph") and passed_over(self.info.op, answers[0][probe]):
            # One sample is asked of these two.
            other = self._unwrapped(samples[0])
            answers = [ask(probe, probes.OF_A_SAMPLE[probe], other) if other else {probe: WRAPPED}]
        if probe == "result" and answers[0].get("warns"):
            answers[0]["warns"] = [text for text in answers[0]["warns"] if text not in self._told]
        return merged(answers)

    def _unwrapped(self, sample: Sample) -> Sample | None:
        """Return the sample with the public function that a function of torch's tests wraps.

        None where there is no such function, or where it takes other arguments.
        """
        function = public(self.info.name)
        if function is None:
            return None
        try:
            want, got = (run(each, copied(sample)) for each in (sample.function, function))
        except Exception:
            return None
        return replace(sample, function=function) if same_metadata(got, want).startswith(probes.WORKS) else None

    def _of(self, dtype: torch.dtype) -> list[Sample]:
        if dtype not in self._samples:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self._samples[dtype] = self._make(dtype)
            self._told |= {said(warning.message) for warning in caught}
        return self._samples[dtype]

    def _make(self, dtype: torch.dtype) -> list[Sample]:
        torch.manual_seed(0)
        count = LOOKED_AT if dtype == self.dtype else LOOKED_AT_ELSEWHERE
        # With requires_grad the database leaves out what has no derivative: infinities, masked rows, padding.
        smooth = self.info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        found = filled(map(self._sample, self.info.sample_inputs("cpu", dtype, requires_grad=smooth)), count)
        if not found:
            raise ValueError("the database has no sample for this dtype")
        return small_ones(found)

    def _sample(self, given: Any) -> Sample:
        operation = self.info.op
        size = sum(tensor.numel() for tensor in tensors((given.input, given.args, given.kwargs)))
        options: dict[str, Any] = {"fast_mode": True} if self.info.gradcheck_fast_mode or size > FULL_CHECK else {}
        if any(tensor.layout != torch.strided for tensor in tensors((given.input, given.args, given.kwargs))):
            options["masked"] = True  # the gradient of a sparse tensor is asked where it has elements
        if self.info.gradcheck_nondet_tol:
            options["nondet_tol"] = self.info.gradcheck_nondet_tol
        return Sample(
            function=operation,
            args=(given.input, *given.args),
            kwargs=dict(given.kwargs),
            with_out=operation,
            in_place=twin(self.info) if isinstance(given.input, Tensor) else None,
            finish=given.output_process_fn_grad,
            checked=lambda *args, **kwargs: self.info.gradcheck_wrapper(operation, *args, **kwargs),
            options=options,
        )


def filled(samples: Iterable[Sample], count: int) -> list[Sample]:
    """Return the first ``count`` samples without an empty tensor: one with it tells little.

    Where there are none, those that have elements at all; else what there is.
    """

    def sizes(sample: Sample) -> list[int]:
        return [tensor.numel() for tensor in tensors(sample.arguments)]

    found: list[Sample] = []
    others: list[Sample] = []
    for sample in samples:
        (found if all(sizes(sample)) else others).append(sample)
        if len(found) == count or len(others) == PASSED_OVER:
            break
    return found or [sample for sample in others if any(sizes(sample))][:count] or others[:count]


def small_ones(samples: list[Sample]) -> list[Sample]:
    """Return the samples of few elements; where all are large, those as small as the smallest."""
    sizes = [sum(tensor.numel() for tensor in tensors(sample.arguments)) for sample in samples]
    return [sample for sample, size in zip(samples, sizes) if size <= max(SMALL, min(sizes))]


def spread(samples: list[Sample], count: int) -> list[Sample]:
    """Return ``count`` samples taken evenly from the list, the middle one first: the first ones are often corner cases."""
    middle = len(samples) // 2
    if count == 1:
        return samples[middle : middle + 1]
    places = (
        range(len(samples))
        if len(samples) <= count
        else (round(i * (len(samples) - 1) / (count - 1)) for i in range(count))
    )
    return [samples[place] for place in dict.fromkeys((middle, *places))][:count]


WRAPPED = "not measured: called through a wrapper of torch's own tests, which torch.compile passes over"


def passed_over(function: Any, answer: str) -> bool:
    """Whether torch.compile did not look into a function because it belongs to torch's tests."""
    ours = getattr(function, "__module__", "").startswith("torch.testing")
    return ours and (answer == "nothing captured" or "marked as skipped" in answer)


# Answers that say nothing beside one that does.
SILENT = ("empty result", "no tensor", "not checked: not in double precision", "not checked: the result is not finite", "no floating point input")


def merged(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one answer: a fact's value where all samples agree, ``depends: a | b`` where they do not.

    Of numbers, and of what goes with them, the first sample's stands: they are about that sample.
    """
    found: dict[str, Any] = {}
    for fact in dict.fromkeys(fact for answer in answers for fact in answer):
        values = [answer[fact] for answer in answers if fact in answer]
        if isinstance(values[0], (int, list)) or fact in ("shape", "returns"):
            found[fact] = values[0]
            continue
        values = [value for value in values if value not in SILENT] or values
        different = {_without_sizes(value): value for value in reversed(values)}
        if fact == "gradient" and set(different) <= {"yes", "zero everywhere"}:
            found[fact] = "yes" if "yes" in different else "zero everywhere"  # relu of negative numbers has a gradient too
            continue
        if fact == "in_place" and "yes" in different:
            found[fact] = "yes"  # where the result is larger than the input, there is a twin all the same
            continue
        found[fact] = (
            values[0] if len(different) == 1 else "depends: " + " | ".join(sorted(map(str, different.values())))
        )
    return found


def _without_sizes(value: Any) -> str:
    """Two errors that differ in nothing but sizes are one answer."""
    return re.sub(r"\d+", "0", str(value))


def open_target(spec: tuple[str, ...]) -> OpInfoTarget:
    """Return the target that the spec ``("opinfo", NAME)`` names."""
    start_afresh()
    return OpInfoTarget(spec[1])
