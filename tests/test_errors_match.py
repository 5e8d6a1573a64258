"""Templates, folding and matching, each on small examples; and the answer from a terminal."""

import subprocess
import sys
import time

import pytest
import tiny

from _ext.errors import find
from _ext.errors.match import ENOUGH, Matcher, last_message
from _ext.errors.pages import ErrorPage, PageError, plain, read
from _ext.errors.promises import promised_errors
from _ext.errors.template import compile_template, fold


def matcher(*pages):
    return Matcher([[compile_template(text) for text in ([page] if isinstance(page, str) else page)] for page in pages])


@pytest.mark.parametrize("text, folded", [
    ("A  B\n\tc", "abc"),
    ("\x1b[1;31mRed\x1b[0m", "red"),
    ("E       RuntimeError: x\nE       y", "runtimeerror:xy"),
    ("E = mc2", "e=mc2"),
    ("> quoted\n>   again", "quotedagain"),
    ("a > b", "a>b"),
    ("’quoted‘ “twice” `thrice`", "'quoted'\"twice\"'thrice'"),
    ("out=…", "out=..."),
    ("│ boxed | twice ║", "boxedtwice"),
    ("zero\u200bwidth\u202e", "zerowidth"),
    ("−1 – 2", "-1-2"),
    ("über 界", "ber"),
    ("\x1b", ""), ("\x1b[", "["), ("\x1b[" + "9" * 40 + "m", "9" * 40 + "m"),
])
def test_folding(text, folded):
    if text.startswith("\x1b[9"):
        assert fold(text).endswith("m")  # too long for a colour: kept as text, in bounded time
    else:
        assert fold(text) == folded


def test_a_template_is_cut_into_literals_and_kinds():
    template = compile_template("shape '<shape>' is invalid for input of size <int>")
    assert template.parts == ((True, "shape'"), (False, "s"), (True, "'isinvalidforinputofsize"), (False, "i"))
    assert template.anchor == 2
    assert template.as_data() == [2, ["shape'", ["s"], "'isinvalidforinputofsize", ["i"]]]
    assert template.literal == len("shape''isinvalidforinputofsize")


def test_only_known_names_are_placeholders():
    assert compile_template("uninitialized in <method 'numel' of objects>").parts == ((True, "uninitializedin<method'numel'ofobjects>"),)


@pytest.mark.parametrize("source, reason", [
    ("<name><int> is far too much of it", "touch"),
    ("<name> of <int>", "no literal text"),
    ("", "no literal text"),
])
def test_templates_that_cannot_be_used_are_refused(source, reason):
    with pytest.raises(ValueError, match=reason):
        compile_template(source)


@pytest.mark.parametrize("text, found", [
    ("wrong size of 3 in the tensor [2, 3] here", True),
    ("WRONG SIZE OF -3 IN THE TENSOR torch.Size([2, 3]) HERE", True),
    ("... and wrong size of 3 in the tensor [2, 3] here. And so on.", True),
    ("wrong size of … in the tensor … here", True),
    ("wrong size of 3 in the ten", True),  # cut
    ("wrong size of a in the tensor [2, 3] here", False),
    ("wrong size of 3 in the tensor a sentence with other words here", False),
    ("wrong size", False),
])
def test_placeholders_take_what_they_stand_for_and_no_more(text, found):
    assert bool(matcher("wrong size of <int> in the tensor <shape> here").search(text).hits) is found


def test_a_message_that_was_cut_in_front_is_found():
    known = matcher("function <name> returned an incorrect number of gradients (expected <int>, got <int>)")
    for text in ("FnBackward returned an incorrect number of gradients (expected 2, got 1)", "incorrect number of gradients (expected 2, got 1)"):
        answer = known.search(text)
        assert (answer.hits or answer.near) == (0,), text


def test_enough_of_a_message_names_it_though_the_rest_differs():
    known = matcher("the beginning of this message is long enough, and then <int> more words follow it")
    assert known.search("the beginning of this message is long enough, says someone").hits == (0,)
    assert len(fold("the beginning of this")) < ENOUGH
    assert known.search("the beginning of this book").hits == ()


def test_the_longer_reading_of_the_same_words_wins():
    known = matcher("<name> has no attribute of this kind", "module 'torch' has no attribute of this kind")
    assert known.search("module 'torch' has no attribute of this kind").hits == (1, 0)


def test_the_last_message_wins_and_the_others_follow():
    known = matcher("the first fault of <int> tensors", "another fault, unlike it, in <shape>")
    assert known.search("the first fault of 3 tensors\nthen another fault, unlike it, in [2]").hits == (1, 0)
    assert known.search("another fault, unlike it, in [2]\nthen the first fault of 3 tensors").hits == (0, 1)


def test_what_a_page_names_first_outranks_what_another_names_later():
    known = matcher(["something else entirely is wrong", "created in a mode that is over, and more of it"], "created in a mode that is over, and less of it")
    assert known.search("RuntimeError: created in a mode that is over, and").hits == (1, 0)


