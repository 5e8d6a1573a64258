"""The built site in a real browser: light and dark, narrow and wide, by keyboard, on paper, offline."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest
from _ext.sessions import source
from axe_playwright_python.base import AXE_FILE_PATH
from tiny import ROOT

AXE = "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], resultTypes: ['violations']})"
LOOKS = {"light": 1400, "dark": 390}  # each colour scheme at one of the two widths


def kinds(site):
    """Pages of every kind: some operations, and of each other section its index and its first ones."""
    chosen = ["index", "search", *site.of("operations")[:5], "operations/repeat", "operations/retain_graph"]
    for section in ("operations", "guides", "programs", "errors"):
        chosen += [f"{section}/index"] if f"{section}/index" in site.pages else []
        chosen += site.of(section)[:2]
    return list(dict.fromkeys(chosen))


@pytest.fixture(scope="module")
def look(browser):
    """Give a function that opens a context in a colour scheme, at a width."""
    opened = []

    def make(scheme="light", width=1400, **more):
        opened.append(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, **more))
        return opened[-1]

    yield make
    for context in opened:
        context.close()


@pytest.fixture(scope="module")
def page(look, address):
    """A wide, light page on the site's front page, with a clipboard that may be read."""
    context = look(accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
    return context.new_page()


@pytest.mark.parametrize("scheme", LOOKS)
def test_pages_are_accessible_fit_and_ask_nobody_else(site, look, address, scheme):
    width = LOOKS[scheme]
    tab = look(scheme, width).new_page()
    asked, broken, faults = set(), [], []
    tab.on("request", lambda request: asked.add(request.url))
    tab.on("pageerror", lambda error: broken.append(f"{tab.url}: {error}"))
    for name in kinds(site):
        tab.goto(f"{address}/{name}.html")
        tab.add_script_tag(path=AXE_FILE_PATH)
        for violation in tab.evaluate(AXE)["violations"]:
            if violation["impact"] in {"critical", "serious"}:
                faults.append(f"{name}: {violation['id']}: {[node['target'] for node in violation['nodes']][:3]}")
        reach = tab.evaluate("document.documentElement.scrollWidth")
        if reach > width:
            faults.append(f"{name}: {reach} px wide in a window of {width}")
    assert not faults
    assert not broken
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {urlsplit(address).netloc}


def test_search_finds_each_page(site, page, address):
    page.goto(f"{address}/search.html")
    page.wait_for_function("typeof Search !== 'undefined' && Search._index !== null")
    lost = []
    for name in site.pages:
        title = re.search(r"^# (.+)$", (ROOT / f"docs/{name}.md").read_text("utf-8"), re.M)[1]
        words = re.findall(r"\w[\w.]*", re.sub(r"[`*\\]", "", title))
        # As it stands, and without the single letters, which are in no index.
        for query in (" ".join(words), " ".join(word for word in words if len(word) > 1)):
            found = page.evaluate("(query) => Search._performSearch(...Search._parseQuery(query)).map((result) => result[0])", query)
            if name in found[-10:] + found[:10]:
                break
        else:
            lost.append(f"{name}: {query!r} finds {found[:5]}")
    assert not lost


@pytest.mark.parametrize("offline", [False, True])
def test_search_box(site, page, address, offline):
    page.goto(f"{site.folder.as_uri() if offline else address}/operations/detach.html")
    page.get_by_role("textbox", name="Search").fill("repeat_interleave")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    links = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
    assert any("operations/repeat_interleave.html" in link for link in links[:3]), links
    page.locator("#search-results li a").first.click()
    page.locator("h1").first.wait_for(state="visible")


def promised(text):
    """What a reader wants from a promise: its code, without prompts and outputs."""
    return "\n".join(line[4:] for line in text.splitlines() if line.startswith((">>> ", "... ")))


def test_copy_takes_code_and_nothing_else(page, address):
    path = ROOT / "docs/operations/detach.md"
    items = [item for item in source.items_of(path.read_text("utf-8"), path.parent) if item.kind in {source.CELL, source.PROMISE}]
    page.goto(f"{address}/operations/detach.html")
    page.wait_for_selector(".copybtn")
    buttons = page.locator(".copybtn")
    assert buttons.count() == len(items)
    seen = set()
    for at, item in enumerate(items):
        error = "Traceback" in item.source
        if (item.kind, error) in seen:
            continue
        seen.add((item.kind, error))
        buttons.nth(at).focus()
        page.keyboard.press("Enter")
        wanted = item.source if item.kind == source.CELL else promised(item.source)
        page.wait_for_function("async (wanted) => (await navigator.clipboard.readText()).trim() === wanted.trim()", arg=wanted)
    assert len(seen) == 3


def test_notebook_downloads(page, address, tmp_path):
    page.goto(f"{address}/operations/detach.html")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download notebook").click()
    assert waiting.value.suggested_filename == "detach.ipynb"
    path = tmp_path / "detach.ipynb"
    waiting.value.save_as(path)
    book = nbformat.read(path, as_version=4)
    assert book.cells[0].source.startswith("# detach\n")


def test_only_what_scrolls_takes_the_keyboard(look, address):
    tab = look(width=390).new_page()
    tab.goto(f"{address}/operations/detach.html")
    tab.wait_for_selector("pre[tabindex]")
    boxes = tab.eval_on_selector_all(
        ".highlight pre", "boxes => boxes.map(box => [box.scrollWidth > box.clientWidth + 1, box.tabIndex === 0])"
    )
    assert [scrolls for scrolls, _ in boxes] == [reached for _, reached in boxes]
    assert {True, False} == {scrolls for scrolls, _ in boxes}


def test_errors_and_promises_are_told_by_a_word(page, address):
    page.goto(f"{address}/operations/detach.html")

    def word(selector):
        return json.loads(page.eval_on_selector(selector, "box => getComputedStyle(box, '::before').content"))

    assert word("div.output.traceback") == "Error"
    assert word("div.promise") == "✓ checked"
    wraps = page.eval_on_selector("div.output.traceback pre", "box => box.scrollWidth <= box.clientWidth")
    assert wraps, "an error does not wrap"


def test_paper_shows_the_page_alone(look, address):
    tab = look("dark").new_page()
    tab.goto(f"{address}/operations/detach.html")
    tab.wait_for_selector(".copybtn", state="attached")
    tab.emulate_media(media="print")
    for control in (".copybtn", ".title-links", ".sidebar-drawer", ".toc-drawer", ".theme-toggle", ".headerlink", ".related-pages"):
        shown = tab.eval_on_selector_all(control, "boxes => boxes.filter(box => box.checkVisibility()).length")
        assert shown == 0, f"{control} is on paper"
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") in {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}
    cut = tab.eval_on_selector_all(".highlight pre", "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth + 1).length")
    assert cut == 0, "code is cut off on paper"


def test_page_reads_without_script(look, address):
    tab = look(java_script_enabled=False).new_page()
    tab.goto(f"{address}/operations/detach.html")
    assert tab.locator("h1").first.is_visible()
    assert tab.locator(".torch-picture").first.is_visible()
    assert tab.locator("math").first.is_visible()
