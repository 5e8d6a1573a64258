"""Every page's notebook: plain, complete, and right when it is run from top to bottom."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from _ext.sessions import pool, report, source
from _ext.sessions.run import Limits
from nbclient import NotebookClient
from tiny import ROOT

STRANGE = re.compile(r"^```\{|^:::|^\([\w-]+\)=$|\]\([^)]*\.md[)#]|\]\(torch:|\{\w+\}`", re.M)


@pytest.fixture(scope="module")
def books(site):
    """The notebooks by page name."""
    return {path.relative_to(site.folder).with_suffix("").as_posix(): nbformat.read(path, as_version=4) for path in sorted(site.folder.rglob("*.ipynb"))}


def items(name):
    path = ROOT / f"docs/{name}.md"
    return source.items_of(path.read_text("utf-8"), path.parent)


def test_every_page_with_cells_has_one(site, books):
    assert set(books) == {name for name in site.pages if any(item.kind == source.CELL for item in items(name))}


def test_they_are_plain_and_numbered(books):
    for name, book in books.items():
        nbformat.validate(book)
        assert book.cells[0].source.startswith("# "), name
        code = [cell for cell in book.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), name
        for cell in book.cells:
            if cell.cell_type == "markdown":
                strange = STRANGE.search(re.sub(r"```\w*\n.*?```", "", cell.source, flags=re.S))
                assert not strange, f"{name}: {strange[0]!r} is MyST"
            else:
                assert not re.search(r"^(>>>|\.\.\.) ", cell.source, re.M), f"{name}: a prompt in {cell.source!r}"


def shown(outputs):
    """Outputs as text, streams joined, plots left out."""
    texts = []
    for output in outputs:
        if output["output_type"] == "stream":
            texts.append(output["text"])
        elif output["output_type"] == "error":
            texts.append(f"{output['ename']}: {output['evalue']}\n")
        elif not any(kind.startswith("image/") for kind in output["data"]):
            texts.append(output["data"]["text/plain"] + "\n")
    return "".join(texts)


def test_each_runs_and_gives_what_it_shows(books):
    pages = []
    for name, book in books.items():
        code = [cell for cell in book.cells if cell.cell_type == "code"]
        made = [source.Item(source.CELL, 1, cell.source, tuple(cell.metadata.get("tags", ())) + ("stderr",)) for cell in code]
        pages.append(pool.Page(name, f"{name}.ipynb", made))
    pool.run_pages(pages, Limits())
    failures = [f"{place}: {text}" for page in pages for place, text in report.failure_lines(page)]
    assert not failures, "\n".join(failures)
    other = []
    for page in pages:
        code = [cell for cell in books[page.name].cells if cell.cell_type == "code"]
        for at, cell in enumerate(code):
            if cell.outputs and shown(page.results[at].outputs).split() != shown(cell.outputs).split():
                other.append(f"{page.path} cell {at + 1}:\n{cell.source}\nshows {shown(cell.outputs)!r}\ngives {shown(page.results[at].outputs)!r}")
    assert not other, "\n\n".join(other)


@pytest.mark.parametrize("name", ["operations/detach", "programs/gan_step"])
def test_a_stock_kernel_runs_it(books, name, tmp_path):
    book = nbformat.from_dict(json.loads(json.dumps(books[name])))
    NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all(output.output_type != "error" for cell in book.cells if cell.cell_type == "code" for output in cell.outputs)
