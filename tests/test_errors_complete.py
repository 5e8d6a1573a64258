"""The index is whole: every recorded message is raised, is found whatever a paste does to it, and has one page."""

import json
import re

import pytest
import yaml

from _ext.errors import records
from _ext.errors.match import Matcher
from _ext.errors.observe import NOTHING, observe
from _ext.errors.pages import FAMILIES, ROOT, index
from _ext.errors.promises import promised_errors
from _ext.errors.template import compile_template, fold

DOCS = ROOT.parent
VERSION, RECORDS = records.read()
RAISING = [record for record in RECORDS if record.raises != NOTHING]
every_record = pytest.mark.parametrize("record", RAISING, ids=lambda record: record.id)


def text_of(record):
    return record.raises.removesuffix(records.CUT)


def owners(text):
    """Give the stems of the pages that have a template which is the whole of `text`."""
    found = index().matcher.hits(fold(text))
    return {index().pages[hit.page].stem for hit in found if hit.complete}


def best(text):
    page = index().find(text)
    return page.stem if page else None


def test_every_record_is_still_raised_with_its_text():
    here = records.here(RECORDS)
    wrong = [f"{record.id}: {record.raises!r} is now {answer!r}"
             for record, answer in zip(here, observe([{"code": record.code} for record in here]))
             if isinstance(answer, dict) or not record.is_raised_as(answer)]
    assert not wrong, "\n".join(wrong) + "\npython -m _ext.errors review lists them, accept rewrites them"


def test_the_records_are_of_the_installed_torch():
    import torch

    assert torch.__version__.partition("+")[0] == VERSION


def test_record_names_and_codes_are_unique():
    assert len({record.id for record in RECORDS}) == len({record.code for record in RECORDS}) == len(RECORDS) >= 102


@every_record
def test_record_has_one_page(record):
    text = text_of(record)
    assert len(owners(text)) == 1, owners(text)
    assert best(text) in owners(text)


def traceback_of(text):
    return (
        "Epoch 3:  12%|#2        | 12/100 [00:01<00:09]\n"
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 42, in <module>\n    loss.backward()\n'
        '  File "/usr/lib/python3/dist-packages/torch/_tensor.py", line 625, in backward\n'
        "    torch.autograd.backward(\n    ~~~~~~~~~~~~~~~~~~~~~~~^\n"
        f"{text}\n"
    )


def pytest_report_of(text):
    return "    def test_it():\n>       loss.backward()\n\ntest_it.py:4:\n_ _ _ _ _\n" + "\n".join(f"E       {line}" for line in text.split("\n"))


# Numbers that are part of the wording.
CONSTANT = (r"\(-1\)|must be 1 to view|be 0 to view|of 0 elements|size -1 can|<= 2 dim|at -1!|0-dim|dimension size is 0|than 0|"
            r"numel\(\) == 0|dimension of size 2|\[0, 1\]|>= 0|<= 1|argument #1|least 1D|required rank \d|0D or 1D|3D \(|4D \(|1D input|size 1,|1D tensors|"
            r"matrices \(2-D|last dimension of size 2|length 3\.|equal to 0|#\d|1 value per|least a 1|1D or 2D|between 0 and 1|groups=1|"
            r"boundaries tensor should be 1|only be 0|at least \d|must be 1|base 10|1 required positional|takes 1 pos|element 0 of tensors")


def other_numbers(text):
    """Change every number that stands alone or in a shape: 3 becomes 34, 2x3 becomes 23x34."""
    def larger(match):
        return match[0] if match[1] or len(match[0]) > 4 else str(int(match[0]) * 11 + 1)

    return re.sub(rf"({CONSTANT})|(?<![\w.:%])\d+(?=x\d)|(?<=\dx)\d+|(?<![\w.#])\d+(?![\w-])(?!\.\d)", larger, text)


def longer_shapes(text):
    return re.sub(r"\[(\d+(?:, \d+)*)\]", r"[\1, 7, 11]", text)


