"""Every page keeps the form that readers rely on, and says nothing that the build does not run."""

import json
import re

import pytest

import tiny
from _ext.sessions.source import items_of

DOCS = tiny.ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
NOTEBOOKS = [path for path in PAGES if "file_format: mystnb" in path.read_text("utf-8")[:200]]
OVERVIEWS = {"index", "all", "views"}  # tables of operations, not pages of one
OPERATIONS = [path for path in sorted(DOCS.glob("operations/*.md")) if path.stem not in OVERVIEWS]
SECTIONS = ["Example", "Gradient", "Memory", "Questions", "Errors", "In other libraries", "See also"]
PICTURED = {
    "detach": "autograd-graph", "retain_graph": "autograd-graph",
    "numel": "tensor-layout", "repeat": "tensor-layout", "repeat_interleave": "tensor-layout",
}
QUESTIONS = json.loads((tiny.ROOT / "tests/questions.json").read_text())
BACKWARD = re.compile(r"backward\(|autograd\.grad\(|gradcheck\(|\.grad\b")


def name(path):
    return str(path.relative_to(DOCS).with_suffix(""))


def prose(path):
    """The page without its front matter and fences."""
    text = re.sub(r"\A---\n.*?\n---\n", "", path.read_text("utf-8"), flags=re.S)
    return re.sub(r"^( *)(`{3,})[^`\n]*\n.*?^\1\2 *$", "", text, flags=re.S | re.M)


def items(path):
    return items_of(path.read_text("utf-8"), path.parent)


def test_the_pages_are_found():
    assert len(OPERATIONS) >= 5 and len(NOTEBOOKS) > len(OPERATIONS)


@pytest.mark.parametrize("path", OPERATIONS, ids=name)
def test_an_operation_keeps_the_order_of_sections(path):
    assert re.findall(r"^## (.+)$", prose(path), re.M) == SECTIONS
    assert len(re.findall(r"^# ", prose(path), re.M)) == 1


@pytest.mark.parametrize("path", OPERATIONS, ids=name)
def test_an_operation_answers_first_and_links_to_the_official_page(path):
    head = prose(path).split("\n# ", 1)[-1].split("\n## ")[0]
    sentence = head.strip().splitlines()[2]
    assert sentence.endswith(".") and len(sentence.split()) <= 40, sentence
    assert "](torch:" in head


@pytest.mark.parametrize("path", OPERATIONS, ids=name)
def test_an_operation_shows_promises_and_differentiates(path):
    kinds = [item.kind for item in items(path)]
    assert "code-cell" in kinds and "doctest" in kinds
    gradient = path.read_text("utf-8").split("\n## Gradient\n")[1].split("\n## Memory\n")[0]
    assert BACKWARD.search(gradient)
    assert "```{doctest}" in gradient


@pytest.mark.parametrize("stem, kind", PICTURED.items())
def test_an_operation_has_its_picture_above_the_example(stem, kind):
    path = DOCS / "operations" / f"{stem}.md"
    example = path.read_text("utf-8").split("\n").index("## Example") + 1
    assert any(item.kind == kind and item.line < example for item in items(path))


@pytest.mark.parametrize("path", OPERATIONS, ids=name)
def test_cells_are_short(path):
    for item in items(path):
        if item.kind == "code-cell" and not item.loaded:
            assert len(item.source.strip().splitlines()) <= 8, f"{name(path)}:{item.line}"


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_nothing_looks_like_a_test_and_is_not_run(path):
    text = path.read_text("utf-8")
    run = "\n".join(item.source for item in items(path) if item.kind == "doctest")
    assert text.count(">>> ") == run.count(">>> "), "a >>> stands outside a {doctest} fence of a notebook page"
    for fence in re.findall(r"^ *`{3,} *(?:python|py|pycon|ipython3?)\b.*$", text, re.M):
        pytest.fail(f"{fence!r} is shown and never run: make it a cell")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_an_announced_error_is_promised_too(path):
    for at, item in enumerate(found := items(path)):
        if "raises-exception" in item.tags:
            after = [one for one in found[at + 1 : at + 3] if one.kind == "doctest"]
            assert any("Traceback (most recent call last)" in one.source for one in after), f"{name(path)}:{item.line}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name)
def test_a_cell_can_be_copied_as_it_stands(path):
    for item in items(path):
        if item.kind == "code-cell":
            assert not re.search(r"^\s*[%!]", item.source, re.M), f"{name(path)}:{item.line} holds a magic"
            assert "_ext" not in item.source


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_prose_is_plain(path):
    for sentence in prose(path).splitlines():
        if sentence.startswith(("|", ":", "[", "(", "#")):  # a heading may quote a message
            continue
        words = re.sub(r"`[^`]*`|\$[^$]*\$|\[[^\]]*\]\([^)]*\)|!\[", "", sentence)
        assert not re.search(r"\w!(\s|$)", words), sentence
        assert not re.search(r"\bsimply\b", words, re.I), sentence


@pytest.mark.parametrize("question, place", QUESTIONS.items())
def test_a_question_is_answered_where_it_is_said_to_be(question, place):
    page, _, heading = place.partition("#")
    assert re.search(rf"^#+ {re.escape(heading)}$", prose(DOCS / page), re.M), place


@pytest.mark.parametrize("path", sorted((tiny.ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_a_program_has_a_page_that_shows_it(path):
    page = DOCS / "programs" / f"{path.stem}.md"
    assert f":load: ../../examples/{path.name}" in page.read_text("utf-8")
