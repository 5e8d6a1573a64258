"""Differences between versions by kind, and the record of all of torch."""

import json
import shutil
import sys

import pytest

from _ext.facts import cache, differences, everything, processes, record, tables
from _ext.facts.__main__ import RECORDS, main
from _ext.facts.record import Change

SAMPLED = {
    "path": "cdist",
    "dtype": "float64",
    "samples": 3,
    "facts": {"storage": "copy", "input_bytes": 48, "shape": "(2,)"},
}


def kind(old, new, fact="vmap", **entries):
    return differences.kind(Change("op", "x.op()", fact, old, new), **entries)


@pytest.mark.parametrize(
    "old, new, wanted",
    [
        ("works", "raises RuntimeError: no", "behaviour"),
        ("raises RuntimeError: a 3", "raises RuntimeError: b 4", "wording"),
        ("raises RuntimeError: a", "raises NotImplementedError: a", "exception"),
        ("RuntimeError: a", "TypeError: b", "exception"),
        ("kills the process (SIGSEGV)", "RuntimeError: repeats can not be negative", "behaviour"),
        ("no error: 3", "RuntimeError: no", "behaviour"),
        ("depends: works | raises RuntimeError: a", "depends: works | raises RuntimeError: b", "wording"),
        ("depends: works | raises RuntimeError: a", "works", "behaviour"),
        ("raises Unsupported: x", "works", "behaviour"),
        (2, 3, "behaviour"),
        (None, "works", "behaviour"),
    ],
)
def test_a_change_has_one_kind(old, new, wanted):
    assert kind(old, new) == wanted


def test_an_operation_that_comes_or_goes():
    assert differences.kind(Change("op", "", "", None, "an operation")) == "presence"


def test_another_sample_is_told_from_another_answer():
    other = {**SAMPLED, "samples": 4}
    assert kind("yes", "zero everywhere", before=SAMPLED, after=other) == "samples"
    assert kind("yes", "zero everywhere", before=SAMPLED, after=SAMPLED) == "behaviour"
    assert kind(3, 4, fact="samples", before=SAMPLED, after=other) == "samples"


def records(folder, old, new):
    for version, entries in (("1.0.0", old), ("1.1.0", new)):
        record.save(record.path_of(folder, version), {"torch": version, "operations": {}, "views": {}})
        record.save(everything.path_of(folder, version), {"torch": version, "operations": entries})


def test_the_page_shows_each_kind_and_says_where_nothing_changed(tmp_path):
    changed = {**SAMPLED, "facts": {**SAMPLED["facts"], "vmap": "raises RuntimeError: no", "storage": "view"}}
    records(tmp_path, {"cdist": SAMPLED, "gone": SAMPLED}, {"cdist": changed})
    html = tables.versions(tmp_path, lambda name: None)
    assert "From torch 1.0.0 to 1.1.0" in html
    assert "What behaves differently: 2" in html and "Came and went: 1" in html
    assert "<td>copy</td><td>view</td>" in html and "<td>works</td><td>raises RuntimeError: no</td>" in html
    assert "<strong>Other wording</strong>: nothing." in html


def test_one_record_is_no_comparison(tmp_path):
    record.save(record.path_of(tmp_path, "1.0.0"), {"torch": "1.0.0", "operations": {}, "views": {}})
    assert "There is one record, of torch 1.0.0" in tables.versions(tmp_path, lambda name: None)


def test_the_committed_versions_differ_where_torch_was_changed():
    old, new = record.versions(RECORDS)[-2:]
    found = {
        (d.change.operation, d.change.call or d.change.fact): d.kind for d in differences.between(RECORDS, old, new)
    }
    assert found["item", "x.item()"] == "behaviour"
    assert (
        found["repeat_interleave", "torch.repeat_interleave(torch.tensor([2, -1, -1]), output_size=0)"] == "behaviour"
    )


def test_several_dtypes_with_one_answer_are_one_row():
    def refused(operation, dtype, new):
        change = Change(operation, "", f"dtypes_refused · {dtype}", f"RuntimeError: no {dtype}", f"{new}: no {dtype}")
        return differences.Difference(change, "exception")

    given = [refused("fft", "bool", "TypeError"), refused("fft", "int8", "TypeError"), refused("fft", "half", "ValueError")]
    given += [refused("other", "bool", "TypeError"), differences.Difference(Change("fft", "", "vmap", "a", "b"), "behaviour")]
    facts = [(difference.change.operation, difference.change.fact) for difference in differences.joined(given)]
    assert facts == [
        ("fft", "dtypes_refused · bool, int8"),
        ("fft", "dtypes_refused · half"),
        ("other", "dtypes_refused · bool"),
        ("fft", "vmap"),
    ]


def no_page(name):
    return None


