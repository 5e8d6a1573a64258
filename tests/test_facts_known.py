"""Facts that were measured once before, by other code on samples of its own: torch 2.13.0 on the CPU, 54 operations.

Each cell is met by the record, or the difference stands in ``EXPLAINED`` with its reason.
"""

import pytest
import torch

from _ext.facts import record, wording
from _ext.facts.__main__ import RECORDS

VERSION = "2.13.0"
OPERATIONS = record.load(record.path_of(RECORDS, VERSION))["operations"]
COLUMNS = (
    "storage", "bytes", "grad_fn", "saves", "second backward", "writes", "gradchecks", "vmap", "fake", "compile",
    "out=", "in-place", "refused", "changed", "numpy",
)  # fmt: skip

# storage: contiguous input, permuted input. bytes: new, input. writes: into the input, into the result, then backward.
# gradchecks: first derivative, second, forward mode. compile: calls captured by default, with fullgraph=True.
# Several words where several calls answer differently; "–" where there is nothing to ask.
KNOWN = """
detach | view | 0/48 | – | – | – | – | – | ok | ok | works | no | yes | none | – | –
numel | no tensor | – | – | – | – | – | – | ok | ok | nothing captured | no | – | none | bfloat16→int, bool→int… | equal
repeat | copy | 192/48 | RepeatBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
repeat_interleave | copy | 96/48 | ViewBackward / IndexSelectBackward | 0 / 1 | works / retain | ok / ok | ok | ok | fails | works | no | – | none | – | equal
clone | copy | 48/48 | CloneBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
expand | view | 0/24 | ExpandBackward | 0 | works | ok / refused | ok | ok | ok | works | no | – | none | – | equal
expand_as | view | 0/24 | ExpandBackward | 0 | works | ok / refused | ok | ok | ok | works | no | – | none | – | equal
tile | copy | 192/48 | RepeatBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
broadcast_to | view | 0/24 | ExpandBackward | 0 | works | ok / refused | ok | ok | ok | works | no | – | none | – | equal
reshape | view / copy | 0/48 | ViewBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
view | view / raises | 0/48 | ViewBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
permute | view | 0/48 | PermuteBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
transpose | view | 0/48 | TransposeBackward | 0 | works | ok / ok | ok | ok | ok | works | no | yes | none | – | equal
contiguous | same / copy | 0/48 | input itself | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
flatten | view / copy | 0/48 | ViewBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
squeeze | view | 0/48 | SqueezeBackward | 0 | works | ok / ok | ok | ok | ok | works | no | yes | none | – | –
unsqueeze | view | 0/48 | UnsqueezeBackward | 0 | works | ok / ok | ok | ok | ok | works | no | yes | none | – | equal
stack | copy | 96/96 | StackBackward | 0 | works | ok / ok | ok | ok | ok | works | yes | – | none | – | equal
cat | copy | 96/96 | CatBackward | 0 | works | ok / ok | ok | ok | ok | works | yes | – | none | – | equal
chunk | view | 0/48 | SplitBackward | 0 | works | refused / refused | ok | ok | ok | works | no | – | none | – | equal
split | view | 0/48 | SplitBackward | 0 | works | refused / refused | ok | ok | ok | works | no | – | none | – | equal
gather | copy | 32/48 | GatherBackward | 2 | retain | raises / ok | ok | ok | ok | works | yes | – | none | – | equal
index_select | copy | 32/48 | IndexSelectBackward | 1 | retain | ok / ok | ok | ok | ok | works | yes | – | none | – | equal
masked_select | copy | 24/48 | MaskedSelectBackward | 2 | retain | raises / ok | ok | ok | fails | nothing captured→works | yes | – | none | – | equal
masked_fill | copy | 48/48 | MaskedFillBackward | 1 | retain | ok / ok | ok | ok | ok | works | no | yes | none | – | equal
where | copy | 48/48 | WhereBackward | 1 | retain | ok / ok | ok | ok | ok | works | no | – | none | – | equal
take_along_dim | copy | 32/48 | GatherBackward | 2 | retain | raises / ok | ok | ok | ok | works | yes | – | none | – | equal
scatter | copy | 48/48 | ScatterBackward | 1 | retain | ok / ok | ok | ok | ok | works | yes | yes | none | – | –
sum | copy | 8/48 | SumBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | bool→int64, int16→int64… | equal
mean | copy | 8/48 | MeanBackward | 0 | works | ok / ok | ok | ok | ok | works | yes | – | bool, integers | – | equal
max | copy | 8/48 | MaxBackward | 2 / 1 | retain | raises / raises, ok / ok | ok | ok | ok | works | yes | – | complex | – | –
min | copy | 8/48 | MinBackward | 2 / 1 | retain | raises / raises, ok / ok | ok | ok | ok | works | yes | – | complex | – | –
argmax | copy | 8/48 | – | – | – | – | – | ok | ok | works | yes | – | bool, complex | all→int64 | equal
sort | copy | 96/48 | SortBackward | 1 | retain | ok / ok | ok | ok | ok | works | yes | – | complex | – | equal
topk | copy | 64/48 | TopkBackward | 1 | retain | ok / ok | ok | ok | ok | works | yes | – | bool, complex | – | –
unique | copy | 48/48 | Unique2Backward, backward raises | 0 | – | raises / raises | fails | fails | fails | nothing captured→works | no | – | complex | – | equal
cumsum | copy | 48/48 | CumsumBackward | 0 | works | ok / ok | ok | ok | ok | works | yes | yes | none | bool→int64, int16→int64… | equal
clamp | copy | 48/48 | ClampBackward | 1 | retain | raises / ok | ok | ok | ok | works | yes | yes | complex | bool→int64 | equal
abs | copy | 48/48 | AbsBackward | 1 | retain | raises / ok | ok | ok | ok | works | yes | yes | bool | complex128→float64, complex64→float32 | equal
round | copy | 48/48 | RoundBackward, zero | 0 | works | ok / ok | ok | ok | ok | works | yes | yes | bool, complex | – | equal
sign | copy | 48/48 | SignBackward, zero | 0 | works | ok / ok | ok | ok | ok | works | yes | yes | complex | – | equal
floor | copy | 48/48 | FloorBackward, zero | 0 | works | ok / ok | ok | ok | ok | works | yes | yes | bool, complex | – | equal
flip | copy | 48/48 | FlipBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
roll | copy | 48/48 | RollBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
narrow | view | 0/48 | SliceBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
unfold | view | 0/48 | UnfoldBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
diagonal | view | 0/48 | DiagonalBackward | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | – | equal
real | view / same | 0/96 | SelectBackward / input itself | 0 | works | ok / ok | ok | ok | ok | works | no | – | none | complex128→float64, complex64→float32 | equal
to | same / copy | 0/48 | input itself / ToCopyBackward | 0 | works | ok / ok | mixed | ok | ok | works | no | – | none | bfloat16→float64, bool→float64… | –
item | no tensor | – | – | – | – | – | – | fails | fails | nothing captured→works | no | – | none | bfloat16→float, complex128→complex… | equal
add | copy | 48/48 | AddBackward | 0 | works | ok / ok | ok | ok | ok | works | yes | yes | none | – | equal
mul | copy | 48/48 | MulBackward | 2 | retain | raises / ok | ok | ok | ok | works | yes | yes | none | – | equal
exp | copy | 48/48 | ExpBackward | 1 | retain | ok / raises | ok | ok | ok | works | yes | yes | none | bool→float32, int16→float32… | equal
sqrt | copy | 48/48 | SqrtBackward | 1 | retain | ok / raises | ok | ok | ok | works | yes | yes | none | bool→float32, int16→float32… | equal
"""

