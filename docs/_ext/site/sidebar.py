"""Draw the sidebar once a site, not once a page.

Furo resolves, renders and parses the whole tree of pages again for every page: a cost that grows
with the square of their number. Here Furo draws the root page's tree; for every other page only the links'
prefix and the marks of the current page differ, and these are put in as text.
The result is Furo's own, byte for byte (a test holds it to that).
"""

import re
from posixpath import dirname, relpath

OPTIONS = {"collapse": False, "titles_only": True, "maxdepth": -1, "includehidden": True}  # as Furo asks
FURO, BEFORE, AFTER = 500, 400, 600  # priorities of listeners

TOKEN = re.compile(
    r'<ul[^>]*>|</ul>|<li class="[^"]*">|</li>|<a class="reference internal" href="[^"]*">|<input [^>]*class="toctree-checkbox"[^>]*>'
)

MARKED = re.compile(r'class="(?:[^"]* )?current[ "]')  # not a page that is called recurrent.html


class Sidebar:
    """The tree as pieces of text, with the places that differ from page to page."""

    def __init__(self, html):
        self.pieces = []
        self.links = {}  # index of a piece -> the page it leads to, from the root
        self.entries = {}  # page -> branches; a branch is the pieces (list, item, checkbox or None) from the top down
        self._folders = {}
        lists, items, at = [], [], 0
        for token in TOKEN.finditer(html):
            self.pieces += [html[at : token.start()], token[0]]
            at, here, text = token.end(), len(self.pieces) - 1, token[0]
            if text.startswith("<ul"):
                lists.append(here)
            elif text == "</ul>":
                lists.pop()
            elif text.startswith("<li"):
                items.append([lists[-1], here, None])
            elif text == "</li>":
                items.pop()
            elif text.startswith("<input"):
                items[-1][2] = here
            else:
                page = text.split('href="')[1][:-2]
                self.links[here] = page
                self.entries.setdefault(page, []).append(([*items], here))
        self.pieces.append(html[at:])

    def for_page(self, page):
        """Draw the tree for the page with this target, such as `operations/detach.html`."""
        folder = dirname(page)
        if folder not in self._folders:
            self._folders[folder] = list(self.pieces)
            for index, target in self.links.items():
                link = relpath(target, folder or ".")
                self._folders[folder][index] = f'<a class="reference internal" href="{link}">'
        branches = self.entries.get(page, [])
        if not branches:
            return "".join(self._folders[folder])
        pieces = list(self._folders[folder])
        for items, link in branches:
            pieces[link] = '<a class="current reference internal" href="#">'
            for tree, item, checkbox in items:
                pieces[tree] = '<ul class="current">'
                pieces[item] = re.sub(r'(toctree-l\d+)(?! current)', r"\1 current", pieces[item])
                if checkbox is not None and "checked" not in pieces[checkbox]:
                    pieces[checkbox] = pieces[checkbox].replace(' class="', ' checked="" class="', 1)
        pieces[branches[-1][0][-1][1]] = pieces[branches[-1][0][-1][1]].replace('">', ' current-page">')
        return "".join(pieces)


def _draw_root(app):
    """Give the root page's tree as Furo draws it, or None where Sphinx and Furo do not offer what is needed."""
    from furo.navigation import get_navigation_tree
    from sphinx.environment.adapters.toctree import global_toctree_for_doc

    tree = global_toctree_for_doc(app.env, app.config.root_doc, app.builder, tags=app.builder.tags, **OPTIONS)
    return get_navigation_tree(app.builder.render_partial(tree)["fragment"]) if tree is not None else ""


def take_tree(app, pagename, templatename, context, doctree):
    """Before Furo: make it draw nothing."""
    if "toctree" not in context or app.config.html_theme != "furo":
        return
    if not hasattr(app.builder, "sidebar"):
        html = _draw_root(app)
        app.builder.sidebar = Sidebar(html) if not MARKED.search(html) else None  # a root that lists itself: Furo's own way
    if app.builder.sidebar is not None:
        context["toctree"] = lambda **options: ""


def give_tree(app, pagename, templatename, context, doctree):
    """After Furo: put in this page's tree."""
    sidebar = getattr(app.builder, "sidebar", None)
    if sidebar is not None and "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = sidebar.for_page(app.builder.get_target_uri(pagename))


def setup(app):
    app.connect("html-page-context", take_tree, priority=BEFORE)
    app.connect("html-page-context", give_tree, priority=AFTER)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
