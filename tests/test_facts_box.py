"""The box and the tables: what they say follows from the record's entry, and drawing them needs no torch."""

import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from _ext.facts import box, everything, record, tables, view_list, wording
from _ext.facts.__main__ import RECORDS
from _ext.facts.operations import OPERATIONS

VERSION = record.versions(RECORDS)[0]
ENTRIES = record.load(record.path_of(RECORDS, VERSION))["operations"]
VIEWS = record.load(record.path_of(RECORDS, VERSION))["views"]


class Balanced(HTMLParser):
    """Fails where an element is not closed in its place."""

    EMPTY = {"br", "input", "img"}

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def rows(html):
    """Label -> word of each row of a box, without markup."""
    found = re.findall(r'<span class="facts-label">(.*?)</span> <span class="facts-word">(.*?)</span>', html)
    return {re.sub("<[^>]+>", "", label): re.sub("<[^>]+>", "", word) for label, word in found}


def drawn(name, **options):
    return box.draw(name, ENTRIES[name], VERSION, **options)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_box_is_whole(name):
    html = drawn(name)
    Balanced(html)
    assert f"torch {VERSION}, CPU" in html
    for label, word in rows(html).items():
        assert label and word


def test_a_box_opens_with_the_measured_call():
    html = drawn("repeat")
    assert html.index("x.repeat(2, 2)") < html.index("facts-row")
    assert "x: float64 (2, 3)" in html


def test_a_box_answers_what_readers_ask():
    assert rows(drawn("repeat", numpy={"x.repeat(2, 2)": "np.tile(x, (2, 2))"})) == {
        "Result": "copy",
        "New memory": "192 bytes (input: 48 bytes)",
        "Gradient": "yes (RepeatBackward), agrees with finite differences",
        "Saved for backward": "nothing; second backward works",
        "In-place write": "backward works after either",
        "Dtypes": "all accepted",
        "In-place twin, out=": "no in-place twin, no out=",
        "NumPy": "equal",
        "Other arguments": "2 more calls measured",
        "Bad calls": "4 measured, 1 without an error",
    }


@pytest.mark.parametrize(
    "name, label, word",
    [
        ("view", "Result", "view; permuted input: raises RuntimeError"),
        ("contiguous", "Result", "same object; permuted input: copy"),
        ("numel", "Result", "no tensor: int"),
        ("unique", "Gradient", "backward raises NotImplementedError (Unique2Backward)"),
        ("round", "Gradient", "zero everywhere (RoundBackward)"),
        ("detach", "Gradient", "none"),
        ("mul", "Saved for backward", "2 tensors, 96 bytes; second backward needs retain_graph=True"),
        ("exp", "In-place write", "into the input: backward works; into the result: backward raises"),
        (
            "expand",
            "In-place write",
            "into the input: backward works; into the result: refused: elements overlap in memory",
        ),
        ("mean", "Dtypes", "bool, integers refused"),
        ("abs", "Dtypes", "bool refused; complex64 → float32; complex128 → float64"),
        ("item", "torch.compile", "nothing captured"),
        ("retain_graph", "Held after backward()", "0 bytes"),
        ("retain_graph", "Held after backward(retain_graph=True)", "12,000 bytes"),
        ("retain_graph", "Second backward() after backward()", "raises RuntimeError"),
    ],
)
def test_short_words(name, label, word):
    assert rows(drawn(name))[label] == word


def test_what_plainly_works_is_not_shown():
    shown = rows(drawn("repeat"))
    assert not {wording.label(fact) for fact in wording.SELDOM} & set(shown)
    assert {"torch.vmap", "torch.compile", "Meta device", "Fake tensors"} <= set(rows(drawn("unique")))


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_does_not_plainly_work_is_shown(name):
    facts = record.with_usual(ENTRIES[name].get("facts", {"gradient": "none"}))
    plain = (None, "works", "no gradient", "no floating point input", "no tensor as input", {}, [])
    told = {fact for fact in wording.SELDOM if facts.get(fact) not in plain}
    if facts["gradient"] not in ("yes", "zero everywhere"):
        told -= {"double_backward", "forward_mode", "dtypes_backward_refused"}  # the row on the gradient says it
    assert {wording.label(fact) for fact in told} <= set(rows(drawn(name)))


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if "call" not in entry])
def test_what_a_box_shows_runs_below_import_torch(name):
    html = drawn(name, codes={effect.question: effect.code for effect in OPERATIONS[name].effects})
    setup, *codes = (unescape(text) for text in re.findall("<pre[^>]*><code>(.*?)</code></pre>", html, re.DOTALL))
    if setup != ENTRIES[name]["setup"]:
        setup = f"{codes.pop()}\n{setup}"  # the last row holds what is folded away
    assert setup == ENTRIES[name]["setup"] and len(codes) == len(ENTRIES[name]["effects"])
    for code, answer in zip(codes, ENTRIES[name]["effects"].values()):
        names = {}
        exec(f"import torch\n{setup}", names)
        if re.match(r"\w+Error: ", answer):
            with pytest.raises(Exception) as raised:
                exec(code, names)
            assert answer.startswith(type(raised.value).__name__)
        else:
            exec(code, names)


