"""The record: what is left out comes back, what differs is told cell by cell, and a file is whole or not there."""

import json
import re

import pytest

from _ext.facts import record
from _ext.facts.operations import OPERATIONS
from _ext.facts.record import Change

FACTS = {
    "storage": "copy",
    "storage_permuted": "copy",
    "gradient": "yes",
    "vmap": "works",
    "out": "no",
    "dtypes_refused": {"bool": "RuntimeError: no"},
    "second_backward": "works",
}


def entry(**changes):
    return {
        "path": "Tensor.repeat",
        "call": "x.repeat(2)",
        "inputs": {"x": "float64 (2,)"},
        "facts": record.without_usual({**FACTS, **changes}),
    }


def test_usual_values_are_left_out_and_come_back():
    written = record.without_usual(FACTS)
    assert "vmap" not in written and "out" not in written and written["storage"] == "copy"
    assert record.with_usual(written) == dict(sorted(FACTS.items()))


def test_a_fact_that_was_not_asked_does_not_come_back_as_usual():
    facts = {**FACTS}
    del facts["vmap"]
    written = record.without_usual(facts)
    assert written["vmap"] is None
    assert "vmap" not in record.with_usual(written)


def test_without_a_gradient_the_checks_of_it_are_left_out():
    facts = {
        "gradient": "none",
        "finite_differences": "no gradient",
        "double_backward": "no gradient",
        "forward_mode": "no gradient",
    }
    written = record.without_usual(facts)
    assert "finite_differences" not in written
    assert record.with_usual(written) == dict(sorted(facts.items()))
    assert record.without_usual({**facts, "forward_mode": "works"})["forward_mode"] == "works"


def test_other_calls_hold_what_differs_and_nothing_else():
    main = {"storage": "copy", "new_bytes": 8, "numpy": "equal", "compile": "works"}
    other = {"storage": "view", "new_bytes": 8}
    assert record.other_call(main, other, asked_once=("compile",)) == {"numpy": None, "storage": "view"}
    whole = {**entry(), "other_calls": {"x.repeat(1)": {"storage": "view", "gradient": None}}}
    calls = record.calls(whole)
    assert list(calls) == ["x.repeat(2)", "x.repeat(1)"]
    assert calls["x.repeat(1)"]["storage"] == "view" and "gradient" not in calls["x.repeat(1)"]
    assert calls["x.repeat(1)"]["dtypes_refused"] == {"bool": "RuntimeError: no"}


def test_a_difference_names_operation_call_fact_and_both_values():
    changes = record.compare(
        {"repeat": entry()},
        {"repeat": entry(storage="view", dtypes_refused={"bool": "TypeError: no"}, vmap="differs from a loop")},
    )
    assert changes == [
        Change("repeat", "x.repeat(2)", "dtypes_refused · bool", "RuntimeError: no", "TypeError: no"),
        Change("repeat", "x.repeat(2)", "storage", "copy", "view"),
        Change("repeat", "x.repeat(2)", "vmap", "works", "differs from a loop"),
    ]
    assert str(changes[1]) == "repeat · x.repeat(2) · storage: recorded copy, measured view"


def test_bad_calls_and_effects_are_compared():
    old = {**entry(), "bad_calls": {"x.repeat()": "RuntimeError: a"}, "effects": {"held": "0 bytes"}}
    new = {**entry(), "bad_calls": {"x.repeat()": "RuntimeError: b"}, "effects": {}}
    assert [(change.fact, change.old, change.new) for change in record.compare({"repeat": old}, {"repeat": new})] == [
        ("x.repeat()", "RuntimeError: a", "RuntimeError: b"),
        ("held", "0 bytes", None),
    ]


def test_equal_entries_do_not_differ():
    assert record.compare({"repeat": entry()}, {"repeat": entry()}) == []


def test_operations_that_come_and_go():
    old, new = {"a": entry(), "b": entry()}, {"b": entry(), "c": entry()}
    assert [(change.operation, change.new) for change in record.compare(old, new)] == [
        ("a", None),
        ("c", "an operation"),
    ]
    assert [change.operation for change in record.compare(old, new, partial=True)] == ["c"]


def test_a_record_is_written_whole_sorted_and_read_back(tmp_path):
    path = record.path_of(tmp_path, "2.13.0+cpu")
    assert path.name == "torch-2.13.0.json"
    record.save(path, {"torch": "2.13.0", "operations": {"b": entry(), "a": entry()}, "views": {}})
    assert list(record.load(path)["operations"]) == ["a", "b"]
    assert [child.name for child in tmp_path.iterdir()] == [path.name]
    assert record.load(tmp_path / "torch-9.json") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"torch": "2.13.0"}'])
def test_a_file_that_is_no_record_is_named(tmp_path, text):
    path = tmp_path / "torch-2.13.0.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="torch-2.13.0.json is not a record"):
        record.load(path)


def test_versions_are_sorted_as_versions(tmp_path):
    for version in ("2.9.1", "2.13.0", "2.14.1"):
        (tmp_path / f"torch-{version}.json").write_text("{}")
        (tmp_path / f"all-{version}.json").write_text("{}")
    assert record.versions(tmp_path) == ["2.9.1", "2.13.0", "2.14.1"]


def test_every_operation_is_in_the_committed_records_and_no_other():
    import _ext.facts.__main__ as command

    known = record.versions(command.RECORDS)
    assert known
    for version in known:
        path = record.path_of(command.RECORDS, version)
        found = record.load(path)
        assert found["torch"] == version
        assert list(found["operations"]) == sorted(OPERATIONS)
        assert path.read_text() == record.dumps(found)
        assert len(path.read_text()) < 200_000


def test_a_record_says_nothing_of_the_machine():
    import _ext.facts.__main__ as command

    for path in command.RECORDS.glob("*.json"):
        text = path.read_text()
        assert "/home/" not in text and "/tmp" not in text and "site-packages" not in text
        assert not re.search(r"0x[0-9a-f]{8,}", text)


def test_operations_are_told_apart_by_what_is_measured():
    digests = {operation.digest() for operation in OPERATIONS.values()}
    assert len(digests) == len(OPERATIONS)


def test_json_is_diffable_by_eye():
    text = record.dumps({"torch": "1", "operations": {"repeat": entry()}})
    assert '    "storage": "copy",\n' in text
    assert json.loads(text)["operations"]["repeat"]["facts"]["storage"] == "copy"
