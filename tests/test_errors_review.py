"""A torch upgrade becomes a list that a person reads, and an approved change is written down in every place."""

import re
from pathlib import Path

import pytest
from tiny import notebook

from _ext.errors import records, review
from _ext.errors.observe import NOTHING, observe
from _ext.errors.pages import Index, read

NOW = "RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"
OLD = "RuntimeError: inconsistent sizes 2 and 3 in dimension 0, said an older torch"

PAGE = notebook("""
    # inconsistent sizes … and … in dimension …, said an older torch

    Two sizes differ.

    ```{code-cell}
    import torch
    a = torch.ones(2)
    ```

    ## Cause: different lengths

    ```{doctest}
    >>> a + torch.ones(3)
    Traceback (most recent call last):
        ...
    OLD
    >>> a.numel()
    2
    >>> torch.numel([1])
    Traceback (most recent call last):
        ...
    TypeError: numel(): argument 'input' (position 1) must be Tensor, not list
    ```
    """).replace("OLD", OLD).replace("language: python\n", """language: python
error:
  family: broadcasting
  type: RuntimeError
  messages:
    - |-
      inconsistent sizes <int> and <int> in dimension <int>, said an older torch
    - text: |-
        something that only another machine says
      needs: another machine
  operations: []
""")


@pytest.fixture
def docs(tmp_path):
    """A site with one error page whose wording is out of date, a page of an operation, and records."""
    (tmp_path / "errors").mkdir()
    (tmp_path / "operations").mkdir()
    (tmp_path / "errors" / "sizes.md").write_text(PAGE, "utf-8")
    promise = f"```{{doctest}}\n>>> import torch\n>>> torch.ones(2) * torch.ones(3)\nTraceback (most recent call last):\n    ...\n{OLD}\n```\n"
    (tmp_path / "operations" / "mul.md").write_text(notebook("# mul\n\nText.\n\n" + promise), "utf-8")
    records.write("1.0.0", [
        records.Record("sizes", "torch.ones(2) + torch.ones(3)", OLD),
        records.Record("same", "len(torch.tensor(1.0))", "TypeError: len() of a 0-d tensor"),
        records.Record("gone", "torch.ones(2) + torch.ones(2)", "RuntimeError: equal sizes are not allowed"),
    ], tmp_path / "records.jsonl")
    return tmp_path


def reviewed(docs):
    return review.review(review.promised(docs), records.read(docs / "records.jsonl")[1])


def test_each_changed_wording_is_listed_once_with_all_its_places(docs):
    found = reviewed(docs)
    assert [(change.old, change.new) for change in found.changes] == [
        (OLD, NOW), ("RuntimeError: equal sizes are not allowed", NOTHING)]
    change, gone = found.changes
    lines = (docs / "errors" / "sizes.md").read_text("utf-8").splitlines()
    assert [(path.name, lines[line - 1]) for path, line in change.places if path.name == "sizes.md"] == [("sizes.md", ">>> a + torch.ones(3)")]
    assert {path.name for path, _ in change.places} == {"sizes.md", "mul.md"}
    assert change.ids == ["sizes"] and gone.ids == ["gone"] and gone.gone

    text = review.listing(found, docs)
    assert f"1\n  old  {OLD}\n  new  {NOW}\n  in   errors/sizes.md:" in text
    assert "in   record sizes" in text
    assert "no longer raised" in text and "\n2\n" not in text


def test_nothing_changed_is_said(docs):
    assert review.listing(review.Review([], [])) == "Every recorded message and every promised error is as it was.\n"


def test_an_approved_change_is_written_to_pages_records_and_patterns(docs):
    found = reviewed(docs)
    notes = review.accept(found.changes[:1], docs / "errors", docs / "records.jsonl", "2.0.0")
    assert len(notes) == 1 and "sizes.md" in notes[0]
    for path in (docs / "errors" / "sizes.md", docs / "operations" / "mul.md"):
        text = path.read_text("utf-8")
        assert NOW in text and OLD not in text
    page = read(docs / "errors" / "sizes.md", docs / "errors")
    assert [(message.text, message.since, message.until, message.needs) for message in page.messages] == [
        ("inconsistent sizes <int> and <int> in dimension <int>, said an older torch", None, "1.0.0", None),
        ("something that only another machine says", None, None, "another machine"),
        ("The size of tensor a (<int>) must match the size of tensor b (<int>) at non-singleton dimension <int>", "2.0.0", None, None),
    ]
    assert page.operations == () and page.kinds == ("RuntimeError",)
    known = Index(docs / "errors")
    assert known.find(NOW).stem == known.find(OLD).stem == "sizes"
    version, kept = records.read(docs / "records.jsonl")
    assert [record.raises for record in kept] == [NOW, "TypeError: len() of a 0-d tensor", "RuntimeError: equal sizes are not allowed"]
    # What is left is what nobody can approve by a number.
    assert [change.gone for change in reviewed(docs).changes] == [True]