def other_dtypes(text):
    swapped = {"Float": "Half", "Double": "BFloat16", "Long": "Short", "Int": "Char", "ComplexFloat": "ComplexDouble", "Bool": "Byte",
               "float": "double", "long int": "unsigned char"}
    return re.sub(r"(?<![\w-])(?:torch\.)?(ComplexFloat|Float|Double|Long|Bool(?!Tensor)|float|long int)(?:Tensor)?(?![\w])(?!ing| infinity| tensor| dtype| or| and complex)",
                  lambda match: match[0].replace(match[1], swapped[match[1]]), text)


def wrapped(width):
    return lambda text: "\n".join(line[at:at + width] for line in text.split("\n") for at in range(0, max(1, len(line)), width))


MANGLED = {
    "with its traceback": traceback_of,
    "as pytest shows it": pytest_report_of,
    "in lower case": str.lower,
    "cut after 60 characters": lambda text: text[:60],
    "message alone, cut after 60 characters": lambda text: text.partition(": ")[2][:60],
    "wrapped at 80 columns": wrapped(80),
    "wrapped at 33 columns": wrapped(33),
    "wrapped and indented": lambda text: wrapped(40)(text).replace("\n", "\r\n    "),
    "with other numbers": other_numbers,
    "with other shapes": longer_shapes,
    "in colour": lambda text: "\x1b[1;31m" + text.replace(": ", "\x1b[0m: \x1b[35m", 1) + "\x1b[0m",
    "with typographic quotes": lambda text: re.sub(r"'([^']*)'", r"‘\1’", text).replace("...", "…"),
}


@pytest.mark.parametrize("how", MANGLED)
def test_mangled_messages_find_the_page_of_the_plain_one_first(how):
    lost = []
    for record in RAISING:
        if how.startswith("message alone") and text_of(record) == "RuntimeError: ZeroDivisionError":
            continue  # alone it is the name of an exception of Python's
        mangled = MANGLED[how](text_of(record))
        if fold(mangled) and best(mangled) != best(text_of(record)):
            lost.append(f"{record.id}: {mangled!r} finds {best(mangled)}")
    assert not lost, "\n".join(lost)


def test_other_dtypes_find_the_same_page():
    lost = [f"{record.id}: {other_dtypes(text_of(record))!r}" for record in RAISING if best(other_dtypes(text_of(record))) != best(text_of(record))]
    assert not lost, "\n".join(lost)
    assert sum(other_dtypes(text_of(record)) != text_of(record) for record in RAISING) > 20


def test_the_last_of_two_errors_wins():
    first, second = RAISING[0], next(record for record in RAISING if best(text_of(record)) != best(text_of(RAISING[0])))
    between = "\nDuring handling of the above exception, another exception occurred:\n\n"
    both = traceback_of(text_of(first)) + between + traceback_of(text_of(second))
    assert best(both) == best(text_of(second))
    assert best(both) != best(text_of(first))
    assert {index().pages[hit].stem for hit in index().search(both).hits} >= {best(text_of(first)), best(text_of(second))}


NO_ERRORS = [
    "", " \n\t ", "hello", "RuntimeError", "RuntimeError: ", "Traceback (most recent call last):",
    "import torch\nx = torch.ones(2, 3)\nprint(x.view(6).sum())\n",
    "epoch 3 loss 0.412 acc 0.88 lr 1e-3 grad_norm 1.7\n" * 50,
    "How do I multiply two matrices of different shape in PyTorch? My tensors are on the same device and have the same dtype.",
    "The quick brown fox jumps over the lazy dog. " * 40,
    "KeyError: 'loss'", "ModuleNotFoundError: No module named 'torchvision'", "FileNotFoundError: [Errno 2] No such file or directory: 'model.pt'",
    "IndexError: list index out of range", "ZeroDivisionError: division by zero", "MemoryError", "KeyboardInterrupt",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "the two shapes did not match, and neither did the dtypes", "my tensor has the wrong size in dimension 1",
    "error: expected ';' before '}' token\nmake: *** [all] Error 2",
    "Segmentation fault (core dumped)", "npm ERR! code ELIFECYCLE",
    "tensor([[1., 2.],\n        [3., 4.]], grad_fn=<MulBackward0>)",
    "梯度为什么是 None?", "почему градиент равен None", "🔥" * 100,
]


