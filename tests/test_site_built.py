"""The built site as files: nothing of this machine, nothing from elsewhere, no dead link, the same wherever it is built."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup
from tiny import ROOT, differences


@cache
def parsed(path):
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


@pytest.fixture(scope="module")
def documents(site):
    """Every HTML file of the site, parsed, by its path."""
    return {path: parsed(path) for path in sorted(site.folder.rglob("*.html"))}


def test_every_source_is_a_page(site, documents):
    assert {path.relative_to(site.folder).with_suffix("").as_posix() for path in documents} == {*site.pages, "search"}


PAGE = str(Path(tempfile.gettempdir(), "page-"))  # how the folder of a page's process begins


def test_no_file_names_this_machine(site):
    places = {str(ROOT), str(site.folder.parent), sys.prefix, str(Path.home())} - {"/", "/root"}
    found = []
    for path in site.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.name == "objects.inv":
                data += zlib.decompress(data.split(b"\n", 4)[4])
            found += [f"{path.relative_to(site.folder)}: {place}" for place in (*places, PAGE) if place.encode() in data]
    assert not found


def test_nothing_is_loaded_from_elsewhere(documents, site):
    loading = {"script": "src", "img": "src", "iframe": "src", "source": "src", "embed": "src", "object": "data", "video": "src", "audio": "src"}
    found = []
    for path, page in documents.items():
        for tag in page.find_all([*loading, "link", "use", "image"]):
            if tag.name == "link" and set(tag.get("rel", ())) & {"canonical", "next", "prev", "search", "index"}:
                continue
            target = tag.get(loading.get(tag.name, "href")) or ""
            if urlsplit(target).scheme not in {"", "data"} or target.startswith("//"):
                found.append(f"{path.relative_to(site.folder)}: {tag.name} {target}")
    for path in site.folder.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.S)
        for target in re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""", text):
            if re.match(r"(https?:)?//", target):
                found.append(f"{path.relative_to(site.folder)}: {target}")
    assert not found


def test_every_internal_link_leads_somewhere(documents, site):
    anchors = {path: {tag[key] for tag in page.find_all(True) for key in ("id", "name") if tag.get(key)} for path, page in documents.items()}
    dead = []
    for path, page in documents.items():
        here = path.as_uri()
        for tag in page.find_all(["a", "link", "use", "img", "script"]):
            target = tag.get("href") or tag.get("src")
            if not target or urlsplit(target).scheme:
                continue
            parts = urlsplit(urljoin(here, target))
            file = Path(unquote(parts.path))
            known = file.is_file() and (not parts.fragment or file not in anchors or unquote(parts.fragment) in anchors[file])
            if not known:
                dead.append(f"{path.relative_to(site.folder)}: {target}")
    assert not dead


def test_formulas_are_mathml(documents, site):
    assert any(page.find("math") for page in documents.values())
    left = [str(path.relative_to(site.folder)) for path, page in documents.items() if page.find("code", class_="math") or "MathJax" in str(page)]
    assert not left
    assert not list(site.folder.rglob("*[mM]ath[jJ]ax*"))


def test_front_page_leads_to_everything(documents, site):
    front = documents[site.folder / "index.html"].find("article")
    led = {tag["href"].removesuffix(".html") for tag in front.find_all("a", href=True)}
    assert {*site.of("operations"), *site.of("guides"), *site.of("programs"), "errors/index"} <= led
    assert front.find("textarea"), "no box for an error message"


TABLES = {"operations/all", "operations/views", "guides/versions"}  # reached from the list of operations, and from the front page


def test_every_page_is_led_to_by_another_that_is_no_list(documents, site):
    led = set()
    for path, page in documents.items():
        name = path.relative_to(site.folder).with_suffix("").as_posix()
        if name == "search" or (name.endswith("index") and name != "errors/index"):
            continue  # a list of all pages leads to each, and no reader's question does
        for tag in page.find("article").find_all("a", href=True):
            target = Path(unquote(urlsplit(urljoin(path.as_uri(), tag["href"])).path))
            if target != path and target.suffix == ".html":
                led.add(target.relative_to(site.folder).with_suffix("").as_posix() if target.is_relative_to(site.folder) else "")
    alone = [name for section in ("operations", "guides", "programs", "errors") for name in site.of(section) if name not in led | TABLES]
    assert not alone


@pytest.mark.parametrize("section", ["operations", "guides"])
def test_each_listed_page_says_what_it_is(documents, site, section):
    items = documents[site.folder / section / "index.html"].select("ul.page-list > li")
    assert {f"{section}/{item.find('a')['href'].removesuffix('.html')}" for item in items} == set(site.of(section))
    bare = [item.find("a").get_text() for item in items if len(item.get_text()) < len(item.find("a").get_text()) + 15]
    assert not bare


def test_plots_have_a_text_alternative(documents, site):
    bare = [
        f"{path.relative_to(site.folder)}: {image['src']}"
        for path, page in documents.items()
        for image in page.find_all("img")
        if not image.get("alt") or image["alt"].endswith((".svg", ".png"))
    ]
    assert not bare


def test_the_site_is_the_same_when_built_elsewhere_and_at_another_hour(site, tmp_path):
    other = tmp_path / "a longer name" / "copy"
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, other / name, ignore=shutil.ignore_patterns("_build", "__pycache__"))
    shutil.copy(ROOT / "conf.py", other)
    environment = {**os.environ, "PYTHONPATH": "docs", "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "SITE_URL": "", "GITHUB_REPOSITORY": ""}
    arguments = [sys.executable, "-m", "_ext.site", "html", "docs", "build", "-c", ".", "-W", "-j", "1", "-q"]
    ran = subprocess.run(arguments, cwd=other, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode == 0, ran.stdout
    assert differences(site.folder, other / "build/html") == []
