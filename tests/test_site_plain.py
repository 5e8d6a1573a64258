"""From MyST to plain Markdown, and from a page to cells."""

import pytest
from _ext.site import notebooks, plain

SCHEMES = {"https": None, "torch": {"url": "https://docs.pytorch.org/generated/torch.{{path}}.html"}}


def text_of(markdown, site=""):
    pieces = list(plain.pieces(markdown, plain.resolver("operations/detach", SCHEMES, site)))
    assert all(piece.kind == "prose" for piece in pieces)
    return "".join(piece.text for piece in pieces)


@pytest.mark.parametrize(
    "myst, wanted",
    [
        ("[detach](torch:Tensor.detach)", "[detach](https://docs.pytorch.org/generated/torch.Tensor.detach.html)"),
        ("<torch:Tensor.detach>", "[`torch.Tensor.detach`](https://docs.pytorch.org/generated/torch.Tensor.detach.html)"),
        ("[`x.y` z](repeat.md#part)", "`x.y` z"),
        ("[](repeat.md)", "repeat"),
        ("[a](https://x.org/b_(c)) (d)", "[a](https://x.org/b_(c)) (d)"),
        ("`[a](b.md)` and $[a](b.md)$", "`[a](b.md)` and $[a](b.md)$"),
        ("``[a](b.md) ` c``", "``[a](b.md) ` c``"),
        ("{math}`x^2` and {ref}`that <label>`", "$x^2$ and that"),
        ("[a](b.md){.wide} `c`{.d} e", "a `c` e"),
        ("![the alt](picture.svg)", "*the alt*"),
        ("(label)=\n## Title", "## Title"),
        ("% a comment\nText", "Text"),
        ("---\na: 1\n---\n\n# T", "# T"),
        ("a\n\n```{toctree}\nb\n```\n\nc", "a\n\nc"),
        ("```text\n[a](b.md)\n```", "```text\n[a](b.md)\n```"),
        ("```{math}\nx\n```", "$$\nx\n$$"),
        (":::{tip}\nOne [a](b.md).\n\nTwo.\n:::", "> **Tip**\n>\n> One a.\n>\n> Two."),
        (":::{admonition} The `x`\n:class: note\n\nText.\n:::", "> **The `x`**\n>\n> Text."),
        ("| a | b |\n|---|---|\n| [c](d.md) | e |", "| a | b |\n|---|---|\n| c | e |"),
    ],
)
def test_myst_becomes_markdown(myst, wanted):
    assert text_of(myst) == wanted


def test_links_lead_to_the_site_where_there_is_one():
    site = "https://me.example/guide/"
    assert text_of("[a](repeat.md#b)", site) == "[a](https://me.example/guide/operations/repeat.html#b)"
    assert text_of("[a](../guides/x.md)", site) == "[a](https://me.example/guide/guides/x.html)"


def test_cells_and_promises_are_told_apart_in_boxes_too():
    page = "a\n\n```{code-cell}\n:tags: [x]\n1\n```\n\n:::{note}\nb\n```{doctest}\n>>> 2\n2\n```\nc\n:::\n"
    pieces = list(plain.pieces(page, lambda target: None))
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("prose", "a"),
        ("code-cell", "1"),
        ("prose", "> **Note**\n>\n> b"),
        ("doctest", ">>> 2\n2"),
        ("prose", "> c"),
    ]


def cells(promise):
    return [(cell.source, [output.get("text") or output["data"]["text/plain"] for output in cell.outputs]) for cell in notebooks._promises(promise)]


def test_a_promise_becomes_cells_that_end_where_something_is_shown():
    promise = ">>> a = 1\n>>> a + 1\n2\n>>> b = 3\n>>> print(b)\n3\n>>> c = 4\n"
    assert cells(promise) == [("a = 1\na + 1", ["2"]), ("b = 3\nprint(b)", ["3\n"]), ("c = 4", [])]


def test_a_promised_error_is_caught_and_printed():
    promise = ">>> f(1,\n...   2)\nTraceback (most recent call last):\n    ...\nRuntimeError: no: really\n"
    source = 'try:\n    f(1,\n      2)\nexcept RuntimeError as error:\n    print(f"{type(error).__name__}: {error}")'
    assert cells(promise) == [(source, ["RuntimeError: no: really\n"])]


def test_of_an_error_that_goes_on_and_on_the_promised_lines_are_printed():
    ((source, outputs),) = cells(">>> f()  # doctest: +ELLIPSIS\nTraceback (most recent call last):\n    ...\nRuntimeError: one\ntwo\n...\n")
    assert outputs == ["RuntimeError: one\ntwo\n"]
    said = []
    exec(source, {"f": lambda: exec("raise RuntimeError('one\\ntwo\\nthree')"), "print": said.append})
    assert said == ["RuntimeError: one\ntwo"]


def test_an_error_that_is_no_builtin_is_caught_too():
    ((source, outputs),) = cells(">>> f()\nTraceback (most recent call last):\n    ...\ntorch._C._LinAlgError: singular\n")
    assert "except Exception as error" in source and outputs == ["_LinAlgError: singular\n"]


def test_what_a_block_shows_is_shown():
    assert cells(">>> with f():\n...     é = g(é)\n...     é * 2\n4\n") == [("with f():\n    é = g(é)\n    display(é * 2)", ["4"])]
    assert cells(">>> if a:\n...     1, 2\n(1, 2)\n") == [("if a:\n    display((1, 2))", ["(1, 2)"])]
    assert cells(">>> for i in x:\n...     print(i)\n1\n") == [("for i in x:\n    print(i)", ["1\n"])]


def test_what_varies_is_not_shown_before_it_is_run():
    assert cells(">>> f()  # doctest: +ELLIPSIS\n1...\n") == [("f()", [])]


def test_text_of_several_lines_is_not_indented():
    (cell,) = [notebooks._raising('f("""a\nb""")', "ValueError", "no", [])]
    assert cell.source == 'f("""a\nb""")' and cell.metadata.tags == ["raises-exception"]