def test_all_of_torch_links_here_else_to_the_official_page(tmp_path):
    records(
        tmp_path,
        {},
        {"cdist": SAMPLED, "repeat": {**SAMPLED, "path": "Tensor.repeat"}, "_private": {**SAMPLED, "path": None}},
    )
    html = tables.all_of_torch(tmp_path, "1.1.0", {"repeat": "repeat.html"}.get, lambda path: f"https://torch/{path}")
    assert '<a href="repeat.html"><code>repeat</code></a>' in html
    assert '<a href="https://torch/cdist"><code>cdist</code></a>' in html
    assert '<th scope="row"><code>_private</code>' in html
    assert "measured on torch 1.1.0, CPU" in html


def test_a_variant_of_the_database_leads_to_the_page_of_its_name(tmp_path):
    records(tmp_path, {}, {"max.binary": {**SAMPLED, "path": "max"}, "view.x": {**SAMPLED, "path": "Tensor.view"}})
    html = tables.all_of_torch(tmp_path, "1.1.0", {"max": "max.html", "view": "view.html"}.get, no_page)
    assert '<a href="max.html"><code>max.binary</code></a>' in html and '<a href="view.html"><code>view.x</code></a>' in html


def test_what_torch_wraps_for_its_own_tests_is_compiled_as_its_users_call_it():
    from _ext.facts.opinfo import OpInfoTarget

    swapped = OpInfoTarget("nn.functional.embedding_bag")  # takes its arguments in either order, and warns of one
    assert swapped.answer(("probe", "result"))["warns"] == []
    assert OpInfoTarget("zero_").answer(("probe", "storage"))["storage"] == "same object"  # torch's tests clone before
    assert OpInfoTarget("nn.functional.dropout").answer(("probe", "compile")) == {"compile": "works"}
    assert OpInfoTarget("svd_lowrank").answer(("probe", "compile"))["compile"].startswith("not measured: called through a wrapper")


def test_what_torch_warns_of_once_a_process_is_told_of_each_operation(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "cores", lambda: 1)  # one worker takes them all
    names = ["index_reduce.mean", "index_reduce.prod", "sparse.sampled_addmm"]
    assert main(["--records", str(tmp_path), "all", *names]) == 0
    entries = record.load(everything.path_of(tmp_path, cache.installed_version()))["operations"]
    beta = ["UserWarning: index_reduce() is in beta and the API may change at any time."]
    # The last one's warning is of the sparse layout: making its samples says it too.
    assert [entries[name]["facts"].get("warns") for name in names] == [beta, beta, None]


def test_another_text_of_a_warning_is_another_wording():
    old, new = ({"one": {"facts": {"warns": [f"UserWarning: {text}"]}}} for text in ("first text", "second text"))
    assert [differences.kind(change) for change in record.compare(old, new)] == ["wording"]


def test_a_torch_without_this_record_gets_the_newest_with_its_version(tmp_path):
    records(tmp_path, {"cdist": SAMPLED}, {"cdist": SAMPLED})
    assert "torch 1.0.0, CPU" in tables.all_of_torch(tmp_path, "1.0.0", no_page, no_page)
    assert "torch 1.1.0, CPU" in tables.all_of_torch(tmp_path, "9.0.0", no_page, no_page)


def test_a_disagreement_is_not_published_without_its_reason(tmp_path):
    wrong = {
        **SAMPLED,
        "facts": {**SAMPLED["facts"], "finite_differences": "disagrees: GradcheckError: Jacobian mismatch"},
    }
    records(tmp_path, {}, {"cov": wrong})
    with pytest.raises(ValueError, match="without a recorded reason: cov"):
        tables.all_of_torch(tmp_path, "1.1.0", no_page, no_page)
    (tmp_path / "disagreements.json").write_text(json.dumps({"cov": {"cause": "sample", "reason": "A reason."}}))
    assert "A reason." in tables.all_of_torch(tmp_path, "1.1.0", no_page, no_page)


def test_every_disagreement_in_the_committed_records_has_a_reason_and_no_reason_is_left_over():
    reasons = everything.reasons(RECORDS)
    found = set()
    for version in record.versions(RECORDS, everything.PREFIX):
        found |= set(everything.disagreements(record.load(everything.path_of(RECORDS, version))["operations"]))
    assert found == set(reasons)
    assert {reason["cause"] for reason in reasons.values()} <= {"torch", "sample", "probe"}
    assert all(reason["reason"].endswith(".") and len(reason["reason"]) > 40 for reason in reasons.values())


def test_documented_operations_do_not_disagree():
    for version in record.versions(RECORDS):
        assert (
            everything.disagreements(
                {
                    name: entry
                    for name, entry in record.load(record.path_of(RECORDS, version))["operations"].items()
                    if "facts" in entry
                }
            )
            == []
        )


