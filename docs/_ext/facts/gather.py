"""From answers to entries of the record: measure operations and lay the answers where the record keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .operations import OPERATIONS, Operation
from .record import Entry, other_call, without_usual
from .run import OPEN, Answer, Failure, Limits, measure

# The fact that carries the failure when a whole probe fails, where its name is not the probe's.
FIRST_FACT = {
    "result": "returns",
    "autograd": "gradient",
    "write_into_input": "write_input",
    "write_into_result": "write_result",
    "out_argument": "out",
    "dtypes": "dtypes_refused",
    "dtypes_backward": "dtypes_backward_refused",
}

# Asked of an operation's first call alone: each takes as long as all other probes together.
ONCE = ("compile", "fullgraph")


def first_fact(probe: str) -> str:
    """Return the name of the fact that stands for a probe as a whole."""
    return FIRST_FACT.get(probe, probe)


class CannotMeasure(RuntimeError):
    """A sample is at fault, not the operation; the message names it."""


def measure_pages(
    names: Iterable[str], views: bool, progress: Callable[[Answer], None] = lambda answer: None, **options: Any
) -> tuple[dict[str, Entry], dict[str, Any]]:
    """Measure operations by name and, with ``views``, every call of the page on views; return entries, and call -> facts.

    ``options`` go to ``run.measure``.
    Raises CannotMeasure where a sample cannot be made, KeyError for a name that is not in ``operations``.
    """
    wanted = {name: OPERATIONS[name] for name in names}
    answers: dict[str, list[Answer]] = {name: [] for name in wanted}
    storage = {}
    options.setdefault("limits", Limits())
    for answer in measure([*([("views",)] if views else []), *(("operation", name) for name in wanted)], **options):
        if answer.spec[0] == "views":
            value = value_of(answer)
            storage[answer.step[1]] = value if isinstance(value, dict) else {"storage": value}
        else:
            answers[answer.spec[1]].append(answer)
        progress(answer)
    return {name: entry(operation, answers[name]) for name, operation in wanted.items()}, storage


def value_of(answer: Answer) -> Any:
    """Return the value of an answer; a failure is its text. Raises CannotMeasure for a fault of the sample."""
    if not isinstance(answer.value, Failure):
        return answer.value
    if answer.step == OPEN or answer.value.text.startswith("not measured"):
        raise CannotMeasure(f"{' '.join(answer.spec[1:])} · {' · '.join(answer.step)}: {answer.value.text}")
    return answer.value.text


def facts_of(answers: Iterable[Answer], call: str) -> dict[str, Any]:
    """Return the facts of one call, from the answers to its probes."""
    facts: dict[str, Any] = {}
    for answer in answers:
        if answer.step[:2] == ("call", call):
            value = value_of(answer)
            facts |= value if isinstance(value, dict) else {first_fact(answer.step[2]): value}
    return facts


def entry(operation: Operation, answers: list[Answer]) -> Entry:
    """Return the record's entry for one operation."""
    for answer in answers:
        value_of(answer)
    found: Entry = {"path": operation.path}
    facts = {call.text: facts_of(answers, call.text) for call in operation.calls}
    if operation.calls:
        main = operation.calls[0].text
        found |= {"call": main, "inputs": _inputs(answers), "facts": without_usual(facts[main])}
        if others := {text: other_call(facts[main], value, ONCE) for text, value in facts.items() if text != main}:
            found["other_calls"] = others
    if bad := {answer.step[1]: value_of(answer) for answer in answers if answer.step[0] == "bad"}:
        found["bad_calls"] = bad
    if effects := {answer.step[1]: value_of(answer) for answer in answers if answer.step[0] == "effect"}:
        found |= {"setup": operation.setup, "effects": effects}
    return found


def _inputs(answers: list[Answer]) -> dict[str, str]:
    return next((value_of(answer) for answer in answers if answer.step == ("inputs",)), {})
