"""The sidebar is Furo's own, drawn once a site."""

import re

import pytest

import tiny

PAGES = {
    "index.md": "# Root\n\n```{toctree}\n:caption: One & two\n\na/index\nb\n```\n\n```{toctree}\n:caption: More\n\nc/index\n```\n",
    "a/index.md": "# A\n\n```{toctree}\none\ndeep/index\n```\n",
    "a/one.md": "# One `x`\n\n## Part\n",
    "a/deep/index.md": "# Deep\n\n```{toctree}\nlast\n```\n",
    "a/deep/last.md": "# Last\n",
    "b.md": "# B\n",
    "c/index.md": "# C & c\n\n```{toctree}\n:glob:\n\n*\n```\n",
    "c/x.md": "# X\n",
    "c/recurrent.md": "# The current page\n",
    "alone.md": "---\norphan: true\n---\n\n# Alone\n",
}
BARE = "nb_custom_formats = {}\nhtml_math_renderer = 'mathjax'\n"
PLAIN = BARE + "extensions = ['myst_nb']"
OURS = BARE + "extensions = ['myst_nb', '_ext.site.sidebar', 'counted']\nimport sys, pathlib; sys.path.append(str(pathlib.Path(__file__).parent))"
COUNTED = '''
import furo.navigation
from bs4 import BeautifulSoup

calls = []


def soup(html, *rest):
    calls.append(html)
    return BeautifulSoup(html, *rest)


def setup(app):
    furo.navigation.BeautifulSoup = soup
    app.connect("build-finished", lambda app, exception: print("trees parsed:", len([html for html in calls if html])))
'''


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sidebar")
    plain = tiny.make_site(folder / "plain", PAGES, conf=PLAIN)
    (folder / "ours").mkdir()
    (folder / "ours" / "counted.py").write_text(COUNTED)
    ours = tiny.make_site(folder / "ours", PAGES, conf=OURS, options=["-W"])
    assert plain[0] == ours[0] == 0, plain[1] + ours[1]
    return plain, ours


def tree(site, page):
    html = (site / page).read_text()
    return re.search(r'<div class="sidebar-tree">.*?</div>', html, re.S)[0]


@pytest.mark.parametrize("page", [*(name.replace(".md", ".html") for name in PAGES), "search.html"])
def test_the_sidebar_equals_furos(sites, page):
    (_, _, plain), (_, _, ours) = sites
    assert tree(ours, page) == tree(plain, page)
    assert "alone.html" not in tree(ours, page) and "Last" in tree(ours, page)


def test_the_tree_is_parsed_once(sites):
    assert "trees parsed: 1" in sites[1][1]
