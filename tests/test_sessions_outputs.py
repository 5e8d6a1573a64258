"""A page shows what the same cells show in a Jupyter kernel."""

import nbformat
import pytest
from nbclient import NotebookClient

from _ext.sessions import pool, run, source

CELLS = {
    "last value": "x = 3\nx * 2",
    "silent": "y = 1;",
    "value hidden": "x;",
    "nothing": "None",
    "print": "print('a')\nprint('b', end='')",
    "print and value": "print('shown')\n[1, 2]",
    "several values": "1\n2\n3",
    "display": "from IPython.display import display, HTML, Markdown, JSON\ndisplay(1)\nprint('between')\ndisplay(HTML('<b>b</b>'))\nMarkdown('*m*')",
    "metadata": "display(JSON({'a': 1}, expanded=True))",
    "update": "h = display('old', display_id='h')\nprint('after')",
    "update later": "h.update('new')",
    "clear": "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept')",
    "clear when next": "print('gone')\nclear_output(wait=True)\nprint('kept')",
    "repr": "class R:\n    def _repr_html_(self):\n        return '<i>r</i>'\n    def __repr__(self):\n        return 'R()'\nR()",
    "unicode": "'é 漢字 🙂'",
    "tensor": "import torch\ntorch.arange(3.0, requires_grad=True) * 2",
    "name": "__name__",
    "underscore": "_",
    "history": "Out[1]",
    "await": "import asyncio\nawait asyncio.sleep(0, 'awaited')",
    "pickled": "import pickle\nclass P: pass\ntype(pickle.loads(pickle.dumps(P()))) is P",
    "source": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))",
    "children": "from multiprocessing import Pool\ndef double(n):\n    return 2 * n\nwith Pool(2) as p:\n    print(p.map(double, [1, 2, 3]))",
    "workers": "from torch.utils.data import DataLoader\nfor batch in DataLoader(list(range(4)), batch_size=2, num_workers=1):\n    print(batch)",
    "thread": "import threading\nt = threading.Thread(target=print, args=('in a thread',))\nt.start(); t.join()",
}
ERRORS = {
    "error": "1 / 0",
    "own error": "class Wrong(Exception): pass\nraise Wrong('line one\\nline two')",
}


@pytest.fixture(scope="module")
def both():
    """Run all cells in a session, and in a stock kernel."""
    items = [source.Item("code-cell", 1, text) for text in CELLS.values()]
    items += [source.Item("code-cell", 1, text, ("raises-exception",)) for text in ERRORS.values()]
    page = pool.Page("a", "a.md", items)
    pool.run_pages([page], run.Limits())
    assert page.failures == []
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(item.source) for item in items])
    NotebookClient(book, timeout=60, allow_errors=True, coalesce_streams=True).execute()
    names = [*CELLS, *ERRORS]
    return {name: (page.results[at], book.cells[at]) for at, name in enumerate(names)}


@pytest.mark.parametrize("name", CELLS)
def test_outputs_equal_a_kernels(both, name):
    result, cell = both[name]
    assert result.outputs == [dict(output) for output in cell.outputs]
    assert result.count == cell.execution_count


@pytest.mark.parametrize("name", ERRORS)
def test_errors_equal_a_kernels_but_are_one_line(both, name):
    (ours,), (theirs,) = both[name][0].outputs, both[name][1].outputs
    assert (ours["ename"], ours["evalue"]) == (theirs.ename, theirs.evalue)
    assert "".join(ours["traceback"]).strip() == f"{theirs.ename}: {theirs.evalue}"


def run_cells(*texts, tags=()):
    page = pool.Page("a", "a.md", [source.Item("code-cell", 1, text, tags) for text in texts])
    pool.run_pages([page], run.Limits())
    return page


def test_figures_are_svg_without_a_date():
    page = run_cells("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "plt.plot([2, 1])")
    figures = [output for at in page.results for output in page.results[at].outputs if "image/svg+xml" in output.get("data", {})]
    assert len(figures) == 2
    assert "<dc:date>" not in figures[0]["data"]["image/svg+xml"]


def test_figures_are_equal_from_run_to_run():
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2], label='a')\nplt.legend()\nplt.show()"
    one, two = (run_cells(code).results[0].outputs for _ in range(2))
    assert one == two


def test_streams_keep_the_order_in_which_they_came():
    page = run_cells("import sys\nprint('one')\nprint('two', file=sys.stderr)\nprint('three')", tags=("stderr",))
    assert [(output["name"], output["text"]) for output in page.results[0].outputs] == [
        ("stdout", "one\n"), ("stderr", "two\n"), ("stdout", "three\n"),
    ]


def test_c_code_and_children_are_heard():
    page = run_cells("import ctypes, subprocess\n_ = ctypes.CDLL(None).puts(b'from C')\n_ = subprocess.run(['echo', 'from a child'])")
    text = page.results[0].outputs[0]["text"]
    assert sorted(text.splitlines()) == ["from C", "from a child"]


def test_a_warning_names_no_file():
    page = run_cells("import warnings\nwarnings.warn('old')", tags=("stderr",))
    assert page.results[0].outputs[0]["text"] == "UserWarning: old\n"


def test_promises_and_cells_share_one_namespace():
    items = [source.Item("code-cell", 1, "a = 1"), source.Item("doctest", 5, ">>> a\n1\n>>> b = a + 1"), source.Item("code-cell", 9, "b")]
    page = pool.Page("a", "a.md", items)
    pool.run_pages([page], run.Limits())
    assert page.failures == [] and page.results[2].outputs[0]["data"]["text/plain"] == "2"
    assert page.results[1].promises == 2
