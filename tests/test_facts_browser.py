"""The box and the tables in a real browser: without script, by keyboard, narrow and wide, light and dark."""

import pytest
from axe_playwright_python.base import AXE_FILE_PATH

from _ext.facts import cache, record
from _ext.facts.__main__ import RECORDS
from tiny import make_site

AXE = "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations']})"
NAMES = (
    "clone",
    "view",
    "expand",
    "reshape",
    "mul",
    "exp",
    "round",
    "detach",
    "backward",
    "numel",
    "abs",
    "unique",
    "item",
    "max",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny site with a box a page, the table of them, and the tables that are drawn from the committed records."""
    folder = tmp_path_factory.mktemp("tables")
    pages = {f"{name}.md": f"# {name}\n\nText.\n\n```{{facts}} {name}\n```\n" for name in NAMES}
    for kind in ("table", "versions", "all"):
        pages[f"{kind}.md"] = f"# The {kind}\n\n## Rows\n\n```{{facts-{kind}}}\n```\n"
    records = f"\nfacts_records = {str(RECORDS)!r}\n"
    cached = folder / "docs/_build/.facts"
    cached.mkdir(parents=True)
    put_cache(cached)
    status, printed, site = make_site(folder, pages, conf=records)
    assert status == 0, printed
    return site


def put_cache(folder):
    """Take the facts from the record, as if they had been measured: what is tested here is how they look."""
    import json

    from _ext.facts.operations import OPERATIONS

    version = cache.installed_version()
    entries = record.load(record.path_of(RECORDS, version))["operations"]
    kept = {name: {"sample": OPERATIONS[name].digest(), "entry": entries[name]} for name in NAMES}
    (folder / f"torch-{version}.json").write_text(
        json.dumps({"code": cache.code_digest(), "operations": kept, "views": None})
    )


@pytest.fixture
def show(browser, folder):
    """Give a function that opens a page of the tiny site."""
    contexts = []

    def open_page(name, width=1200, scheme="light", script=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        contexts.append(context)
        page = context.new_page()
        page.goto((folder / f"{name}.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()


def names(page):
    return page.locator("tbody tr:visible").evaluate_all("rows => rows.map(row => row.dataset.name)")


@pytest.mark.parametrize("name", ["view", "backward", "table", "versions", "all"])
@pytest.mark.parametrize("scheme, width", [("light", 1400), ("dark", 390)])
def test_nothing_is_hard_to_reach_or_to_read(show, name, scheme, width):
    page = show(name, width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.add_script_tag(path=AXE_FILE_PATH)
    found = page.evaluate(AXE)["violations"]
    assert [
        (one["id"], one["impact"], one["nodes"][0]["html"][:200])
        for one in found
        if one["impact"] in ("critical", "serious")
    ] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1200, 390])
def test_a_sentence_comes_on_demand_without_script(show, width):
    page = show("view", width, script=False)
    row = page.locator(".facts-row", has_text="Result").first
    assert "permuted input: raises RuntimeError" in row.inner_text()
    assert not row.locator(".facts-more").is_visible()
    row.locator("summary").click()
    assert "view size is not compatible" in row.locator(".facts-more").inner_text()


def test_a_row_opens_by_keyboard(show):
    page = show("view")
    summary = page.locator(".facts-row summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator(".facts-row .facts-more").first.is_visible()


def test_the_table_is_whole_without_script(show):
    page = show("table", script=False)
    assert sorted(names(page)) == sorted(NAMES)
    assert page.locator(".facts-tools").count() == 0
    assert page.locator("tbody a[href='view.html#facts-view']").count() == 1


def test_rows_are_sorted_by_a_click_and_by_a_key(show):
    page = show("table")
    head = page.locator("thead th", has_text="New memory")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    sizes = [
        size
        for size in page.locator("tbody tr td:nth-child(3)").evaluate_all(
            "cells => cells.map(cell => Number(cell.dataset.sort))"
        )
    ]
    assert sizes == sorted(sizes) and len(set(sizes)) > 2
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    page.locator("thead th button", has_text="Operation").click()
    assert head.get_attribute("aria-sort") is None
    assert names(page) == sorted(NAMES)


def test_rows_are_filtered_by_name_and_by_fact_and_counted(show):
    page = show("table")
    status = page.locator(".facts-tools [role=status]")
    assert status.inner_text() == f"{len(NAMES)} rows"
    page.get_by_label("Name contains").fill("EX")
    assert sorted(names(page)) == ["exp", "expand"]
    page.get_by_label("Name contains").fill("")
    page.get_by_label("Only what").select_option(label="returns a view")
    assert sorted(names(page)) == ["detach", "expand", "reshape", "view"]
    page.get_by_label("and").select_option(label="has no gradient")
    assert names(page) == ["detach"]
    assert status.inner_text() == f"1 of {len(NAMES)} rows"
    page.get_by_label("Name contains").fill("<b>nothing")
    assert names(page) == [] and status.inner_text() == f"0 of {len(NAMES)} rows"


@pytest.mark.parametrize(
    "label",
    [
        "backward raises though it has a grad_fn",
        "gradient is zero everywhere",
        "second backward works",
        "a write into the result breaks backward",
    ],
)
def test_every_filter_that_is_offered_leaves_some_rows_and_takes_some(show, label):
    page = show("table")
    page.get_by_label("Only what").select_option(label=label)
    assert 0 < len(names(page)) < len(NAMES)


def test_all_of_torch_answers_to_every_key(show):
    page = show("all")
    if page.locator("tbody tr").count() == 0:
        pytest.fail("there is no record of all of torch")
    assert page.locator("tbody tr").count() > 600
    page.get_by_label("Name contains").press_sequentially("conv")
    page.locator("thead button").first.click()
    assert all("conv" in name for name in names(page)) and len(names(page)) > 5
