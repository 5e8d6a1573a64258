"""Grouped-query attention: eight query heads share two key and value heads.

Five ways to give each query head its keys, held against torch's own
`enable_gqa`: which are right, what they copy, and what they keep for backward.
"""
import matplotlib.pyplot as plt
import torch
from torch.nn.functional import scaled_dot_product_attention as attention
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

torch.set_num_threads(1)  # tensors this small are faster on one thread
BATCH, HEADS, KV_HEADS, LENGTH, WIDTH = 2, 8, 2, 256, 64
GROUP = HEADS // KV_HEADS  # query heads that share one key and value head


def with_enable_gqa(q, k, v):
    return attention(q, k, v, is_causal=True, enable_gqa=True)


def with_repeat_interleave(q, k, v):
    k, v = (t.repeat_interleave(GROUP, dim=1) for t in (k, v))
    return attention(q, k, v, is_causal=True)


def with_repeat(q, k, v):
    k, v = (t.repeat(1, GROUP, 1, 1) for t in (k, v))  # wrong order
    return attention(q, k, v, is_causal=True)


def with_expand_flatten(q, k, v):
    k, v = (t[:, :, None].expand(-1, -1, GROUP, -1, -1).flatten(1, 2) for t in (k, v))
    return attention(q, k, v, is_causal=True)


def with_expand(q, k, v):
    # Batch and key heads become one dimension: the group then has one of its own.
    k, v = (t.flatten(0, 1)[:, None].expand(-1, GROUP, -1, -1) for t in (k, v))
    q = q.unflatten(1, (KV_HEADS, GROUP)).flatten(0, 1)
    result = attention(q, k, v, is_causal=True)
    return result.unflatten(0, (BATCH, KV_HEADS)).flatten(1, 2)


def storages(values):
    """Address and bytes of each storage under the tensors in `values`."""
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    found = [tensor.untyped_storage() for tensor in tensors]
    return {storage.data_ptr(): storage.nbytes() for storage in found}


class NewStorage(TorchDispatchMode):
    """Adds up the bytes of storage that operations make; views add nothing."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        old, new = storages((args, kwargs)), storages(result)
        self.bytes += sum(size for address, size in new.items() if address not in old)
        return result


def new_bytes(way, q, k, v):
    with torch.no_grad(), NewStorage() as counter:
        way(q, k, v)
    return counter.bytes


def kept_bytes(way, q, k, v):
    """Bytes of storage that the graph keeps for backward, q, k and v among them."""
    saved = []

    def pack(tensor):
        saved.append(tensor.detach())  # or the result would keep its own graph
        return saved[-1]

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        way(q, k, v)
    return sum(storages(saved).values())


torch.manual_seed(0)
q = torch.randn(BATCH, HEADS, LENGTH, WIDTH, requires_grad=True)
k = torch.randn(BATCH, KV_HEADS, LENGTH, WIDTH, requires_grad=True)
v = torch.randn(BATCH, KV_HEADS, LENGTH, WIDTH, requires_grad=True)
weights = torch.randn(BATCH, HEADS, LENGTH, WIDTH)
print(f"q {q.nbytes // 1024} KiB, k and v {k.nbytes // 1024} KiB each")

heads = torch.arange(KV_HEADS)
print("\nkey head of each query head")
print("  repeat_interleave", heads.repeat_interleave(GROUP).tolist())
print("  repeat           ", heads.repeat(GROUP).tolist())

wanted = with_enable_gqa(q, k, v)
wanted_grad = torch.autograd.grad(wanted, (k, v), weights, retain_graph=True)
ways = (
    with_enable_gqa,
    with_expand,
    with_expand_flatten,
    with_repeat_interleave,
    with_repeat,
)
print("\n                     heads right   gradient of k, v   KiB made   KiB kept")
made, kept = {}, {}
for way in ways:
    name = way.__name__.removeprefix("with_")
    result = way(q, k, v)
    pairs = zip(result.unbind(1), wanted.unbind(1))
    right = sum(torch.allclose(got, want, atol=1e-5) for got, want in pairs)
    grad = torch.autograd.grad(result, (k, v), weights)
    same = all(torch.allclose(a, b, atol=1e-4) for a, b in zip(grad, wanted_grad))
    made[name] = new_bytes(way, q, k, v) // 1024
    kept[name] = kept_bytes(way, q, k, v) // 1024
    print(f"  {name:19} {right:6} of {HEADS} {'equal' if same else 'differs':>18}"
          f" {made[name]:10} {kept[name]:10}")

fig, ax = plt.subplots(figsize=(5.5, 2.6), layout="constrained")
at = torch.arange(len(made))
ax.barh(at - 0.2, list(made.values()), 0.4, color="#2a7fba", label="made")
ax.barh(at + 0.2, list(kept.values()), 0.4, color="#c8772e", label="kept for backward")
ax.set_yticks(at, made)
ax.invert_yaxis()
ax.set_xlabel("storage (KiB)")
fig.legend(loc="outside upper center", ncols=2, frameon=False)
plt.show()
