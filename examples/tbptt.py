"""Truncated backpropagation through time: a long series, read in windows.

The hidden state goes from window to window.
Its history must not: with `detach` the graph ends at the window, without it the
graph grows with every step that was ever taken.
"""
import weakref
from textwrap import shorten

import matplotlib.pyplot as plt
import torch
from torch import nn

torch.set_num_threads(1)  # tensors this small are faster on one thread
HIDDEN, BATCH, WINDOW = 24, 8, 20


def make_series(steps):
    """Two waves of unlike period and a little noise, shape (steps, BATCH, 1)."""
    at = torch.arange(steps)[:, None] + 50.0 * torch.rand(BATCH)
    waves = torch.sin(at / 5) + 0.5 * torch.sin(at / 13)
    return (waves + 0.05 * torch.randn(steps, BATCH))[..., None]


class Forecaster(nn.Module):
    """Says the next value of each series from the present one and its state."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(1, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, value, state):
        state = self.cell(value, state)
        return self.out(state), state


def train(model, series, window=WINDOW, lr=0.01):
    """Truncated backpropagation: the loss of each window."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    state = torch.zeros(BATCH, HIDDEN)
    losses = []
    for start in range(0, len(series) - window, window):
        state = state.detach()  # the values go on, their history ends here
        loss = 0.0
        for step in range(start, start + window):
            forecast, state = model(series[step], state)
            loss = loss + nn.functional.mse_loss(forecast, series[step + 1]) / window
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Saved:
    """A tensor that a graph keeps for its backward pass."""

    def __init__(self, tensor):
        self.tensor = tensor.detach()  # or an operation's result would keep its own graph


def accumulate(model, series, window, detach=True):
    """Gradients of the whole series, window by window, at fixed weights.

    Returns the KiB that the graph holds after each step, weights and data not counted.
    """
    model.zero_grad()
    alive = weakref.WeakSet()
    other = (series, *model.parameters())  # there without a graph
    not_counted = {tensor.untyped_storage().data_ptr() for tensor in other}

    def pack(tensor):
        saved = Saved(tensor)
        alive.add(saved)
        return saved

    state, loss, memory = torch.zeros(BATCH, HIDDEN), 0.0, []
    for step in range(len(series) - 1):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
            forecast, state = model(series[step], state)
            loss = loss + nn.functional.mse_loss(forecast, series[step + 1])
        storages = [saved.tensor.untyped_storage() for saved in alive]
        sizes = {storage.data_ptr(): storage.nbytes() for storage in storages}
        memory.append(sum(sizes[key] for key in sizes.keys() - not_counted) / 1024)
        if (step + 1) % window == 0:
            loss.backward(retain_graph=not detach)
            loss = 0.0
            if detach:
                state = state.detach()
    return memory


def gradient(model, series, window):
    """Gradient of the whole series as one vector, truncated at each window."""
    accumulate(model, series, window)
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


def error_without_detach(model, series, retain_graph):
    """What training raises if the second window gets the state with its history."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    state, loss = torch.zeros(BATCH, HIDDEN), 0.0
    for step in range(2 * WINDOW):
        forecast, state = model(series[step], state)
        loss = loss + nn.functional.mse_loss(forecast, series[step + 1])
        if (step + 1) % WINDOW == 0:
            try:
                loss.backward(retain_graph=retain_graph)
            except RuntimeError as error:
                return error
            optimizer.step()
            loss = 0.0


torch.manual_seed(0)
series = make_series(200 + 1)
model = Forecaster()

print("state carried to the next window without detach")
for retain_graph in (False, True):
    error = error_without_detach(Forecaster(), series, retain_graph)
    print(f"  retain_graph={retain_graph}: {shorten(str(error), 72, placeholder=' ...')}")

carried = accumulate(model, series, WINDOW, detach=False)
cut = accumulate(model, series, WINDOW)
print("\nKiB held by the graph     at step 20    at step 200")
print(f"  with its history {carried[19]:18.0f} {carried[199]:14.0f}  (no weight moved)")
print(f"  detached {cut[19]:26.0f} {cut[199]:14.0f}")

losses = train(model, make_series(2000 + 1))
test = make_series(200 + 1)
with torch.no_grad():
    state, forecasts = torch.zeros(BATCH, HIDDEN), []
    for value in test[:-1]:
        forecast, state = model(value, state)
        forecasts.append(forecast)
error = nn.functional.mse_loss(torch.stack(forecasts[WINDOW:]), test[WINDOW + 1:])
naive = nn.functional.mse_loss(test[WINDOW:-1], test[WINDOW + 1:])
print(f"\nsquared error on a new series: {error:.3f}, of the last value: {naive:.3f}")

print("\nwindow    cosine with the gradient through all 200 steps")
whole = gradient(model, test, 200)
for window in (1, 5, 20, 100, 200):
    cut_off = gradient(model, test, window)
    cosine = nn.functional.cosine_similarity(cut_off, whole, dim=0)
    print(f"{window:6} {cosine:9.2f}")

fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.plot(range(1, 201), carried, color="#d1495b", label="state carried with its history")
ax.plot(range(1, 201), cut, color="#2a7fba", label="state detached at each window")
ax.set_xlabel("steps taken")
ax.set_ylabel("memory held by the graph (KiB)")
ax.legend(frameon=False)
plt.show()
