"""The warm process imports what pages import late, once; and pages see nothing of how it was made fast."""

import subprocess
import sys

import pytest

import tiny
from _ext.sessions import server

LEAF = "x = torch.ones(2, requires_grad=True)\n"
LATE = {  # code of a page -> the slow module that its first call imports
    "given gradient": (LEAF + "(x * 2).backward(torch.ones(2))", "torch.fx.experimental.symbolic_shapes"),
    "grad_outputs": (LEAF + "torch.autograd.grad(x * 2, x, grad_outputs=torch.ones(2))", "torch.fx.experimental.symbolic_shapes"),
    "broadcast_shapes": ("torch.broadcast_shapes((2, 1), (3,))", "torch.fx.experimental.symbolic_shapes"),
    "optimizer": (LEAF + "torch.optim.SGD([x], lr=0.1)", "torch._dynamo"),
    "torch.func": ("torch.func.grad(torch.sum)(torch.ones(2))", "torch._dynamo"),
    "fake": ("from torch._subclasses import FakeTensorMode\nwith FakeTensorMode(): torch.ones(2) * 2", "torch._dynamo"),
}
AT_ONCE = {
    "plain backward": LEAF + "(x * 2).sum().backward()",
    "retain_graph": LEAF + "(x * 2).sum().backward(retain_graph=True)",
    "vmap": "from torch.func import vmap\nvmap(torch.sum)(torch.ones(2, 2))",
    "backward of a Function": "class F(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, grad): return grad",
}


def page(code):
    return tiny.notebook(f"# P\n\n```{{code-cell}}\n{code}\n```\n")


def imported_by(code):
    """The modules of the table that this code imports, in a process that has only what every page starts with."""
    slow = [module for module in server.LATE.values() if module.startswith("torch")]
    program = "\n".join([
        "import sys", *(f"import {module}" for module in server.FIRST), f"slow = {slow}",
        "before = {m for m in slow if m in sys.modules}", code, "print(*[m for m in slow if m in sys.modules and m not in before])",
    ])
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.parametrize("name", LATE)
def test_what_a_first_call_imports_is_imported_before_the_forks(name):
    code, module = LATE[name]
    assert module in server.late_imports([page(code)])
    assert module in imported_by(code)


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_needs_nothing_more_costs_nothing_more(name):
    assert server.late_imports([page(AT_ONCE[name])]) == []
    assert imported_by(AT_ONCE[name]) == []


def test_words_of_prose_import_nothing():
    assert server.late_imports([tiny.notebook("# P\n\nAsk `torch.compile`, an `optim.SGD` or `gradcheck`.\n")]) == []


def test_a_program_that_a_page_loads_counts():
    assert server.late_imports(["import torch\ntorch.optim.SGD([], lr=1)\n"]) == ["torch._dynamo"]


def test_pages_see_a_plain_process(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # set where a test before this one has imported torch._dynamo
    text = tiny.notebook(
        """
        # P

        ```{code-cell}
        import gc, os, subprocess, sys, tempfile
        import torch

        same = torch.compile(lambda x: x)  # for which the warm process imports torch._dynamo
        ```

        ```{doctest}
        >>> gc.isenabled(), gc.get_threshold()
        (True, (700, 10, 10))
        >>> [name for name in os.environ if name in ("PYTHONMALLOC", "GLIBC_TUNABLES")]
        []
        >>> print(subprocess.run([sys.executable, "-c", "import os; print(os.environ.get('PYTHONMALLOC'))"], capture_output=True, text=True).stdout.strip())
        None
        >>> os.environ.get("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir()).startswith(tempfile.gettempdir())
        True
        ```
        """
    )
    status, printed, site = tiny.make_site(tmp_path, {"p.md": text}, builder="doctest")
    assert status == 0, printed


def test_an_allocator_that_the_reader_chose_stays(tmp_path):
    text = tiny.notebook("# P\n\n```{doctest}\n>>> import os\n>>> os.environ['PYTHONMALLOC'], os.environ.get('GLIBC_TUNABLES')\n('pymalloc', None)\n```\n")
    status, printed, site = tiny.make_site(tmp_path, {"p.md": text}, builder="doctest", environment={"PYTHONMALLOC": "pymalloc"})
    assert status == 0, printed


def test_a_page_takes_an_interrupt_as_python_does(tmp_path):
    text = tiny.notebook("# P\n\n```{doctest}\n>>> import signal\n>>> signal.getsignal(signal.SIGINT) is signal.default_int_handler\nTrue\n>>> signal.pthread_sigmask(signal.SIG_BLOCK, [])\nset()\n```\n")
    status, printed, site = tiny.make_site(tmp_path, {"p.md": text}, builder="doctest")
    assert status == 0, printed


def test_a_picture_is_read_without_torch():
    program = "import sys, _ext.pictures.picture\nprint('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": str(tiny.ROOT / "docs")})
    assert ran.stdout == "False\n", ran.stderr