def test_operations_of_the_record_of_all_of_torch_are_measured_to_be_so(tmp_path, capsys):
    path = everything.path_of(RECORDS, cache.installed_version())
    if not path.exists():
        pytest.skip(f"no record of all of torch {cache.installed_version()}: make facts-all measures it")
    shutil.copytree(RECORDS, tmp_path, dirs_exist_ok=True)
    names = sorted(record.load(path)["operations"])[::16]
    assert main(["--records", str(tmp_path), "all", *names]) == 0
    printed = capsys.readouterr().out
    assert f"{len(names)} operations on torch" in printed and ", 0 differences against" in printed, printed
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_without_the_database_the_record_is_left_as_it_is(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        everything, "_names", lambda: "torch's sample database cannot be imported: No module named 'expecttest'"
    )
    assert main(["--records", str(tmp_path), "all"]) == 3
    assert "The record is left as it is." in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_cannot_be_imported_says_why(monkeypatch):
    from _ext.facts import opinfo

    opinfo.database.cache_clear()
    monkeypatch.setitem(sys.modules, everything.DATABASE, None)
    with pytest.raises(opinfo.Unavailable, match="cannot be imported"):
        opinfo.database()
    opinfo.database.cache_clear()


def test_samples_without_an_empty_tensor_are_taken_where_there_are_any():
    import torch

    from _ext.facts.opinfo import OpInfoTarget, filled, small_ones
    from _ext.facts.samples import Sample
    from _ext.facts.tree import tensors

    def of(*sizes):
        return Sample(function=torch.cat, args=([torch.zeros(size) for size in sizes],))

    empty, half, full, bare = of(0, 0), of(0, 2), of(1, 2), of()
    assert filled([empty, half, full, bare, full], 2) == [full, bare]
    assert filled([empty, half, empty], 2) == [half]
    assert filled([empty, empty, empty], 2) == [empty, empty]

    def broken(*samples):
        yield from samples
        raise RuntimeError("cannot make it")

    assert filled(broken(full, empty), 2) == [full]
    with pytest.raises(RuntimeError):
        filled(broken(empty), 2)
    large, larger = of(401), of(402)
    assert small_ones([larger, full, large]) == [full] and small_ones([larger, large, large]) == [large, large]
    assert "copy" in OpInfoTarget("nn.functional.dropout3d").answer(("probe", "storage"))["storage"]
    for name in ("nn.functional.unfold", "mm", "cat"):
        target = OpInfoTarget(name)
        assert all(tensor.numel() for sample in target._of(target.dtype) for tensor in tensors(sample.arguments))


@pytest.mark.parametrize(
    "name, answer",
    [
        ("exp", "yes"),
        ("nn.functional.relu", "yes"),  # relu_, which the database does not name
        ("nn.functional.hardswish", "yes"),  # inplace=True
        ("bernoulli", "yes"),
        ("addmm", "yes"),  # with a sample whose input is as large as the result
        ("cat", "no"),
        ("normal.number_mean", "no"),  # the first argument is a number
        ("masked.cumsum", "no"),  # Tensor.cumsum_ takes no mask
    ],
)
def test_in_place_twins_are_looked_for_where_torch_has_them(name, answer):
    from _ext.facts.opinfo import OpInfoTarget

    assert OpInfoTarget(name).answer(("probe", "in_place")) == {"in_place": answer}


def test_real_and_complex_samples_are_asked_where_the_result_lies():
    from _ext.facts.opinfo import OpInfoTarget

    assert OpInfoTarget("conj").answer(("probe", "storage"))["storage"] == "depends: same object | view"


def test_numbers_are_those_of_a_sample_with_a_result():
    from _ext.facts.opinfo import OpInfoTarget

    assert OpInfoTarget("narrow_copy").answer(("probe", "result"))["new_bytes"] > 0


def test_a_method_that_writes_into_its_tensor_is_found_under_its_own_name():
    from _ext.facts.opinfo import path

    assert path("cauchy") == "Tensor.cauchy_"
    assert path("cat") == "cat" and path("contiguous") == "Tensor.contiguous"
    assert path("fill") is None  # torch.fill is there, undocumented; Tensor.fill_ is another function
    assert path("_softmax") is None and path("no_such_thing") is None


def test_answers_over_samples_are_merged():
    from _ext.facts.opinfo import merged, spread

    assert merged([{"a": "works", "n": 3}, {"a": "works", "n": 5}]) == {"a": "works", "n": 3}
    assert merged([{"a": "works"}, {"a": "raises"}]) == {"a": "depends: raises | works"}
    assert merged([{"a": "raises E: size 3"}, {"a": "raises E: size 44"}]) == {"a": "raises E: size 3"}
    assert merged([{"a": "copy"}, {"a": "empty result"}]) == {"a": "copy"}
    assert merged([{"gradient": "zero everywhere"}, {"gradient": "yes"}]) == {"gradient": "yes"}
    assert merged([{"gradient": "none"}, {"gradient": "yes"}]) == {"gradient": "depends: none | yes"}
    assert merged([{"in_place": "raises E: larger"}, {"in_place": "yes"}]) == {"in_place": "yes"}
    assert spread(list(range(60)), 3) == [30, 0, 59]
    assert spread([1, 2], 3) == [2, 1]
    assert spread(list(range(5)), 1) == [2]