# What the record answers instead, and why that is no contradiction.
EXPLAINED = {
    ("numel", "changed"): ({}, "an int for every dtype: the fact on what is returned says it once"),
    ("repeat_interleave", "fake"): ("ok, fails", "it fails for a tensor of counts without output_size; two calls more were asked"),
    ("squeeze", "numpy"): ("equal", "was not held against NumPy then"),
    ("max", "numpy"): ("equal", "was not held against NumPy then"),
    ("min", "numpy"): ("equal", "was not held against NumPy then"),
    ("sum", "out="): ("no, yes", "out= is there with dim alone, and a call with dim was asked too"),
    ("where", "out="): ("yes", "was called through a lambda then, which took no out=; torch.where takes it: the test below"),
}


def told(values):
    """Several calls in a row of words: each once, in order."""
    return ", ".join(dict.fromkeys(values)) or "–"


def word(value):
    """One fact in the words of the table."""
    if value is None or value in ("no gradient", "no floating point input", "no tensor"):
        return "–"
    starts = {"raises": "fails", "backward raises ": "raises", "backward raises": "raises", "backward works": "ok"}
    starts |= {"refused": "refused", "works": "ok", "not checked": "mixed", "nothing captured": "nothing captured"}
    return next((short for start, short in starts.items() if str(value).startswith(start)), str(value))


