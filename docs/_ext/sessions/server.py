"""The warm process that pages are forked from.

The standard library's fork server imports torch once; each page is a fork of it.
The rule that makes this safe: the server may import anything and must compute nothing,
since a fork of a process whose thread pools have worked can hang.
Where fork is not safe (macOS) or not there (Windows), each page is a fresh process.
"""

import multiprocessing
import os
import re
import signal
import sys
from pathlib import Path

PACKAGES = Path(__file__).parents[2]  # the folder that holds `_ext`
METHOD = os.environ.get("SESSIONS_START_METHOD") or ("forkserver" if sys.platform == "linux" else "spawn")

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # pages run side by side; and no sum depends on the number of cores
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "PYTHONHASHSEED": "0",  # sets of strings print in one order
}

# Read as the warm process starts: its memory in pages of 2 MB where Linux has them, which a fork copies in a third of the time.
HUGE_PAGES = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

_started = []

# Imported by a first cell or by a first tensor's repr; one that a torch does not have is passed over.
FIRST = ["torch", "numpy", "IPython.core.logger", "torch._subclasses.schema_check_mode"]

FENCES = re.compile(r"^ *[`~]{3,}\{(?:code-cell|doctest|autograd-graph|tensor-layout)\}.*?^ *[`~]{3,}\s*$", re.M | re.S)

# Slow imports that torch puts off until a first call: word on a page -> module (seconds on the machine that measured).
LATE = {
    # 0.4: a gradient that is given, and what compares or checks.
    r"\bbackward\((?!\)|retain_graph|create_graph|inputs|ctx)|grad_outputs|autograd\.grad\(\w+, \w+, |gradcheck"
    r"|autograd\.functional|assert_close|broadcast_shapes|\"meta\"": "torch.fx.experimental.symbolic_shapes",
    # 1.2: optimizers, compilation, torch.func's gradients, and what looks into each call.
    r"\boptim\.[A-Z]|torch\.compile\b|torch\.compiler|func\.(?:grad|jac|hessian|jvp)|func import .*(?:grad|jac|hessian|jvp)"
    r"|checkpoint\(|FakeTensorMode|DispatchMode|FlopCounterMode|DistributedDataParallel|torch\.jagged"
    r"|use_deterministic_algorithms|profiler\.profile": "torch._dynamo",
    "pyplot": "matplotlib.pyplot",
    r"\{autograd-graph\}": "_ext.pictures.graph",
    r"\{tensor-layout\}": "_ext.pictures.layout",
}


def late_imports(texts):
    """Name the slow modules that these page texts will import: worth doing once, before the forks."""
    code = ["\n".join(FENCES.findall(text)) if text.startswith("---") else text for text in texts]  # a page, or a program
    return [module for words, module in LATE.items() if any(re.search(words, text) for text in code)]


def start(texts=()):
    """Start importing, in the background; `texts` are those of the pages that are likely to run.

    Called before Sphinx loads its extensions, so that both go on side by side. A second call does nothing.
    """
    if _started:
        return
    _started.append(True)
    for name, value in ENVIRONMENT.items():
        os.environ[name] = value
    # The server does not see sys.path in Python 3.11, only this variable.
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(PACKAGES), *known]))
    if METHOD != "forkserver":
        return
    from multiprocessing import forkserver

    # When Sphinx runs as a script, not with -m, every page would import that script again.
    main = sys.modules["__main__"]
    script = ["sphinx.cmd.build"] if getattr(main, "__spec__", None) is None else []
    forkserver.set_forkserver_preload(["_ext.sessions.importing", *FIRST, *late_imports(texts), *script, "_ext.sessions.warm"])
    _spawn(forkserver)


def _spawn(forkserver):
    """Start the fork server's process: with huge pages, and deaf to Ctrl-C until `importing` says how it takes it."""
    from multiprocessing import resource_tracker

    huge = {} if HUGE_PAGES.keys() & os.environ.keys() else HUGE_PAGES  # who has set one of them knows why
    resource_tracker.ensure_running()  # else started below, where it would take the mask off
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.environ.update(huge)
    try:
        forkserver.ensure_running()
    finally:
        for name in huge:
            del os.environ[name]
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def start_for(sources, doctrees):
    """Start if a file under the folder `sources` is newer than the last build's environment in `doctrees`."""
    last = Path(doctrees, "environment.pickle")
    since = last.stat().st_mtime if last.exists() else 0
    changed = [path for path in files_under(sources) if path.stat().st_mtime > since]
    if changed:
        start([path.read_text("utf-8", errors="replace") for path in changed if path.suffix in {".md", ".py"}])


def files_under(sources):
    """List what a site is made of, leaving out what a build made."""
    for path in sorted(Path(sources).rglob("*")):
        parts = path.relative_to(sources).parts
        if path.is_file() and not {"_build", "__pycache__"} & set(parts):
            yield path


def context():
    """The multiprocessing context in which each page gets its process."""
    start()
    return multiprocessing.get_context(METHOD)
