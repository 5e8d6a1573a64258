"""Targets for the tests of the runner: steps that answer, raise, hang, die and eat memory."""

import os
import signal
import threading
import time

KEPT = []


class Steps:
    def __init__(self, names):
        self.names = names

    def steps(self):
        return [(name,) for name in self.names]

    def answer(self, step):
        return getattr(self, step[0])()

    def fine(self):
        return {"pid": os.getpid()}

    def also_fine(self):
        return "yes"

    def raises(self):
        raise ValueError("a fault of the probe")

    def hangs(self):
        while True:
            time.sleep(1)

    def loops(self):
        while True:
            pass

    def crashes(self):
        os.kill(os.getpid(), signal.SIGSEGV)

    def crashes_for_real(self):
        import torch

        return torch.repeat_interleave(torch.tensor([2, -1, -1]), output_size=0)

    def leaves(self):
        os._exit(3)

    def eats(self):
        return len(bytearray(64 << 30))

    def eats_in_torch(self):
        import torch

        try:
            return torch.ones(1).repeat(2**40)
        except RuntimeError as error:
            return f"RuntimeError: {error}"

    def keeps(self):
        KEPT.append(bytearray(700 << 20))
        return "kept"

    def wants(self):
        return len(bytearray(700 << 20))

    def dies_later(self):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGSEGV)).start()
        return "alive"

    def dies_when_it_goes(self):
        self.bomb = Bomb()
        return "alive"

    def hangs_the_next(self):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        return "alive"

    def takes_a_second(self):
        time.sleep(1)
        return "yes"

    def switches(self):
        import torch

        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.set_grad_enabled(False)
        torch.autograd.set_detect_anomaly(True)
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(2)
        torch.set_printoptions(precision=1)
        torch.set_warn_always(False)
        torch.manual_seed(7)
        return "switched"

    def looks(self):
        import torch

        return [
            str(torch.zeros(1).dtype),
            str(torch.zeros(1).device),
            torch.is_grad_enabled(),
            torch.is_anomaly_enabled(),
            torch.are_deterministic_algorithms_enabled(),
            torch.get_num_threads(),
            str(torch.tensor(1 / 3, device="cpu")),
            torch.is_warn_always_enabled(),
            torch.initial_seed(),
        ]

    def prints(self):
        os.write(1, b"a line on standard output\n")
        os.write(2, b"a line on standard error\n")
        return "printed"


class Bomb:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGSEGV)


def open_afresh(spec):
    """Open steps after a target of torch: what that sets, they find."""
    from _ext.facts import targets

    targets.open_target(("views",))
    return Steps(spec[1:])


def open_target(spec):
    if spec[0] == "unknown":
        raise KeyError("no such target")
    return Steps(spec[1:])
