"""Runs code that raises on purpose, and tells what it raised: records, and the promised errors of pages.

``python -m _ext.errors.observe`` is the process that runs it, a task a line on standard input, an answer a line on
standard output; where it can it forks for each task, so that none sees another's settings and a crash costs one answer.
Nothing but `torch`, `torch.nn`, `torch.nn.functional` and NumPy is in a record's scope, as `torch`, `nn`, `F` and `np`.
"""

import contextlib
import doctest
import importlib
import io
import json
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PACKAGES = Path(__file__).parents[2]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
NOTHING = "no error"


def observe(tasks: Iterable[dict], timeout: float = 600) -> list:
    """Run each task and return its answer.

    ``{"code": ...}`` gives the text ``Type: message`` or ``no error``.
    ``{"page": path}`` gives ``[line, old, new]`` for each promised error of the page; the line is the page's, 1-based.
    A task that ends its process, or cannot be run to its end, gives ``{"failed": reason}``.
    """
    lines = [json.dumps(task) for task in tasks]
    shares = max(1, min(os.cpu_count() or 1, len(lines)))
    with ThreadPoolExecutor(shares) as threads:  # each waits for a process of its own
        answers = list(threads.map(lambda first: _observe(lines[first::shares], timeout), range(shares)))
    return [answers[number % shares][number // shares] for number in range(len(lines))]


def _observe(lines: list[str], timeout: float) -> list:
    path = os.pathsep.join(filter(None, [str(PACKAGES), os.environ.get("PYTHONPATH")]))
    answers: list = []
    while len(answers) < len(lines):
        ran = subprocess.run(
            [sys.executable, "-m", "_ext.errors.observe"], input="\n".join(lines[len(answers):]), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=timeout,
            env={**os.environ, **ENVIRONMENT, "PYTHONPATH": path},
        )
        answers += [json.loads(line) for line in ran.stdout.splitlines()]
        if len(answers) < len(lines):
            answers.append({"failed": f"its process ended ({ran.returncode})"})
    return answers


def text_of(error: BaseException) -> str:
    """Return an exception as ``Type: message``, without the module of its class."""
    return f"{type(error).__name__}: {error}"


def printed(error: BaseException) -> str:
    """Return an exception as the last lines of a traceback, and so a doctest, show it."""
    return "".join(traceback.format_exception_only(error)).removesuffix("\n")


def run_code(code: str) -> str:
    """Run a record's code; return what it raises as ``Type: message``, or ``no error``."""
    import numpy
    import torch

    scope = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "np": numpy}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(code, "<record>", "exec"), scope)
        except Exception as error:
            return text_of(error)
    return NOTHING


def run_page(path: str) -> list:
    """Run a page's cells and promises in order; return ``[line, old, new]`` for each promised error."""
    from _ext.sessions import source

    scope: dict = {"__name__": "__main__"}
    found = []
    for item in source.items_of(Path(path).read_text("utf-8"), Path(path).parent):
        if item.kind == source.CELL:
            with contextlib.suppress(Exception):
                exec(compile(item.source, path, "exec"), scope)
        elif item.kind == source.PROMISE:
            for example in doctest.DocTestParser().get_examples(item.source):
                new = NOTHING
                try:
                    exec(compile(example.source, path, "single"), scope)
                except Exception as error:
                    new = printed(error)
                if example.exc_msg is not None:
                    old = example.exc_msg.rstrip("\n")
                    flags = sum(flag for flag, on in example.options.items() if on)
                    if doctest.OutputChecker().check_output(example.exc_msg, new + "\n", flags):
                        new = old
                    found.append([item.line + example.lineno, old, new])
    return found


def _answer(task: dict):
    hidden = io.StringIO()
    with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden):
        try:
            return run_code(task["code"]) if "code" in task else run_page(task["page"])
        except Exception as error:
            return {"failed": text_of(error)}


def _answer_in_a_fork(task: dict):
    """Answer in a child; the parent only imports, which is what makes its forks safe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            json.dump(_answer(task), out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as inner:
        text = inner.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"failed": f"its process ended ({os.waitstatus_to_exitcode(status)})"}


def main() -> None:
    """Answer every line of standard input."""
    from _ext.sessions.server import late_imports

    tasks = [json.loads(line) for line in sys.stdin]
    texts = [task["code"] if "code" in task else Path(task["page"]).read_text("utf-8") for task in tasks]
    with contextlib.suppress(ImportError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in ("torch", *late_imports(texts)):  # once, for every fork
            importlib.import_module(module)
    answer = _answer_in_a_fork if sys.platform == "linux" else _answer
    for task in tasks:
        print(json.dumps(answer(task)), flush=True)


if __name__ == "__main__":
    main()
