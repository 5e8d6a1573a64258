"""Sphinx extension: before Sphinx reads pages, run them; then hand MyST-NB their notebooks, and draw promises and pictures."""

import copy
import hashlib
import os
from importlib.metadata import version
from pathlib import Path

import nbformat
from docutils import nodes
from docutils.parsers.rst import directives
from ipython_pygments_lexers import IPython3Lexer
from myst_nb.core.lexers import AnsiColorLexer
from myst_nb.core.read import read_myst_markdown_notebook
from sphinx.builders.dummy import DummyBuilder
from sphinx.errors import SphinxError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from _ext.sessions import pool, report, server, source
from _ext.sessions.run import Failure, Limits
from _ext.sessions.shell import SVG

log = logging.getLogger(__name__)

ROOMS = Path(__file__).parents[1]
PAGES = {}  # docname -> pool.Page that ran in this build


class PagesFailed(SphinxError):
    """Some pages are not true: nothing is written."""

    category = "Pages"


def read_again_for_promises(app, env, added, changed, removed):
    """Let the doctest builder go through every page, whatever an earlier run has read."""
    return set(env.found_docs) - added if app.builder.name == PromiseBuilder.name else set()


def run_pages(app, env, docnames):
    """Run each page that Sphinx is about to read; end the build if one is not true."""
    PAGES.clear()
    if not app.config.sessions_run:
        if app.builder.name == PromiseBuilder.name:
            raise PagesFailed("no promise was checked: sessions_run is off")
        return
    pages = []
    for name in sorted(docnames):
        path = Path(env.doc2path(name))
        page = pool.Page(name, os.path.relpath(path), [])
        try:
            page.items = source.items_of(path.read_text("utf-8-sig"), path.parent)
        except source.PageError as error:
            page.failures.append((page.path, Failure(error.line, error.reason)))
        except (OSError, UnicodeError) as error:
            page.failures.append((page.path, Failure(1, f"cannot be read: {error}")))
        pages.append(page)
    server.start_for(app.srcdir, app.doctreedir)
    limits = Limits(seconds=app.config.sessions_timeout)
    watch = report.Progress(sum(bool(page.items) for page in pages), app.config.sessions_log)
    private = sorted({str(app.confdir), str(app.srcdir), os.path.expanduser("~")} - {"/", "/root"})
    pool.run_pages(pages, limits, app.config.sessions_jobs, private, watch)
    PAGES.update((page.name, page) for page in pages)
    failed = [page for page in pages if page.failures]
    for page in failed:
        for place, text in report.failure_lines(page):
            log.error("%s", text, location=place)
    if failed:
        raise PagesFailed(f"{len(failed)} of {len(pages)} pages failed; nothing was written")


def tell_what_took_longest(app, exception):
    """End the build's report with the figures of its pages, in a quiet build too."""
    if exception is None and any(page.items for page in PAGES.values()):
        print(report.summary(PAGES.values()))


def read(text):
    """Read a page for MyST-NB (`nb_custom_formats`): the notebook with the outputs of its session."""
    env = _app().env
    page = PAGES.get(env.docname)
    path = env.doc2path(env.docname)
    book = read_myst_markdown_notebook(text, env.myst_config, add_source_map=True, path=path)
    if not env.config.sessions_run:
        return book
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    ran = [(item, page.results.get(at)) for at, item in enumerate(page.items) if item.kind == source.CELL] if page else []
    if [cell.source for cell in cells] != [item.source for item, result in ran]:
        why = "another extension changed its text" if ran else "it does not start with the front matter of a notebook"
        raise PagesFailed(f"{os.path.relpath(path)}:1: page not run as it stands: {why}")
    for cell, (item, result) in zip(cells, ran):
        if result is None:
            continue
        cell.update(execution_count=result.count, outputs=nbformat.from_dict(copy.deepcopy(result.outputs)))
        drawn = [output["metadata"][SVG]["alt"] for output in result.outputs if "alt" in output.get("metadata", {}).get(SVG, {})]
        more = {"output_stderr": "show"} if "stderr" in item.tags else {}
        if drawn:
            more["image"] = {"alt": item.alt or " ".join(drawn)}
        cell.metadata["mystnb"] = {**more, **cell.metadata.get("mystnb", {})}
        if item.loaded:
            env.note_dependency(item.loaded)
    book.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    return book


class SessionDirective(SphinxDirective):
    """A directive whose body has already run in its page's session."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {"alt": directives.unchanged, "tags": directives.unchanged}

    def result(self):
        """Find what this body gave. Raises PagesFailed where nothing ran it: what it says is not known to be true."""
        page = PAGES.get(self.env.docname)
        shown = self.env.temp_data.setdefault("sessions_shown", set())  # two may have one text, and differ in what they gave
        for index, item in enumerate(page.items if page else []):
            if index not in shown and item.kind == self.name and item.source == "\n".join(self.content) and item.title == " ".join(self.arguments):
                shown.add(index)
                return page.results.get(index)
        if self.config.sessions_run:
            file, line = self.get_source_info()
            raise PagesFailed(f"{os.path.relpath(file)}:{line}: this {{{self.name}}} was not run")
        return None


class Promise(SessionDirective):
    """Show a doctest that held."""

    def run(self):
        self.result()
        text = "\n".join(self.content)
        block = nodes.literal_block(text, text, language="pycon", classes=["promise"])
        self.set_source_info(block)
        return [block]


class Drawing(SessionDirective):
    """Show what the pictures room drew, as inline SVG."""

    def run(self):
        result = self.result()
        if result is None or result.picture is None:
            return []
        figure = nodes.figure(classes=["drawing"])
        figure += nodes.raw("", result.picture.svg, format="html")
        if self.arguments:
            figure += nodes.caption("", "", *self.parse_inline(" ".join(self.arguments))[0])
        self.set_source_info(figure)
        return [figure]


class PromiseBuilder(DummyBuilder):
    """`make doctest`: go through every page, write nothing."""

    name = "doctest"
    epilog = ""

    def write_documents(self, docnames):
        pass


def fingerprint():
    """A number that changes with torch and with the code that makes pages: then Sphinx reads and draws each of them again."""
    digest = hashlib.sha256(version("torch").partition("+")[0].encode())
    for path in sorted(ROOMS.glob("*/*.py")):
        if path.parent.name != "bench":  # measures builds, and is in none
            digest.update(path.read_bytes())
    return int(digest.hexdigest()[:12], 16)


_APP = []


def _app():
    return _APP[-1]


def setup(app):
    _APP.append(app)
    app.setup_extension("_ext.sessions.early")
    app.add_config_value("sessions_timeout", 60, "", types=(int, float))
    app.add_config_value("sessions_jobs", 0, "", types=(int,))
    app.add_config_value("sessions_log", False, "", types=(bool,))
    app.add_builder(PromiseBuilder)
    for name, lexer in (("ipython3", IPython3Lexer), ("myst-ansi", AnsiColorLexer)):
        app.add_lexer(name, lexer)  # else Pygments looks through all installed packages at each block
    app.add_directive(source.PROMISE, Promise)
    for name in source.PICTURES:
        app.add_directive(name, Drawing)
    app.connect("env-get-outdated", read_again_for_promises)
    app.connect("env-before-read-docs", run_pages)
    app.connect("build-finished", tell_what_took_longest)
    return {"env_version": fingerprint(), "parallel_read_safe": True, "parallel_write_safe": True}