def compiled(facts):
    both = tuple(str(facts[fact]) for fact in ("compile", "fullgraph"))
    return both[0] if both[0] == both[1] else "→".join(both)


def node(facts):
    gradient, name = facts["gradient"], facts.get("grad_fn")
    if name is None:
        return "–"
    more = ", backward raises" if gradient.startswith("backward raises") else ", zero" if gradient == "zero everywhere" else ""
    return name.removeprefix("the ") + more


def writes(facts):
    both = [word(facts.get(fact)) for fact in ("write_input", "write_result")]
    return "–" if both == ["–", "–"] else " / ".join(both)


def answers(name):
    """Column -> what the record of an operation says, in the words of the table."""
    calls = list(record.calls(OPERATIONS[name]).values())
    main = calls[0]
    places = [facts[fact].partition(" Runtime")[0] for facts in calls for fact in ("storage", "storage_permuted")]
    checks = [{word(facts[fact]) for fact in ("finite_differences", "double_backward", "forward_mode")} for facts in calls]
    second = {"needs retain_graph": "retain", None: "–"}
    return {
        "storage": " / ".join(dict.fromkeys(place.replace("same object", "same") for place in places)),
        "bytes": f"{main['new_bytes']}/{main['input_bytes']}" if "new_bytes" in main else "–",
        "grad_fn": " / ".join(dict.fromkeys(map(node, calls))),
        "saves": " / ".join(dict.fromkeys(str(facts.get("saved_tensors", "–")) for facts in calls)),
        "second backward": " / ".join(dict.fromkeys(second.get(value, value) for value in (facts.get("second_backward") for facts in calls))),
        "writes": told(map(writes, calls)),
        "gradchecks": "mixed" if len(set().union(*checks)) > 1 else told(set().union(*checks)),
        "vmap": told(word(facts["vmap"]) for facts in calls),
        "fake": told(word(facts["fake"]) for facts in calls),
        "compile": compiled(main),
        "out=": told(facts["out"] for facts in calls),
        "in-place": told(facts["in_place"] for facts in calls).replace("no", "–"),
        "refused": wording.refused(main),
        "changed": main["dtypes_changed"],
        "numpy": main.get("numpy", "–"),
    }


def meets(column, known, found):
    """Whether an answer is the known one; "…" says that the known one was cut short."""
    if column != "changed":
        return known == found
    if known == "–":
        return not found
    pairs = dict(pair.split("→") for pair in known.removesuffix("…").split(", "))
    pairs = {name: pairs["all"] for name in found} if "all" in pairs else pairs
    return pairs.items() <= found.items() and (known.endswith("…") or pairs == found)


ROWS = {cells[0]: dict(zip(COLUMNS, cells[1:], strict=True)) for line in KNOWN.strip().splitlines() if (cells := line.split(" | "))}


def test_the_table_is_whole():
    assert len(ROWS) == 54 and set(ROWS) <= set(OPERATIONS)
    assert set(EXPLAINED) <= {(name, column) for name in ROWS for column in COLUMNS}


@pytest.mark.parametrize("name", ROWS)
def test_the_record_meets_what_was_known(name):
    found = answers(name)
    for column, known in ROWS[name].items():
        if (name, column) in EXPLAINED:
            answer, _ = EXPLAINED[name, column]
            assert found[column] == answer and not meets(column, known, found[column])
        else:
            assert meets(column, known, found[column]), (column, known, found[column])


def test_where_takes_out():
    mask, x, y = torch.tensor([True, False]), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    out = torch.zeros(2)
    assert torch.where(mask, x, y, out=out) is out
    assert out.tolist() == [1.0, 4.0]