def test_errors_are_linked_where_the_index_has_a_page():
    asked = []

    def link(error):
        asked.append(error)
        return (
            "../errors/repeat-dims.html" if error.startswith("RuntimeError: Number of dimensions of repeat") else None
        )

    html = drawn("repeat", link=link)
    assert html.count('<a href="../errors/repeat-dims.html">RuntimeError: Number of dimensions of repeat dims') == 1
    assert "TypeError: repeat() takes 1 positional argument but 2 were given" in asked
    assert not any(error.startswith("no error") for error in asked)


def test_text_of_an_error_is_text():
    entry = {**ENTRIES["clone"], "bad_calls": {"x < y": "RuntimeError: <script>alert(1)</script> & `code`"}}
    html = box.draw("clone", entry, VERSION)
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert "x &lt; y" in html


def test_without_a_record_the_box_says_so():
    assert "no record of this torch version" in drawn("clone", recorded=False)
    assert "no record" not in drawn("clone")


def test_an_operation_that_died_is_told_in_its_row():
    entry = {**ENTRIES["clone"], "facts": {**ENTRIES["clone"]["facts"], "vmap": "kills the process (SIGSEGV)"}}
    assert rows(box.draw("clone", entry, VERSION))["torch.vmap"] == "kills the process (SIGSEGV)"
    assert "kills the process (SIGSEGV)" in drawn("repeat_interleave")


def test_other_arguments_tell_what_differs():
    html = drawn("repeat_interleave")
    assert "<code>torch.repeat_interleave(x, counts, dim=0)</code>" in html
    assert "Second backward: needs retain_graph=True" in html


def test_identifiers_differ():
    assert len({box.identifier(name) for name in OPERATIONS}) == len(OPERATIONS)
    assert box.identifier("autograd.grad") == "facts-autograd-grad"


@pytest.mark.parametrize(
    "names, words",
    [
        ([], ""),
        (["complex64", "complex128"], "complex"),
        (["bool", "uint8", "int8", "int16", "int32", "int64"], "bool, integers"),
        (["bool", "int8"], "bool, int8"),
        (["float16", "bfloat16"], "float16, bfloat16"),
    ],
)
def test_dtypes_in_few_words(names, words):
    assert wording.dtype_groups(names) == words


def test_the_table_has_a_row_for_every_operation_and_links_its_box():
    html = tables.operations(ENTRIES, VERSION, lambda name: f"{name}.html#{box.identifier(name)}")
    Balanced(html)
    assert html.count("<tr data-name=") == len(ENTRIES)
    assert '<a href="repeat.html#facts-repeat"><code>repeat</code></a>' in html
    assert html.count('scope="col"') == len(tables.COLUMNS)
    offered = re.search(r'data-filters="([^"]*)"', html)[1]
    assert "retain=second backward needs retain_graph" in offered


@pytest.mark.parametrize(
    "key, yes, no",
    [
        ("view", "expand", "repeat"),
        ("copy", "repeat", "expand"),
        ("depends", "reshape", "expand"),
        ("gradient", "repeat", "detach"),
        ("zero", "round", "exp"),
        ("none", "argmax", "exp"),
        ("raises", "unique", "exp"),
        ("twice", "repeat", "mul"),
        ("retain", "mul", "repeat"),
        ("input", "mul", "exp"),
        ("result", "exp", "mul"),
        ("bool", "abs", "exp"),
        ("integers", "mean", "sum"),
        ("complex", "max", "sum"),
        ("vmap", "item", "sum"),
        ("break", "item", "sum"),
        ("meta", "unique", "sum"),
        ("twin", "exp", "repeat"),
        ("out", "exp", "repeat"),
    ],
)
def test_filters_hold_for_one_operation_and_not_for_another(key, yes, no):
    _, test = tables.FILTERS[key]
    assert test(record.with_usual(ENTRIES[yes]["facts"]))
    assert not test(record.with_usual(ENTRIES[no]["facts"]))


def test_the_page_on_views_shows_every_call_once_a_table():
    html = tables.views(VIEWS, VERSION)
    Balanced(html)
    assert "The 41 entries of the official list" in html
    missing = html[html.index("Not on the list") : html.index("Looks like a view")]
    copies = html[html.index("Looks like a view") : html.index("Finer points")]
    assert "torch.view_as_complex(p)" in missing and "torch.view_as_complex(p)" not in copies
    assert "x.flip(0)" in copies and "x.flip(0)" not in missing