def test_near_misses_are_ranked_and_need_enough_in_common():
    known = matcher("sizes of tensors must match except in dimension <int>", "tensors must have the same number of dimensions")
    answer = known.search("ValueError: tensor sizes must match, except for dimension 2")
    assert answer.hits == () and answer.near[0] == 0
    assert known.search("ValueError: the weather").near == ()


def test_only_the_last_exception_is_compared_for_near_misses():
    text = "KeyError: 'a'\n\nTraceback:\n  x\nRuntimeError: second\nline"
    assert last_message(text) == "second\nline"
    assert last_message("no name of one") is None
    assert last_message("torch.cuda.OutOfMemoryError: CUDA") == "CUDA"


@pytest.mark.parametrize("text", [
    "wrong size of " * 40_000, "wrong size of " + "1" * 500_000, "[" * 500_000, "E   " * 120_000, "\x1b[" * 250_000, "aError" * 80_000,
])
def test_time_is_bounded(text):
    known = matcher("wrong size of <int> in the tensor <shape> here", "wrong size of <text> and <text> and <text> to the end")
    start = time.process_time()
    known.search(text)
    assert time.process_time() - start < 5  # a search that tried every split would take hours


def test_the_path_is_printed_with_the_first_sentence():
    def ask(text):
        return subprocess.run([sys.executable, "-m", "_ext.errors"], input=text.encode(), capture_output=True, cwd=tiny.ROOT,
                              env={"PYTHONPATH": "docs", "PATH": ""}, timeout=60)

    ran = ask("Traceback (most recent call last):\n  File \"a.py\", line 1\nRuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)\n")
    path, sentence = ran.stdout.decode().splitlines()
    assert ran.returncode == 0 and path == "docs/errors/mat1-mat2-shapes.md"
    assert sentence in (tiny.ROOT / path).read_text("utf-8") and sentence.endswith(".")
    ran = ask("nothing of the sort\xff")
    assert ran.returncode == 1 and ran.stdout.decode() == "No page knows this message.\n" and not ran.stderr
    ran = ask("")
    assert ran.returncode == 1 and "standard input" in ran.stdout.decode()
    ran = ask("ValueError: sizes of the tensors have to match except in dimension 1")
    assert ran.returncode == 1 and "docs/errors/cat-sizes.md" in ran.stdout.decode()


def test_a_program_can_ask():
    assert find("RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)") == "mat1-mat2-shapes"
    assert find("RuntimeError: nothing of the sort") is None


def page(tmp_path, about, body="# Title\n\nA sentence. Another.\n"):
    path = tmp_path / "page.md"
    path.write_text(f"---\n{about}---\n\n{body}", "utf-8")
    return read(path, tmp_path)


GOOD = "error:\n  family: shape\n  type: IndexError\n  messages:\n    - |-\n      a message that is long\n  operations: [view]\n"


def test_a_page_says_what_it_explains(tmp_path):
    known = page(tmp_path, GOOD, "# `Title` with [a link](there.md) …\n\nThe `first` sentence\nof two lines. The second.\n\n## Cause: x\n")
    assert isinstance(known, ErrorPage)
    assert (known.stem, known.title, known.summary) == ("page", "Title with a link …", "The first sentence of two lines.")
    assert (known.family, known.kinds, known.operations, known.silent) == ("shape", ("IndexError",), ("view",), False)
    assert [message.text for message in known.messages] == ["a message that is long"]


@pytest.mark.parametrize("about, reason", [
    ("title: x\n", "no `error:`"),
    ("error: [\n", "not YAML"),
    (GOOD.replace("shape", "other"), "family is 'other'"),
    (GOOD.replace("  type", "  kind"), "unknown in `error:`: kind"),
    ("error:\n  family: shape\n", "no messages"),
    (GOOD.replace("- |-\n      a message that is long", "- 7"), "a message is a text"),
    (GOOD.replace("- |-\n      a message that is long", "- text: a message that is long\n      before: 1.0"), "a message is a text"),
    (GOOD.replace("a message that is long", "<name> is"), "no literal text"),
])
def test_a_page_that_cannot_be_used_says_why(tmp_path, about, reason):
    with pytest.raises(PageError) as refused:
        page(tmp_path, about)
    assert reason in str(refused.value) and "page.md" in str(refused.value)


def test_a_page_without_a_title_is_refused(tmp_path):
    with pytest.raises(PageError, match="no title"):
        page(tmp_path, GOOD, "Some text.\n")


def test_markdown_becomes_plain_text():
    assert plain("the [`x`](a.md) of ``a`b`` and `c`") == "the x of a`b and c"


def test_promised_errors_are_read_from_doctests_alone():
    text = ("```{code-cell}\nTraceback (most recent call last):\n    ...\nValueError: a cell\n```\n\n"
            "```{doctest}\n>>> f()\nTraceback (most recent call last):\n    ...\nValueError: one\n>>> g()  # doctest: +ELLIPSIS\n"
            "Traceback (most recent call last):\n    ...\nKeyError: two...\n```\n")
    assert promised_errors(text) == ["ValueError: one\n", "KeyError: two\n"]
