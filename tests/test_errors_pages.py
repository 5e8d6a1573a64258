"""Every page of the error index has the form that readers and the other tests rely on."""

import doctest
import re

import pytest

from _ext.errors.pages import ROOT, index, paths, read
from _ext.errors.promises import promised_errors
from _ext.errors.template import fold
from _ext.sessions import source

STEMS = [path.relative_to(ROOT).with_suffix("").as_posix() for path in paths()]
every_page = pytest.mark.parametrize("stem", STEMS)


def page_of(stem):
    return read(ROOT / f"{stem}.md")


def sections(page):
    """Give (heading, text) for each second-level section."""
    parts = re.split(r"^## (.+)$", page.body, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def fences(text, kind):
    return re.findall(rf"^```\{{{kind}\}}.*?\n(.*?)^```$", text, re.M | re.S)


def only_elsewhere(page):
    """Whether every message of the page needs a machine or a build that is not here."""
    return bool(page.messages) and all(message.needs or message.until for message in page.messages)


def cure(section):
    return section.partition("**Cure:**")[2]


def test_there_are_pages():
    assert len(STEMS) > 2


@every_page
def test_session_can_read_it(stem):
    path = ROOT / f"{stem}.md"
    assert source.items_of(path.read_text("utf-8"), path.parent)


@every_page
def test_each_cause_raises_and_is_cured(stem):
    page = page_of(stem)
    causes = [(heading, text) for heading, text in sections(page) if heading.startswith("Cause: ")]
    assert causes, "no section '## Cause: ...'"
    for heading, text in causes:
        before = text.partition("**Cure:**")[0]
        after = cure(text)
        assert after, f"no '**Cure:**' in {heading!r}"
        told = page.silent or only_elsewhere(page)
        assert told or promised_errors(before), f"nothing is raised in {heading!r}"
        if told:
            assert fences(before, "code-cell") or fences(before, "doctest"), f"nothing is shown in {heading!r}"
        promises = [body for body in fences(after, "doctest")]
        right = [e for body in promises for e in doctest.DocTestParser().get_examples(body) if e.want and not e.exc_msg]
        assert right, f"no right value is promised for the cure of {heading!r}"


@every_page
def test_wrong_cures_are_shown(stem):
    for heading, text in sections(page_of(stem)):
        if heading == "Wrong cures":
            for advice in re.split(r"^### .+$", text, flags=re.M)[1:]:
                assert fences(advice, "doctest") or fences(advice, "code-cell")


@every_page
def test_a_silent_page_has_the_check_that_catches_it(stem):
    page = page_of(stem)
    checks = [text for heading, text in sections(page) if heading == "The check that would have caught it"]
    assert bool(checks) == page.silent == stem.startswith("silent/")
    assert all(fences(text, "doctest") for text in checks)


@every_page
def test_each_promised_error_that_is_this_pages_finds_it(stem):
    page = page_of(stem)
    if not (page.silent or only_elsewhere(page)):
        raised = promised_errors(page.body)
        assert raised
        assert stem in {index().find(text).stem for text in raised if index().find(text)}


@every_page
def test_each_message_is_raised_on_the_page(stem):
    page = page_of(stem)
    raised = promised_errors(page.body)
    for message in page.messages:
        if message.until or message.needs:
            continue
        if page.kinds and all(kind.endswith("Warning") for kind in page.kinds):
            raised_texts = raised + fences(page.body, "doctest")
        else:
            raised_texts = raised
        alone = index().matcher.__class__([[message.template]])
        assert any(hit.complete for text in raised_texts for hit in alone.hits(fold(text))), message.text


@every_page
def test_a_message_of_the_past_says_since_when(stem):
    page = page_of(stem)
    for message in page.messages:
        if message.until:
            assert re.fullmatch(r"\d+\.\d+(\.\d+)?", message.until)
            assert re.search(rf"torch {re.escape(message.until)}\b", page.body), f"the text does not speak of torch {message.until}"


@every_page
def test_title_finds_its_page(stem):
    page = page_of(stem)
    if page.messages and not page.silent:
        assert index().find(page.title).stem == stem


@every_page
def test_the_types_are_those_that_are_raised(stem):
    page = page_of(stem)
    if page.silent or only_elsewhere(page):
        return
    raised = {text.partition(":")[0].rpartition(".")[2] for text in promised_errors(page.body)}
    assert set(page.kinds) <= raised, f"{set(page.kinds) - raised} never raised"