@pytest.mark.parametrize("version", record.versions(RECORDS, everything.PREFIX))
def test_the_page_on_views_names_every_operation_that_is_recorded_to_share_memory(version):
    database = record.load(everything.path_of(RECORDS, version))
    html = tables.views(VIEWS, version, database=database)
    Balanced(html)
    shown = " ".join(map(unescape, re.findall(r"<code>(.*?)</code>", html))).replace("x[0, 2:]", "x.__getitem__")
    sharing = [
        name
        for name, entry in database["operations"].items()
        if any(
            word in ("view", "same object")
            for fact in ("storage", "storage_permuted")
            for answer in str(entry["facts"][fact]).removeprefix("depends: ").split(" | ")
            for word in answer.split(" + ")
        )
    ]
    assert len(sharing) > 60
    for name in sharing:
        own = (database["operations"][name]["path"] or name).removeprefix("Tensor.")
        assert re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)|[.\s]{re.escape(own)}(?!\w)", shown), name
    some = html[html.index("Shares memory in some calls") : html.index("Looks like a view")]
    assert "<code>nn.functional.dropout2d</code>" in some and "depends: copy | same object" in some
    assert "<code>nn.functional.dropout</code>" not in some and "<code>take_along_dim</code>" not in some


def test_calls_are_told_by_what_they_call():
    assert view_list.name_of("x.t().contiguous()") == "contiguous"
    assert view_list.name_of("torch.linalg.diagonal(x)") == "linalg.diagonal"
    assert view_list.name_of("x[:1].T") == "T" and view_list.name_of("x[0, 2:]") == "__getitem__"


def test_drawing_needs_no_torch():
    code = "import sys; sys.modules['torch'] = None; sys.modules['numpy'] = None\nfrom _ext.facts import box, tables, cache, extension"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(box.__file__).parents[2])},
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "key, facts, wanted",
    [
        ("raises", {"gradient": "depends: backward raises A: a | backward raises B: b"}, True),
        ("raises", {"gradient": "depends: backward raises A: a | yes"}, False),
        ("gradient", {"gradient": "depends: none | yes"}, True),
        ("gradient", {"gradient": "depends: none | no tensor"}, False),
        ("double", {"gradient": "depends: none | yes", "double_backward": "depends: raises A: a | raises B: b"}, True),
        ("double", {"gradient": "yes", "double_backward": "depends: raises A: a | works"}, False),
        ("break", {"compile": "not measured: why"}, False),
    ],
)
def test_a_filter_looks_at_each_part_of_an_answer_that_depends(key, facts, wanted):
    assert tables.FILTERS[key][1](facts) is wanted


@pytest.mark.parametrize(
    "facts, told",
    [
        ({"in_place": "yes", "out": "yes"}, "in place, out="),
        ({"in_place": "no", "out": "no"}, "–"),
        ({"in_place": "raises RuntimeError: larger", "out": "depends: no | yes"}, "in place: raises on these samples, out= in some calls"),
        ({"in_place": "yes", "out": "accepted, holds something else"}, "in place"),
    ],
)
def test_a_table_tells_twins_that_are_there_in_some_calls(facts, told):
    html = tables.operations({"op": {**ENTRIES["exp"], "facts": {**ENTRIES["exp"]["facts"], **facts}}}, VERSION, lambda name: None)
    assert f"<td>{told}</td></tr>" in html
    assert ("has an in-place twin" in html) == ("in place" in told) and ("takes out=" in html) == ("out=" in told)


def test_what_only_some_samples_refuse_is_told_apart():
    facts = {"dtypes_refused": {"bool": "RuntimeError: no", "int8": "some samples: RuntimeError: no"}}
    assert wording.refused(facts) == "bool; in some calls int8"
    assert wording.refused({"dtypes_refused": {"int8": "some samples: RuntimeError: no"}}) == "in some calls int8"
    assert tables.FILTERS["bool"][1](facts)
    assert not tables.FILTERS["bool"][1]({"dtypes_refused": {"bool": "some samples: RuntimeError: no"}})


def test_a_table_tells_dtypes_that_were_not_tried():
    facts = {**ENTRIES["exp"]["facts"], "dtypes_not_tried": ["complex64", "complex128"]}
    html = tables.operations({"op": {**ENTRIES["exp"], "facts": facts}}, VERSION, lambda name: None)
    assert "<td>none; complex not tried</td>" in html


def test_answers_that_differ_in_their_messages_alone_are_one_word():
    assert wording.short("depends: raises RuntimeError: a | raises RuntimeError: b") == "raises RuntimeError"
    assert wording.short("depends: raises RuntimeError: a | works") == "depends: raises RuntimeError | works"


def test_a_tensor_without_a_storage_is_not_called_no_tensor():
    assert wording.memory({"storage": "no storage"}) == "–"
    assert wording.memory({"storage": "no tensor"}) == "no tensor"


def test_tables_say_that_a_torch_has_no_record():
    note = "there is no record of this version to hold them against"
    assert note in tables.operations(ENTRIES, VERSION, lambda name: None, recorded=False)
    assert note in tables.views(VIEWS, VERSION, recorded=False)
    assert note not in tables.operations(ENTRIES, VERSION, lambda name: None) + tables.views(VIEWS, VERSION)
