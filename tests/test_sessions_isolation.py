"""Nothing that one page does reaches the next, however pages get their processes."""

import sys

import pytest

import tiny

CHANGES = """
    # First

    ```{code-cell}
    import os, sys, random, warnings
    import numpy, torch
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    _ = torch.manual_seed(7)
    numpy.random.seed(7)
    random.seed(7)
    torch.set_num_threads(2)
    os.chdir("/")
    os.environ["FIRST"] = "yes"
    sys.path.insert(0, "/nowhere")
    torch.sin = None
    numpy.answer = 42
    sys.modules["first"] = sys
    _ = open("first", "w") if os.access("first", os.F_OK) else None
    ```

    ```{code-cell}
    :tags: [stderr]
    warnings.warn("shown once")
    ```
    """
LOOKS = """
    # Second

    ```{code-cell}
    import os, sys, warnings
    import numpy, torch
    ```

    ```{doctest}
    >>> torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    (torch.float32, True, 1)
    >>> torch.initial_seed() == 7
    False
    >>> os.environ.get("FIRST"), "/nowhere" in sys.path, "first" in sys.modules
    (None, False, False)
    >>> torch.sin(torch.zeros(1)), hasattr(numpy, "answer")
    (tensor([0.]), False)
    >>> os.listdir()
    []
    >>> "os" in dir(), "random" in dir()
    (True, False)
    >>> __name__
    '__main__'
    ```

    ```{code-cell}
    :tags: [stderr]
    warnings.warn("shown once")
    ```
    """


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_page_sees_nothing_of_another(tmp_path, method):
    if method == "forkserver" and sys.platform != "linux":
        pytest.skip("pages are forked on Linux only")
    pages = {"a.md": tiny.notebook(CHANGES), "b.md": tiny.notebook(LOOKS)}
    status, printed, site = tiny.make_site(
        tmp_path, pages, conf="sessions_jobs = 1", environment={"SESSIONS_START_METHOD": method}
    )
    assert status == 0, printed
    assert "shown once" in (site / "b.html").read_text()


def test_a_page_of_many_threads_does_not_slow_its_neighbour():
    """Each page has one thread for arithmetic, in every library that pages use."""
    from _ext.sessions import pool, run, source

    code = "import os, torch; print(torch.get_num_threads(), *(os.environ[n + '_NUM_THREADS'] for n in ('OMP', 'MKL', 'OPENBLAS')))"
    page = pool.Page("a", "a.md", [source.Item("code-cell", 1, code)])
    pool.run_pages([page], run.Limits())
    assert page.results[0].outputs[0]["text"] == "1 1 1 1\n"


def test_with_one_job_there_is_one_process_at_a_time(monkeypatch):
    """Pages that need one port, one file or all memory are built with `sessions_jobs = 1`."""
    from _ext.sessions import pool, run, source

    alive, seen = set(), []
    start, stop = pool._Running.start, pool._Running.stop

    def started(one, private):
        alive.add(one)
        seen.append(len(alive))
        start(one, private)

    def stopped(one):
        stop(one)
        alive.discard(one)

    monkeypatch.setattr(pool._Running, "start", started)
    monkeypatch.setattr(pool._Running, "stop", stopped)
    pages = [pool.Page(str(at), f"{at}.md", [source.Item("code-cell", 1, "1 + 1")]) for at in range(4)]
    pool.run_pages(pages, run.Limits(), jobs=1)
    assert [page.failures for page in pages] == [[]] * 4
    assert seen == [1, 1, 1, 1] and not alive


def test_work_in_one_page_does_not_hang_the_next():
    """The rule that makes forks safe: the warm process imports and never computes."""
    from _ext.sessions import pool, run, source

    code = (
        "import torch\ntorch.set_num_threads(2)\na = torch.ones(700, 700)\n"
        "print((a @ a).sum().item(), torch.ones(3_000_000).exp().sum() > 0, torch.linalg.svdvals(a)[0])"
    )
    pages = [pool.Page(str(at), f"{at}.md", [source.Item("code-cell", 1, code)]) for at in range(4)]
    pool.run_pages(pages, run.Limits(seconds=30))
    texts = {page.results[0].outputs[0]["text"] for page in pages if not page.failures}
    assert [page.failures for page in pages] == [[]] * 4 and len(texts) == 1
