"""Make sites of any size from the project's own pages, alike for every way of building."""

import itertools
import re
import shutil
import statistics
from pathlib import Path

from _ext.sessions import pool, run, source

DOCS = Path(__file__).parents[2]
OWN = re.compile(r"^(`{3,})\{(?:autograd-graph|tensor-layout|facts[\w-]*|paste-message|bench)\}.*?^\1\s*$\n?", re.M | re.S)
PROMISE = re.compile(r"^(\s*`{3,})\{doctest\}[^\n]*$", re.M)
MOST = 40  # error pages that are looked at
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)\s]*\)")

CONF = """
import sys
sys.path.insert(0, {docs!r})
extensions = {extensions!r}
html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
suppress_warnings = ["myst.xref_missing"]
nb_execution_timeout = 120
{more}
"""
OURS = ("_ext.sessions.early", "myst_nb", "_ext.sessions.extension", "_ext.site.sidebar")
STOCK = ("myst_nb",)
READER = 'nb_execution_mode = "off"\nnb_custom_formats = {".md": "_ext.sessions.extension.read"}'


def light_pages():
    """Choose pages whose cells run without their promises, pictures and programs.

    Returns a list of (name, text) in the order of their names,
    without those that take three times the median: they import more than torch, alone for tenths of a second.
    """
    pages = []
    for path in [*sorted(DOCS.glob("operations/*.md")), *sorted(DOCS.glob("errors/*.md"))[:MOST]]:
        text = plain(path.read_text("utf-8"))
        items = source.items_of(text, path.parent)
        if items and not any(item.loaded or item.tags for item in items):
            pages.append((pool.Page(path.stem, str(path), items), text))
    pool.run_pages([page for page, text in pages], run.Limits(), jobs=1)
    good = [(page, text) for page, text in pages if not page.failures]
    most = 3 * statistics.median(page.seconds for page, text in good)
    return sorted((page.name, text) for page, text in good if page.seconds < most)


def plain(text):
    """Keep a page's cells and prose; show its promises; leave out what only this project's directives draw."""
    return LINK.sub(r"\1", PROMISE.sub(r"\1pycon", OWN.sub("", text)))


def make(folder, pages, count, extensions, more):
    """Write a site of `count` pages, `pages` over and over in three sections."""
    shutil.rmtree(folder, ignore_errors=True)
    docs = Path(folder, "docs")
    sections = ["a", "b", "c"]
    for section in sections:
        (docs / section).mkdir(parents=True)
        (docs / section / "index.md").write_text(f"# {section}\n\n```{{toctree}}\n:glob:\n\n*\n```\n")
    (docs / "index.md").write_text("# Site\n\n```{toctree}\n" + "".join(f"{section}/index\n" for section in sections) + "```\n")
    for at, (name, text) in zip(range(count), itertools.cycle(pages)):
        (docs / sections[at % 3] / f"page_{at:04}.md").write_text(text, "utf-8")
    Path(folder, "conf.py").write_text(CONF.format(docs=str(DOCS), extensions=list(extensions), more=more))
    return Path(folder)
