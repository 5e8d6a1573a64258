"""What a site has with an address, and has not without one."""

import zipfile
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import tiny
import yaml
from _ext.site import hosted, offline
from bs4 import BeautifulSoup
from playwright.sync_api import expect

PAGES = {
    "index.md": "# Tiny\n\nThe first sentence of it all.\n\n```{toctree}\nsub/a\nsub/b\n```\n",
    "sub/a.md": tiny.notebook("# Page A\n\nWhat page A says first.\n\n```{code-cell}\n1 + 1\n```\n\nSee [b](b.md#part).\n"),
    "sub/b.md": "# Page B\n\n## Part\n\nText.\n",
}
ADDRESS = {"SITE_URL": "https://me.example/guide", "GITHUB_REPOSITORY": "me/guide"}
NOWHERE = {"SITE_URL": "", "GITHUB_REPOSITORY": "me/guide"}


def built(folder, environment):
    status, printed, site = tiny.make_site(folder, PAGES, environment=environment)
    assert status == 0 and "WARNING" not in printed, printed
    return site


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return built(tmp_path_factory.mktemp("hosted"), ADDRESS)


def parsed(path):
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def test_without_an_address_there_is_none_of_it(tmp_path):
    site = built(tmp_path, NOWHERE)
    assert not {"sitemap.xml", "404.html", ".nojekyll"} & {path.name for path in site.iterdir()}
    text = "".join(path.read_text("utf-8") for path in site.rglob("*.html"))
    assert "og:" not in text and "colab" not in text and "canonical" not in text and ".zip" not in text
    assert "https://" not in (site / "sub/a.ipynb").read_text("utf-8")


def test_sitemap_lists_every_page_also_after_an_edit(tmp_path):
    site = built(tmp_path, ADDRESS)
    tiny.make_site(tmp_path, PAGES | {"sub/b.md": PAGES["sub/b.md"] + "\nMore.\n"}, environment=ADDRESS)
    assert "More." in (site / "sub/b.html").read_text("utf-8")
    places = [element.text for element in ElementTree.parse(site / "sitemap.xml").iter() if element.tag.endswith("loc")]
    base = "https://me.example/guide/"
    assert places == [base, f"{base}sub/a.html", f"{base}sub/b.html"]


def test_missing_page_works_at_any_path(published):
    page = parsed(published / "404.html")
    targets = [tag.get("href") or tag.get("src") for tag in page.find_all(["a", "link", "script", "img"])]
    targets = [target for target in targets if target and not target.startswith("#") and not urlsplit(target).scheme]
    assert targets and all(target.startswith("/guide/") for target in targets), targets
    lost = [target for target in targets if not (published / urlsplit(target).path.removeprefix("/guide/")).is_file()]
    assert not lost
    assert "/guide/sub/a.html" in targets


def test_missing_page_in_a_browser(published, browser, serve):
    server = serve(published)
    tab = browser.new_page()
    failed = []
    tab.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    page = (published / "404.html").read_text("utf-8")
    tab.route(f"{server}/guide/**", lambda route: answer(route, published, server, page))
    tab.goto(f"{server}/guide/very/deep/nothing.html")
    expect(tab.get_by_role("heading", name="Page not found")).to_be_visible()
    assert not failed
    tab.locator(".sidebar-tree a", has_text="Page A").click()
    expect(tab.get_by_role("heading", name="Page A")).to_be_visible()
    tab.close()


def answer(route, site, server, page):
    """Answer as a host does that serves the site below /guide/."""
    path = urlsplit(route.request.url).path.removeprefix("/guide/")
    if (site / path).is_file():
        route.fulfill(path=site / path)
    else:
        route.fulfill(body=page, content_type="text/html")


def test_shared_links_have_a_preview(published):
    page = parsed(published / "sub/a.html")
    tags = {tag["property"]: tag["content"] for tag in page.find_all("meta", property=True)}
    assert tags["og:title"] == "Page A"
    assert tags["og:url"] == "https://me.example/guide/sub/a.html"
    assert tags["og:description"].startswith("What page A says first.")
    assert "og:image" not in tags
    assert page.find("link", rel="canonical")["href"] == tags["og:url"]


def test_notebook_opens_in_colab_and_leads_back(published):
    links = {tag.get_text(): tag["href"] for tag in parsed(published / "sub/a.html").select(".title-links a")}
    assert links == {
        "Download notebook": "a.ipynb",
        "Open in Colab": "https://colab.research.google.com/github/me/guide/blob/gh-pages/sub/a.ipynb",
    }
    text = (published / "sub/a.ipynb").read_text("utf-8")
    assert "https://me.example/guide/sub/a.html" in text
    assert "[b](https://me.example/guide/sub/b.html#part)" in text


@pytest.mark.parametrize("bad", ["me.example/guide", "ftp://me.example/", "https://"])
def test_an_address_that_is_none_is_refused(tmp_path, bad):
    status, printed, site = tiny.make_site(tmp_path, PAGES, environment={"SITE_URL": bad})
    assert status != 0 and "SITE_URL is not the address of a site" in printed
    assert not site.exists()


def test_offline_copy(published, tmp_path):
    offer = parsed(published / "index.html").select_one(".title-links a")
    assert offer["href"] == hosted.OFFLINE
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        folder.mkdir()
    packed = offline.pack(published, first)
    assert packed.name == hosted.OFFLINE
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
        assert archive.read("torch-field-guide/index.html") == (published / "index.html").read_bytes()
    assert len(names) == sum(path.is_file() for path in published.rglob("*"))
    assert packed.read_bytes() == offline.pack(published, second).read_bytes()
    with pytest.raises(SystemExit, match="no site to pack"):
        offline.pack(first, second)


def test_workflow_runs_the_check_and_publishes_where_colab_looks():
    workflow = yaml.safe_load((tiny.ROOT / ".github/workflows/site.yml").read_text("utf-8"))
    check, publish = workflow["jobs"]["check"], workflow["jobs"]["publish"]
    assert ".ci/run" in [step.get("run") for step in check["steps"]]
    assert publish["needs"] == "check"
    script = "\n".join(step.get("run", "") for step in publish["steps"])
    assert f":refs/heads/{hosted.BRANCH}" in script
    for word in script.split():
        if word.endswith(".py"):
            assert Path(tiny.ROOT, word).is_file()
