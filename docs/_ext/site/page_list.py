"""Sphinx extension: the directive `page-list`, which lists pages by name with the first sentence of each.

The list is complete by itself: a new page is on it, a removed one is not, a reworded one is reworded.
"""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from sphinx.util.matching import Matcher


class page_list(nodes.General, nodes.Element):
    """Where a list goes; `patterns` say of which pages."""


class PageList(SphinxDirective):
    """Take patterns of page names, such as `operations/*`; index pages are left out."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"names-only": directives.flag}

    def run(self):
        patterns = self.arguments[0].split()
        self.env.glob_toctrees.add(self.env.docname)  # read this page again when pages come or go
        found = _matching(self.env, patterns)
        if not found:
            return [self.state_machine.reporter.warning(f"no page matches {' '.join(patterns)}", line=self.lineno)]
        for docname in found:  # and write it again when one of them changes
            self.env.files_to_rebuild.setdefault(docname, set()).add(self.env.docname)
        return [page_list(patterns=patterns, names_only="names-only" in self.options)]


def keep_summary(app, doctree):
    """Keep a page's first sentence, as (is code, text) pairs."""
    first = next(doctree.findall(nodes.paragraph), None)
    app.env.metadata[app.env.docname]["summary"] = _first_line(first) if first is not None else []


def _first_line(paragraph):
    """The paragraph up to the end of its first line: pages have a sentence a line."""
    runs = []
    for child in paragraph.findall(nodes.Text):
        text, newline, _ = child.astext().partition("\n")
        runs.append((isinstance(child.parent, nodes.literal), text))
        if newline:
            break
    return runs


def _matching(env, patterns):
    fits = Matcher(patterns)
    return sorted(name for name in env.found_docs if fits(name) and name.rpartition("/")[2] != "index")


def draw(app, doctree, docname):
    """Put the pages in the place of each list."""
    for node in list(doctree.findall(page_list)):
        items = nodes.bullet_list(classes=["page-list", *(["names-only"] if node["names_only"] else [])])
        for name in _matching(app.env, node["patterns"]):
            items += nodes.list_item("", _entry(app, docname, name, node["names_only"]))
        node.replace_self(items)


def _entry(app, docname, name, names_only):
    address = app.builder.get_relative_uri(docname, name)
    title = [child.deepcopy() for child in app.env.titles[name].children]
    entry = nodes.paragraph("", "", nodes.reference("", "", *title, internal=True, refuri=address))
    if not names_only:
        entry += nodes.Text(" ")
        runs = app.env.metadata[name].get("summary", [])
        entry += nodes.inline("", "", *(nodes.literal(text, text) if code else nodes.Text(text) for code, text in runs))
    return entry


def setup(app):
    app.add_node(page_list)
    app.add_directive("page-list", PageList)
    app.connect("doctree-read", keep_summary)
    app.connect("doctree-resolved", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