def test_what_was_not_approved_is_left_alone(docs):
    before = {path: path.read_text("utf-8") for path in docs.rglob("*.md")}
    review.accept([], docs / "errors", docs / "records.jsonl", "2.0.0")
    assert before == {path: path.read_text("utf-8") for path in docs.rglob("*.md")}


def test_two_changes_on_one_page_do_not_disturb_each_other(docs):
    path = docs / "errors" / "sizes.md"
    path.write_text(path.read_text("utf-8").replace("must be Tensor, not list", "has to be a tensor\nand not a list"), "utf-8")
    found = reviewed(docs)
    review.accept([change for change in found.changes if not change.gone], docs / "errors", docs / "records.jsonl", "2.0.0")
    text = path.read_text("utf-8")
    assert NOW in text and "must be Tensor, not list" in text and "and not a list" not in text
    assert [change.gone for change in reviewed(docs).changes] == [True]


def test_a_promise_that_moved_is_refused(docs):
    change = review.Change("RuntimeError: a text that is not there", NOW, places=[(docs / "errors" / "sizes.md", 20)])
    with pytest.raises(ValueError, match="not where it was"):
        review.accept([change], docs / "errors", docs / "records.jsonl", "2.0.0")


def test_an_ellipsis_is_no_change(docs):
    path = docs / "errors" / "sizes.md"
    text = path.read_text("utf-8").replace(OLD, "RuntimeError: The size of tensor a ...").replace(
        "a + torch.ones(3)", "a + torch.ones(3)  # doctest: +ELLIPSIS")
    path.write_text(text, "utf-8")
    assert all(path.name != "sizes.md" for change in reviewed(docs).changes for path, _ in change.places)


@pytest.mark.parametrize("message, template", [
    ("shape '[2, 3]' is invalid for input of size 7", "shape '<shape>' is invalid for input of size <int>"),
    ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", "mat1 and mat2 shapes cannot be multiplied (<int>x<int> and <int>x<int>)"),
    ("Target size (torch.Size([2])) must be the same as input size (torch.Size([]))", "Target size (<shape>) must be the same as input size (<shape>)"),
    ("result type Float can't be cast to the desired output type Long", "result type <dtype> can't be cast to the desired output type <dtype>"),
    ("len() of a 0-d tensor", "len() of a 0-d tensor"),
    ("Expected size 3 but got size -4.", "Expected size <int> but got size <int>."),
    ("q must be in the range but got 1.5", "q must be in the range but got <number>"),
])
def test_a_message_becomes_a_template(message, template):
    assert review.generalise(message) == template


def test_code_that_ends_its_process_costs_one_answer():
    answers = observe([{"code": "1 / 0"}, {"code": "import os; os._exit(3)"}, {"code": "import os, signal; os.kill(os.getpid(), 9)"},
                       {"code": "x = torch.ones(2)"}, {"code": "raise SystemExit"}])
    assert answers[0] == "ZeroDivisionError: division by zero"
    assert "ended" in answers[1]["failed"] and "ended" in answers[2]["failed"]
    assert answers[3] == NOTHING
    assert "ended" in answers[4]["failed"]


def test_observed_code_does_not_leak_into_the_next():
    answers = observe([{"code": "torch.set_default_dtype(torch.float64); torch.set_grad_enabled(False)"},
                       {"code": "raise ValueError((torch.ones(1).dtype, torch.is_grad_enabled()))"}])
    assert answers[1] == "ValueError: (torch.float32, True)"


def test_the_command_line_lists_and_refuses(monkeypatch, capsys):
    from _ext.errors.__main__ import main

    page = Path("docs/errors/size-of-tensor-a.md").resolve()
    assert main(["review", "--pages", str(page)]) == 0
    assert re.match("Every recorded message", capsys.readouterr().out)
    assert main(["accept", "--pages", str(page)]) == 2
    assert "nothing was approved" in capsys.readouterr().err
    assert main(["accept", "7", "--pages", str(page)]) == 2
    assert "numbers are those" in capsys.readouterr().err
