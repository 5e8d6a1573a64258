"""Sphinx extension: offer every page that runs as a notebook beside it, made to be read and run from top to bottom.

Doctests become cells, with what they promise as output.
A cell that raises on purpose catches its error and prints the one line that the page shows:
"run all" goes through in any front end, and nobody reads forty lines of torch's own frames.
"""

import ast
import builtins
import doctest
import posixpath
import re
from importlib.metadata import version
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from _ext.sessions.extension import PAGES
from _ext.sessions.source import CELL, PICTURES, PROMISE
from _ext.site import plain, title_links

OPTION = re.compile(r"\s*#\s*doctest:.*$", re.M)
CLASS = re.compile(r"<class '([\w.]+)'>")  # IPython shows the name alone
INEXACT = {doctest.ELLIPSIS, doctest.IGNORE_EXCEPTION_DETAIL, doctest.NORMALIZE_WHITESPACE}
METADATA = {
    "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    "language_info": {"name": "python"},
}


def notebook(text, page, resolve, about):
    """Make the notebook of a page from its Markdown and from what its session gave (`page`, a pool.Page).

    `about` is a line of Markdown that is put under the title.
    """
    cells, items = [], list(enumerate(page.items))
    for piece in plain.pieces(text, resolve):
        if piece.kind == "prose":
            cells.append(_markdown_cell(piece.text))
            continue
        item, result = _taken(items, piece, page.results)
        if piece.kind == CELL:
            cells.append(_cell(item or piece, result))
        elif piece.kind == PROMISE:
            cells += _promises(piece.text)
        elif piece.kind in PICTURES:
            alt = result.picture.alt if result and result.picture else ""
            cells.append(_markdown_cell(f"> **{piece.title}**\n>\n> {alt}".rstrip("> \n")))
    if cells and cells[0].cell_type == "markdown":
        title, _, rest = cells[0].source.partition("\n")
        cells[0].source = f"{title}\n\n{about}\n{rest}".rstrip()
    _number(cells)
    book = nbformat.from_dict({"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5})
    nbformat.validate(book)
    return book


# nbformat's own makers check each part against its schema, again and again: a sixth of the time that pages took to read.
def _markdown_cell(source):
    return NotebookNode(cell_type="markdown", metadata=NotebookNode(), source=source)


def _code_cell(source, outputs=(), metadata=None):
    return NotebookNode(cell_type="code", metadata=NotebookNode(metadata or {}), execution_count=None, source=source, outputs=list(outputs))


def _output(kind, **content):
    more = {"stream": {}, "display_data": {"metadata": {}}, "execute_result": {"metadata": {}, "execution_count": None}}[kind]
    return NotebookNode(output_type=kind, **more, **content)


def _taken(items, piece, results):
    """The page's next item that this piece is, and its result; (None, None) if it has not run."""
    for at, (index, item) in enumerate(items):
        if item.kind == piece.kind and item.title == piece.title and (item.loaded or item.source == piece.text):
            del items[: at + 1]
            return item, results.get(index)
    return None, None


def _cell(item, result):
    """A cell of the page with its outputs; an error that it shows is caught and printed."""
    source = getattr(item, "source", None) or getattr(item, "text", "")
    outputs = [nbformat.from_dict(output) for output in (result.outputs if result else [])]
    error = next((output for output in outputs if output.output_type == "error"), None)
    if error is None:
        return _code_cell(source.rstrip("\n"), outputs=outputs)
    return _raising(source, error.ename, error.evalue, [output for output in outputs if output is not error])


def _promises(text):
    """A doctest's examples as cells: one ends where something is shown."""
    lines = []
    for example in doctest.DocTestParser().get_examples(text):
        lines.append(OPTION.sub("", example.source).rstrip("\n"))
        if not example.want:
            continue
        source, lines = "\n".join(lines), []
        exact = not any(example.options.get(flag) for flag in INEXACT)
        if example.exc_msg is not None:
            name, _, message = _blank(example.exc_msg).rstrip("\n").partition(": ")
            *told, last = message.split("\n")
            if not exact and last == doctest.ELLIPSIS_MARKER and told:  # what follows is torch's own C++ frames
                yield _raising(source, name, "\n".join(told), [], lines=len(told))
            else:
                yield _raising(source, name, message if exact else None, [])
        else:
            cell = _showing(source, _blank(example.want))
            if not exact:
                cell.outputs = []
            yield cell
    if lines:
        yield _code_cell("\n".join(lines))


def _blank(text):
    """What doctest compares with, where it writes a word for an empty line."""
    return re.sub(rf"(?m)^{re.escape(doctest.BLANKLINE_MARKER)}$", "", text)


def _showing(source, want):
    """A cell that shows `want`, as the output that a notebook gives it.

    A doctest shows every expression that is a statement; a notebook only the last one, outside of blocks.
    """
    last = ast.parse(source).body[-1]
    data = {"text/plain": CLASS.sub(r"\1", want).rstrip("\n")}
    printed = _output("stream", name="stdout", text=want)
    if isinstance(last, ast.Expr):
        return _code_cell(source, outputs=[printed if _prints(last) else _output("execute_result", data=data)])
    inner = [node for node in _within(last) if isinstance(node, ast.Expr)]
    if not inner or any(map(_prints, inner)):
        return _code_cell(source, outputs=[printed])
    if len(inner) > 1 or inner[0].lineno != inner[0].end_lineno:
        return _code_cell(source)  # shows what it shows when it is run
    lines, node = source.split("\n"), inner[0]
    line = lines[node.lineno - 1].encode()
    start, stop = node.col_offset, node.end_col_offset
    shown = line[start:stop]
    if len(ast.parse(b"display(" + shown + b")").body[0].value.args) != 1:
        shown = b"(" + shown + b")"  # a tuple without its own
    lines[node.lineno - 1] = (line[:start] + b"display(" + shown + b")" + line[stop:]).decode()
    return _code_cell("\n".join(lines), outputs=[_output("display_data", data=data)])


def _prints(node):
    return isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "print"


def _within(statement):
    """The statements inside a block, not those of functions that it defines."""
    for name in ("body", "orelse", "handlers", "finalbody"):
        for node in getattr(statement, name, ()):
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node
                yield from _within(node)


def _raising(source, name, message, outputs, lines=None):
    """A cell whose error is caught and printed, or the first `lines` of it.

    `message` None: it varies, so none is shown before the cell is run.

    Indenting would change a text of several lines: such a cell stays as it is, with the tag that lets it raise.
    """
    short = name.rpartition(".")[2]
    if any(isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno > node.lineno for node in ast.walk(ast.parse(source))):
        return _code_cell(source.rstrip("\n"), outputs=outputs, metadata={"tags": ["raises-exception"]})
    known = isinstance(getattr(builtins, name, None), type)
    # NumPy gives some errors the name of their base; tracebacks show the qualified one.
    line = f'f"{{type(error).{"__name__" if known else "__qualname__"}}}: {{error}}"'
    shown = line if lines is None else f'"\\n".join({line}.splitlines()[:{lines}])'
    body = "".join(f"    {line}".rstrip() + "\n" for line in source.splitlines())
    caught = f'try:\n{body}except {name if known else "Exception"} as error:\n    print({shown})'
    if message is not None:
        text = f"{short}: {message}\n"
        if outputs and outputs[-1].get("name") == "stdout":
            outputs[-1] = _output("stream", name="stdout", text=outputs[-1].text + text)
        else:
            outputs.append(_output("stream", name="stdout", text=text))
    return _code_cell(caught, outputs=outputs)


def _number(cells):
    """Number cells as a run from top to bottom would, with ids that two builds share."""
    count = 0
    for index, cell in enumerate(cells):
        cell.id = f"cell-{index}"
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = count


def keep(app, doctree):
    """When a page has been read, keep its notebook with its tree."""
    docname = app.env.docname
    page = PAGES.get(docname)
    if app.builder.format != "html" or page is None or not any(item.kind == CELL for item in page.items):
        return
    site = app.config.html_baseurl
    name = app.config.project
    where = f"[{name}]({site}{docname}.html)" if site else name
    about = f"*A page of {where}. Outputs: torch {version('torch').partition('+')[0]} on CPU. Cells that raise on purpose print their error.*"
    resolve = plain.resolver(docname, app.config.myst_url_schemes, site)
    text = Path(app.env.doc2path(docname)).read_text("utf-8-sig")
    doctree["notebook"] = nbformat.v4.writes(notebook(text, page, resolve, about))


def publish(app, pagename, templatename, context, doctree):
    """When a page is written, put its notebook beside it and link it under the title."""
    text = doctree.get("notebook") if doctree is not None else None
    if not text:
        return
    path = Path(app.outdir, f"{pagename}.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", "utf-8")
    name = f"{posixpath.basename(pagename)}.ipynb"
    title_links.add(context, "Download notebook", name, download=name)
    if app.config.colab_address:
        title_links.add(context, "Open in Colab", f"{app.config.colab_address}{pagename}.ipynb", rel="noopener")


def setup(app):
    app.setup_extension("_ext.site.title_links")
    app.add_config_value("colab_address", "", "html", types=(str,))
    app.connect("doctree-read", keep)
    app.connect("html-page-context", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
