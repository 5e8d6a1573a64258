"""Measure what torch's own sample database covers. The database is private to torch's tests: its import is guarded.

It needs numpy and expecttest beside torch. Where it cannot be imported, ``Unavailable`` says why, and the last committed
record stays what is published.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterable
from functools import cached_property, lru_cache, partial
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
WIDELY = 8  # of what is cheap to ask, or wrong in few samples
WIDELY_ASKED = ("result", "storage", "in_place", "finite_differences", "double_backward", "forward_mode")
SMALL = 400  # elements of a sample; a gradient check costs their square
FULL_CHECK = 40  # up to so many elements every entry of the Jacobian is compared, beyond it a random projection


class Unavailable(RuntimeError):
    """torch's sample database cannot be imported here."""


@lru_cache(maxsize=1)
def database() -> dict[str, Any]:
    """Return name -> OpInfo. Raises Unavailable."""
    try:
        from torch.testing._internal import common_utils, opinfo
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError as error:
        raise Unavailable(f"torch's sample database cannot be imported: {error}") from None
    for module in (common_utils, opinfo.core):
        if hasattr(module, "extract_test_fn"):
            # Each list of samples looks twice through the whole stack for the unit test it is made for: half of all time.
            module.extract_test_fn = lambda: None
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
        count = 1 if probe in ("compile", "fullgraph") else WIDELY if probe in WIDELY_ASKED else MEASURED
        try:
            samples = spread(self._of(self.dtype), count)
            if probe == "storage" and self.dtype == torch.float64 and torch.complex128 in self.info.dtypes:
                samples += spread(self._of(torch.complex128), MEASURED)  # conj and real answer otherwise there
        except Exception as error:
            return {first_fact(probe): f"no sample: {type(error).__name__}"}
        answers = [ask(probe, probes.OF_A_SAMPLE[probe], sample) for sample in samples]
        if probe in ("compile", "fullgraph") and passed_over(self._function, answers[0][probe]):
            return {probe: WRAPPED}
        if probe == "result":
            answers = [next((answer for answer in answers if not _EMPTY.search(answer.get("shape", ""))), answers[0])]
            if "warns" in answers[0]:
                answers[0]["warns"] = [text for text in answers[0]["warns"] if text not in self._told]
        return merged(answers)

    @cached_property
    def _function(self) -> Any:
        """What is called: the public function where torch's tests wrap it and it takes the same arguments; else theirs."""
        theirs, function = self.info.op, public(self.info.name)
        if function is None or not is_of_tests(theirs):
            return theirs
        try:
            given = next(iter(self.info.sample_inputs("cpu", self.dtype)))
            sample = Sample(theirs, (given.input, *given.args), given.kwargs)
            (want, expected), (got, warned) = (_with_warnings(each, copied(sample)) for each in (theirs, function))
        except Exception:
            return theirs
        # A function may take arguments in another order, and warn of it.
        return function if same_metadata(got, want).startswith(probes.WORKS) and warned <= expected else theirs

    @cached_property
    def _twin(self) -> Any:
        return twin(self.info)

    def _of(self, dtype: torch.dtype) -> list[Sample]:
        if dtype not in self._samples:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self._samples[dtype] = self._make(dtype)
            self._told |= {said(warning.message) for warning in caught}
        return self._samples[dtype]

    def _make(self, dtype: torch.dtype) -> list[Sample]:
        function = self._function
        torch.manual_seed(0)
        count = LOOKED_AT if dtype == self.dtype else LOOKED_AT_ELSEWHERE
        # With requires_grad the database leaves out what has no derivative: infinities, masked rows, padding.
        smooth = self.info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        found = filled(
            (self._sample(function, given) for given in self.info.sample_inputs("cpu", dtype, requires_grad=smooth)), count
        )
        if not found:
            raise ValueError("the database has no sample for this dtype")
        return small_ones(found)

    def _sample(self, operation: Any, given: Any) -> Sample:
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
            in_place=self._twin if isinstance(given.input, Tensor) else None,
            finish=given.output_process_fn_grad,
            checked=lambda *args, **kwargs: self.info.gradcheck_wrapper(operation, *args, **kwargs),
            options=options,
        )


def _with_warnings(function: Any, arguments: tuple) -> tuple[Any, set[str]]:
    """Return what a call returns, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = run(function, arguments)
    return returned, {said(warning.message) for warning in caught}


def filled(samples: Iterable[Sample], count: int) -> list[Sample]:
    """Return the first ``count`` samples without an empty tensor: one with it tells little.

    Where there are none, those that have elements at all; else what there is.
    """

    def sizes(sample: Sample) -> list[int]:
        return [tensor.numel() for tensor in tensors(sample.arguments)]

    found: list[Sample] = []
    others: list[Sample] = []
    try:
        for sample in samples:
            (found if all(sizes(sample)) else others).append(sample)
            if len(found) == count or len(others) == PASSED_OVER:
                break
    except Exception:
        if not found:  # the database cannot make its samples in this dtype
            raise
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


_EMPTY = re.compile(r"\b0\b")  # in a shape

WRAPPED = "not measured: called through a wrapper of torch's own tests, which torch.compile passes over"


def is_of_tests(function: Any) -> bool:
    """Whether a function belongs to torch's tests."""
    return (getattr(function, "__module__", None) or "").startswith("torch.testing")


def passed_over(function: Any, answer: str) -> bool:
    """Whether what torch.compile answers is about a function of torch's tests: it may pass over one, or meet its seeding."""
    return is_of_tests(function) and answer != probes.WORKS


# Answers that say nothing beside one that does.
SILENT = ("empty result", "no tensor", probes.NO_TENSOR_IN, "not checked: not in double precision", "not checked: the result is not finite", "no floating point input")


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
