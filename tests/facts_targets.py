"""Targets for the tests of the runner: steps that answer, raise, hang, die and eat memory."""

import os
import signal
import time


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

    def prints(self):
        os.write(1, b"a line on standard output\n")
        os.write(2, b"a line on standard error\n")
        return "printed"


def open_target(spec):
    if spec[0] == "unknown":
        raise KeyError("no such target")
    return Steps(spec[1:])
