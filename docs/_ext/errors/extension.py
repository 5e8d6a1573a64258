"""Sphinx extension: the box where a message is pasted, and the list of all messages.

``{paste-message}`` draws the box; it stays hidden without script, and a link to the list stands below it.
``{error-list} FAMILY`` lists the pages of one family with every message that they explain.
The patterns go to ``_static/errors-data.js``, written from the pages at each build.
Links go both ways by themselves: an operation's page lists, in its section *Errors*, the pages of all messages that it
promises and does not link to in its text; a page of the index ends with the operations that name or explain it.
"""

import json
import re
from functools import cache
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from _ext.errors.pages import FAMILIES, ErrorPage, Index, PageError, read_all
from _ext.errors.promises import promised_errors
from _ext.errors.template import split_placeholders

BOX = """\
<div class="paste-message" hidden>
<label for="paste-message">Paste an error message, or a whole traceback</label>
<textarea id="paste-message" rows="5" spellcheck="false" autocomplete="off" autocapitalize="off" autocorrect="off"
 aria-describedby="paste-message-privacy"></textarea>
<p id="paste-message-privacy" class="paste-message-privacy">The text stays in this page: nothing is sent.</p>
<p role="status"></p>
<ol></ol>
</div>
"""


class paste_message(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes in lower case
    """The box; drawn in HTML only."""


class error_message(nodes.literal):  # noqa: N801
    """A message in the list: a literal, so that its quotes stay straight, drawn as one element.

    Sphinx would wrap every word of several hundred messages in an element of its own.
    """


def _visit_html(self, node):
    self.body.append(BOX)
    raise nodes.SkipNode


def _visit_message(self, node):
    self.body.append(f'<code class="error-message">{escape(node.astext())}</code>')
    raise nodes.SkipNode


def _visit_message_elsewhere(self, node):
    self.visit_literal(node)


def _depart_message_elsewhere(self, node):
    self.depart_literal(node)


def _skip(self, node):
    raise nodes.SkipNode


def _pages(env) -> list[ErrorPage]:
    return read_all(Path(env.srcdir) / "errors")


def _link(env, docname: str, text: str) -> nodes.Node:
    """Return a reference to a page that Sphinx resolves, and reports if it is not there."""
    return addnodes.pending_xref(
        "", nodes.inline("", text), refdomain="std", reftype="doc", refexplicit=True,
        reftarget="/" + docname, refdoc=env.docname, refwarn=True,
    )


class PasteMessage(SphinxDirective):
    """``{paste-message}``: the box, and on any page but the index a link to the list of all messages."""

    def run(self):
        if self.env.docname == "errors/index":
            return [paste_message()]
        paragraph = nodes.paragraph("", "", classes=["paste-message-list"])
        paragraph += _link(self.env, "errors/index", "Every message, by family")
        return [paste_message(), paragraph]


class ErrorList(SphinxDirective):
    """``{error-list} FAMILY``: the pages of a family, each with its first sentence and every message."""

    required_arguments = 1

    def run(self):
        family = self.arguments[0]
        if family not in FAMILIES:
            raise self.error(f"unknown family {family!r}; known: {', '.join(FAMILIES)}")
        pages = [page for page in _pages(self.env) if page.family == family]
        listing = nodes.bullet_list(classes=["error-list"])
        for page in sorted(pages, key=lambda page: page.title.lower().strip("\"'`")):
            self.env.note_dependency(str(page.path))
            link = _link(self.env, f"errors/{page.stem}", page.title)
            item = nodes.list_item("", nodes.paragraph("", "", link), nodes.paragraph("", page.summary))
            if page.messages:
                item += nodes.bullet_list("", *(_message(message) for message in page.messages))
            listing += item
        return [listing] if pages else []


def _message(message) -> nodes.list_item:
    text = "".join("…" if placeholder else piece for placeholder, piece in split_placeholders(message.text))
    paragraph = nodes.paragraph("", "", error_message("", text))
    if message.until:
        paragraph += nodes.Text(f" (up to torch {message.until})")
    elif message.needs:
        paragraph += nodes.Text(f" (needs {message.needs})")
    return nodes.list_item("", paragraph)


def data(pages: list[ErrorPage]) -> str:
    """Return the script that holds all pages and patterns for the browser."""
    listed = [
        {
            "url": f"errors/{page.stem}.html",
            "title": page.title,
            "summary": page.summary,
            "templates": [message.template.as_data() for message in page.messages],
        }
        for page in pages
    ]
    return f"globalThis.errorPages = {json.dumps(listed, ensure_ascii=True, separators=(',', ':'))};\n"


def write_data(app, config):
    """Write the patterns where Sphinx takes static files from."""
    _known.cache_clear()  # a build that lives on (make live) sees pages change
    try:
        text = data(read_all(Path(app.srcdir) / "errors"))
    except PageError as problem:
        raise ExtensionError(str(problem)) from None
    # A folder of its own: docs/errors has its doctrees in one of that name.
    folder = Path(app.doctreedir) / "_errors_static"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "errors-data.js"
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
    config.html_static_path.append(str(folder))


_LINK = re.compile(r"\]\((?:\.\./)+errors/([\w/-]+)\.md[)#]")


@cache
def _known(root: Path) -> Index:
    return Index(root)


def named_on(srcdir: Path) -> dict[str, list[str]]:
    """Return for each error page the operations whose pages link to it or promise one of its messages."""
    known = _known(srcdir / "errors")
    named: dict[str, list[str]] = {}
    for path in sorted((srcdir / "operations").glob("*.md")):
        text = path.read_text("utf-8")
        found = [known.find(error) for error in promised_errors(text)]
        for stem in dict.fromkeys([*_LINK.findall(text), *(page.stem for page in found if page)]):
            named.setdefault(stem, []).append(path.stem)
    return named


def link_errors(app, doctree):
    """List on an operation's page the messages that it promises and does not link to."""
    env = app.env
    text = Path(env.doc2path(env.docname)).read_text("utf-8")
    known = _known(Path(env.srcdir) / "errors")
    found = [known.find(error) for error in promised_errors(text)]
    stems = dict.fromkeys(page.stem for page in found if page)
    missing = [stem for stem in stems if stem not in _LINK.findall(text)]
    if not missing:
        return
    listing = nodes.bullet_list(classes=["errors-named"])
    for page in sorted((page for page in known.pages if page.stem in missing), key=lambda page: page.title.lower()):
        listing += nodes.list_item("", nodes.paragraph("", "", _link(env, f"errors/{page.stem}", page.title)))
    sections = list(doctree.findall(nodes.section))
    place = next((section for section in sections if "errors" in section["ids"]), sections[0] if sections else doctree)
    place += nodes.paragraph("", "Messages on this page, explained with every cause and cure:")
    place += listing


def link_operations(app, doctree, stem):
    """End an error page with the operations that name or explain it and that its own text does not link to."""
    env = app.env
    page = next((page for page in _known(Path(env.srcdir) / "errors").pages if page.stem == stem), None)
    if page is None:
        return
    there = [name for name in page.operations if Path(env.srcdir, "operations", f"{name}.md").exists()]
    names = sorted({*there, *env.errors_named_on.get(stem, ())})
    names = [name for name in names if f"operations/{name}.md" not in page.body]
    if names:
        paragraph = nodes.paragraph("", "Operations that name or explain it: ", classes=["error-named-on"])
        for number, name in enumerate(names):
            if number:
                paragraph += nodes.Text(", ")
            paragraph += _link(env, f"operations/{name}", name)
        paragraph += nodes.Text(".")
        (doctree.next_node(nodes.section) or doctree).append(paragraph)


def link_both_ways(app, doctree):
    """Add the links that nobody wrote."""
    folder, _, stem = app.env.docname.partition("/")
    if folder == "operations" and stem != "index":
        link_errors(app, doctree)
    elif folder == "errors" and stem != "index":
        link_operations(app, doctree, stem)


def read_again(app, env, added, changed, removed):
    """Read the index again when an error page comes or goes, and error pages that an operation began or ceased to name.

    Who names whom is found once a build: for each page again it would cost the square of the pages.
    """
    moved = any(name.startswith("errors/") for name in added | removed)
    before, now = getattr(env, "errors_named_on", {}), named_on(Path(env.srcdir))
    env.errors_named_on = now
    again = {f"errors/{stem}" for stem in before.keys() | now.keys() if before.get(stem) != now.get(stem)}
    return [name for name in again | ({"errors/index"} if moved else set()) if name in env.all_docs and name not in removed]


def add_files(app, pagename, templatename, context, doctree):
    """Load script and styles on the pages that use them, and on no other."""
    if doctree is None:
        return
    boxed = doctree.next_node(paste_message) is not None
    listed = any("error-list" in node["classes"] for node in doctree.findall(nodes.bullet_list))
    if boxed or listed:
        app.add_css_file("errors.css")
    if boxed:
        app.add_js_file("errors-data.js", loading_method="defer")
        app.add_js_file("errors.js", loading_method="defer")


def setup(app):
    app.add_node(paste_message, html=(_visit_html, None), **dict.fromkeys(("latex", "text", "man", "texinfo"), (_skip, None)))
    elsewhere = dict.fromkeys(("latex", "text", "man", "texinfo"), (_visit_message_elsewhere, _depart_message_elsewhere))
    app.add_node(error_message, html=(_visit_message, None), **elsewhere)
    app.add_directive("paste-message", PasteMessage)
    app.add_directive("error-list", ErrorList)
    app.connect("config-inited", write_data, priority=900)
    app.connect("env-get-outdated", read_again)
    app.connect("doctree-read", link_both_ways)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
