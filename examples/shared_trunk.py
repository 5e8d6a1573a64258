"""Three losses over one trunk: three ways to call backward, compared.

The gradients are equal.
The work and the time for which the graph stays in memory are not.
"""
import time
import weakref
from statistics import median

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

torch.set_num_threads(1)  # steadier times
torch.manual_seed(0)
FEATURES, WIDTH, BATCH = 64, 256, 256
trunk = nn.Sequential(
    nn.Linear(FEATURES, WIDTH), nn.Tanh(),
    nn.Linear(WIDTH, WIDTH), nn.Tanh(),
    nn.Linear(WIDTH, WIDTH), nn.Tanh(),
)
heads = nn.ModuleDict({
    "size": nn.Linear(WIDTH, 1),
    "kind": nn.Linear(WIDTH, 5),
    "place": nn.Linear(WIDTH, 2),
})
model = nn.ModuleDict({"trunk": trunk, "heads": heads})

inputs = torch.randn(BATCH, FEATURES)
size = inputs.norm(dim=1)
kind = inputs[:, :5].argmax(dim=1)
place = inputs[:, :2]


def losses():
    """One loss a head, all from a single run of the trunk."""
    shared = trunk(inputs)
    return [
        nn.functional.mse_loss(heads["size"](shared).squeeze(1), size),
        nn.functional.cross_entropy(heads["kind"](shared), kind),
        nn.functional.l1_loss(heads["place"](shared), place),
    ]


# Each way is a list of calls, so that the graph can be weighed between them.
def retained(a, b, c):
    return [
        lambda: a.backward(retain_graph=True),
        lambda: b.backward(retain_graph=True),
        lambda: c.backward(),
    ]


def summed(a, b, c):
    return [lambda: (a + b + c).backward()]


def listed(a, b, c):
    return [lambda: torch.autograd.backward([a, b, c])]


class Saved:
    """A tensor that the graph keeps for its backward pass."""

    def __init__(self, tensor):
        self.tensor = tensor.detach()  # or an operation's result would keep its own graph


def run(way):
    """Gradients, work of the backward calls (MFLOP), KiB held by the graph.

    The last is a list: before the first call, after each, and without the losses.
    """
    model.zero_grad()
    alive = weakref.WeakSet()
    other = (inputs, size, kind, place, *model.parameters())  # there without a graph
    not_counted = {tensor.untyped_storage().data_ptr() for tensor in other}

    def pack(tensor):
        saved = Saved(tensor)
        alive.add(saved)
        return saved

    def held():
        storages = [saved.tensor.untyped_storage() for saved in alive]
        sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
        return sum(sizes[key] for key in sizes.keys() - not_counted) // 1024

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        calls = way(*losses())
    memory = [held()]
    with FlopCounterMode(display=False) as counter:
        for call in calls:
            call()
            memory.append(held())
    del calls, call  # the last references to the losses
    memory.append(held())
    gradients = [p.grad.clone() for p in model.parameters()]
    return gradients, counter.get_total_flops() / 1e6, memory


def seconds(way):
    """Time of the backward calls alone."""
    calls = way(*losses())
    start = time.perf_counter()
    for call in calls:
        call()
    return time.perf_counter() - start


ways = (retained, summed, listed)
results = {way: run(way) for way in ways}
wanted = results[summed][0]
print("            same gradients   MFLOP   KiB in the graph: at first, after each call, at last")
for way, (gradients, work, memory) in results.items():
    pairs = zip(gradients, wanted)
    same = all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in pairs)
    print(f"  {way.__name__:9} {same!s:>14} {work:7.0f}   {', '.join(map(str, memory))}")

# Rounds alternate between the ways, so that a busy moment hits all of them.
rounds = [[seconds(way) for way in ways] for _ in range(30)]
times = dict(zip(ways, map(median, zip(*rounds))))
ratio = times[retained] / times[summed]
print("\nretained takes more than 1.5 times the time of summed:", ratio > 1.5)

# What the sum cannot tell and separate walks can: which loss pulls the trunk hardest.
print("\nnorm of the gradient in the trunk, loss by loss")
for name, loss in zip(heads, losses()):
    gradient = torch.autograd.grad(loss, trunk.parameters(), retain_graph=True)
    print(f"  {name:6} {torch.cat([g.flatten() for g in gradient]).norm():5.2f}")
