"""What the runner needs of the operating system, in one place."""

from __future__ import annotations

import gc
import importlib
import multiprocessing
import os
import signal
import sys
import warnings
from typing import Any

# Imported by the hub before it forks, so that no worker pays for them: compile and gradcheck import most of these at
# their first call. Importing is all the hub may do: a process that has computed may have threads, and threads do not
# survive a fork.
PRELOAD = (
    "torch",
    "numpy",
    "_ext.facts.targets",
    "torch.testing",
    "torch.nn.attention.flex_attention",
    "torch._subclasses.fake_tensor",
    "torch._subclasses.schema_check_mode",
    "torch._decomp.decompositions_for_jvp",
    "torch._dynamo",
    "torch._dynamo.backends.cudagraphs",
    "torch._dynamo.backends.distributed",
    "torch._dynamo.backends.inductor",
    "torch._dynamo.backends.onnxrt",
    "torch._dynamo.backends.tensorrt",
    "torch._dynamo.backends.torchxla",
    "torch._dynamo.backends.tvm",
    "torch._dynamo.dce_extra_outputs",
    "torch._dynamo.repro.after_dynamo",
    "torch._dynamo.testing",
    "torch._export.passes._node_metadata_hook",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.compiler_bisector",
    "torch._inductor.sizevars",
    "torch.distributed.tensor.experimental._attention",
    "torch.export._trace",
    "torch.fx.experimental.validator",
    "functorch.compile",
    "networkx",
    "sympy",
)


def context() -> Any:
    """Return the multiprocessing context from which measuring starts: a server with torch imported where one can fork."""
    try:
        from _ext.sessions.server import context as warm
    except ImportError:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        return multiprocessing.get_context("forkserver" if can_fork() else "spawn")
    return warm()


def can_fork() -> bool:
    """Return whether forking a process that has imported torch is safe here: on Linux."""
    return sys.platform.startswith("linux") and not os.environ.get("FACTS_NO_FORK")


def cores() -> int:
    """Return how many workers run side by side."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def preload(more: tuple[str, ...] = ()) -> None:
    """Import what probes need; a private module that this torch lacks is left out, and its probe says so.

    FACTS_PRELOAD set to nothing imports nothing.
    """
    if os.environ.get("FACTS_PRELOAD") == "":
        return
    gc.disable()  # what is imported stays
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some of these warn of their own end
        for name in (*PRELOAD, *more):
            try:
                importlib.import_module(name)
            except ImportError:
                if name in ("torch", "numpy", "_ext.facts.targets"):
                    raise
    gc.freeze()  # or every worker's collector would walk, and copy, all that was imported
    gc.enable()


def spare_the_stopwatch() -> None:
    """Keep dynamo from timing its guards, which flushes the caches of the machine at each compilation: a third of its cost.

    The figure goes to dynamo's log alone. Where this torch does it elsewhere, nothing is changed.
    """
    try:
        from torch._dynamo import guards
    except ImportError:
        return
    if hasattr(guards, "profile_guard_manager"):
        guards.profile_guard_manager = lambda *arguments: 0.0


def spare_the_seeds_of_devices() -> None:
    """Let ``torch.manual_seed`` seed the CPU alone: all is measured there.

    For each kind of device that is not in use yet it keeps the seed, and the caller's stack as text: 0.7 ms a call,
    and half of what it costs to measure all of torch. Where this torch does it elsewhere, nothing is changed.
    """
    import torch

    for name in ("cuda", "xpu", "mtia"):
        device = getattr(torch, name, None)
        if hasattr(device, "manual_seed_all"):
            device.manual_seed_all = lambda seed: None


def threads() -> int:
    """Return how many threads this process has; 1 where the system does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended, in seconds."""
    used = os.times()
    return float(used.user + used.system + used.children_user + used.children_system)


def limit_memory(beyond: int) -> None:
    """Allow this process ``beyond`` bytes of memory more than it has now, and no core file. Does nothing on Windows.

    A later call counts from what the process has then.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        pages = int(open("/proc/self/statm").read().split()[0])
    except OSError:
        return  # macOS does not hold processes to RLIMIT_AS
    bound, hard = pages * resource.getpagesize() + beyond, resource.getrlimit(resource.RLIMIT_AS)[1]
    # The soft limit alone: a hard one could not be raised again.
    resource.setrlimit(resource.RLIMIT_AS, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))


def alarm(seconds: float) -> None:
    """End this process by SIGALRM in ``seconds``; 0 takes it back. Does nothing on Windows."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