@pytest.mark.parametrize("text", NO_ERRORS, ids=range(len(NO_ERRORS)))
def test_text_that_is_no_error_finds_nothing(text):
    answer = index().search(text)
    assert not answer.hits
    assert not answer.near


def test_a_library_s_source_and_a_licence_find_nothing():
    import argparse
    import json.decoder
    import statistics

    for module in (argparse, json.decoder, statistics):
        with open(module.__file__, encoding="utf-8") as file:
            assert not index().search(file.read()).hits


FILLINGS = {"int": ("3", "-17"), "number": ("0.5", "inf"), "shape": ("[2, 3]", "torch.Size([4])"), "dtype": ("Long", "torch.DoubleTensor"),
            "type": ("list", "numpy.ndarray"), "name": ("tanh", "some_name"), "device": ("cuda:0", "cpu"), "text": ("words", "a few words")}


@pytest.mark.parametrize("page", [page for page in index().pages if page.messages], ids=lambda page: page.stem)
def test_no_other_page_claims_its_messages(page):
    for message in page.messages:
        for variant in (0, 1):
            text = re.sub(r"<(\w+)>", lambda match: FILLINGS[match[1]][variant] if match[1] in FILLINGS else match[0], message.text)
            assert owners(text) == {page.stem}, text
            assert best(text) == page.stem, text


def test_the_index_is_large_enough():
    assert sum(len(page.messages) for page in index().pages) >= 80


def test_the_index_page_lists_every_family():
    listed = re.findall(r"^```\{error-list\} (\w+)$", (ROOT / "index.md").read_text("utf-8"), re.M)
    assert listed == list(FAMILIES)
    used = {page.family for page in index().pages}
    assert used == set(FAMILIES), f"no page in {set(FAMILIES) - used}"


WITHOUT = Matcher([[compile_template(entry["message"].strip())] for entry in yaml.safe_load(
    (ROOT.parent / "_ext" / "errors" / "without_page.yml").read_text("utf-8"))])


OPERATIONS = sorted(path for path in (DOCS / "operations").glob("*.md") if path.name != "index.md")


@pytest.mark.parametrize("path", OPERATIONS, ids=lambda path: path.stem)
def test_every_message_of_an_operation_has_a_page(path):
    """The links there and back are drawn by the extension, from the promises; see test_errors_browser.py."""
    text = path.read_text("utf-8")
    linked = re.findall(r"\]\(\.\./errors/([\w/-]+)\.md", text)
    assert set(linked) <= {page.stem for page in index().pages} | {"index"}
    missing = [message.strip() for message in promised_errors(text) if not best(message) and not WITHOUT.search(message).hits]
    assert not missing, "\n".join(missing)


def recorded_facts():
    """Give the path in the record and the text of every error that a fact box can show."""
    def walk(value, where):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from walk(inner, f"{where}/{key}")
        elif isinstance(value, list):
            for inner in value:
                yield from walk(inner, where)
        elif isinstance(value, str) and re.match(r"\w*(?:Error|Exception): ", value):
            yield where, value

    for path in sorted((DOCS / "_facts").glob("torch-*.json")):
        if path.stem == f"torch-{VERSION}":
            yield from walk(json.loads(path.read_text("utf-8")), path.stem)


def test_every_error_in_a_fact_box_has_a_page_or_a_reason():
    facts = list(recorded_facts())
    assert len(facts) > 50
    missing = {text.split("\n")[0]: where for where, text in facts if not best(text) and not WITHOUT.search(text).hits}
    assert not missing, "\n".join(f"{where}: {text}" for text, where in sorted(missing.items()))


def test_reasons_are_given_and_needed():
    entries = yaml.safe_load((ROOT.parent / "_ext" / "errors" / "without_page.yml").read_text("utf-8"))
    for entry in entries:
        assert set(entry) == {"message", "reason"} and len(entry["reason"]) > 20
        assert best(entry["message"]) is None, f"has a page by now: {entry['message']}"
