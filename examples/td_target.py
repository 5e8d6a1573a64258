"""Q-learning with a bootstrapped target, with and without `detach`.

The task is a slippery walk of seven states whose exact action values follow
from its rules, so each way of training is held against the right answer.
"""
import copy

import matplotlib.pyplot as plt
import torch
from torch import nn

torch.set_num_threads(1)  # tensors this small are faster on one thread
STATES, GAMMA, SLIP = 7, 0.9, 0.3
LEFT, RIGHT = 0, 1
PRIZE = {LEFT: 0.5, RIGHT: 1.0}  # for leaving the walk at that end


def move(state, direction):
    """Next state, reward and whether the walk is over, each of shape (n,)."""
    next_state = state + 2 * direction - 1
    done = (next_state < 0) | (next_state >= STATES)
    prize = torch.where(direction == RIGHT, PRIZE[RIGHT], PRIZE[LEFT])
    return next_state.clamp(0, STATES - 1), prize * done, done.float()


def exact_values():
    """Q*(state, action) of shape (STATES, 2), by value iteration."""
    state = torch.arange(STATES)
    outcomes = [move(state, torch.full_like(state, way)) for way in (LEFT, RIGHT)]
    q = torch.zeros(STATES, 2)
    for _ in range(300):
        best = q.max(dim=1).values
        left, right = (r + GAMMA * (1 - done) * best[s] for s, r, done in outcomes)
        wanted = torch.stack([left, right], dim=1)
        q = (1 - SLIP) * wanted + SLIP * wanted.flip(1)
    return q


def collect(count, generator):
    """State, action, reward, next state, done: `count` moves of a random player."""
    state = torch.randint(STATES, (count,), generator=generator)
    action = torch.randint(2, (count,), generator=generator)
    slips = torch.rand(count, generator=generator) < SLIP
    next_state, reward, done = move(state, torch.where(slips, 1 - action, action))
    return state, action, reward, next_state, done


def td_loss(net, target_net, batch, detach=True):
    """Mean squared TD error; `target_net` may be `net` itself."""
    state, action, reward, next_state, done = batch
    value = net(state).gather(1, action[:, None]).squeeze(1)
    target = reward + GAMMA * (1 - done) * target_net(next_state).max(dim=1).values
    if detach:
        target = target.detach()  # the target is data: only `value` is to move
    return nn.functional.mse_loss(value, target)


def train(transitions, detach=True, sync_every=0, updates=600, batch_size=512):
    """A trained table of action values and its weights after each update.

    With `sync_every`, targets come from a copy of the network that is refreshed
    every so many updates; with 0 they come from the network itself.
    """
    generator = torch.Generator().manual_seed(1)
    net = nn.Embedding(STATES, 2)  # any module from states to action values will do
    nn.init.zeros_(net.weight)
    target_net = copy.deepcopy(net).requires_grad_(False) if sync_every else net
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    history = []
    for update in range(updates):
        if sync_every and update % sync_every == 0:
            target_net.load_state_dict(net.state_dict())
        chosen = torch.randint(len(transitions[0]), (batch_size,), generator=generator)
        batch = [column[chosen] for column in transitions]
        loss = td_loss(net, target_net, batch, detach)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(net.weight.detach().clone())
    return net, torch.stack(history)


exact = exact_values()
transitions = collect(20_000, torch.Generator().manual_seed(0))

# One transition: which rows of the table does the gradient reach?
nothing = torch.zeros(1)
one = (torch.tensor([3]), torch.tensor([RIGHT]), nothing, torch.tensor([4]), nothing)
probe = nn.Embedding(STATES, 2)
nn.init.constant_(probe.weight, 1.0)
print("gradient of one transition from state 3 to state 4")
for detach in (True, False):
    probe.weight.grad = None
    td_loss(probe, probe, one, detach).backward()
    here, there = (round(probe.weight.grad[state].sum().item(), 2) for state in (3, 4))
    print(f"  detach={detach!s:5}  state 3: {here:5.2f}   state 4: {there:5.2f}")

print("\nafter 600 updates       loss   error of Q")
ways = {
    "without detach": dict(detach=False),
    "detach": dict(detach=True),
    "target network": dict(sync_every=10),
}
losses, curves = {}, {}
for name, options in ways.items():
    net, history = train(transitions, **options)
    curves[name] = (history - exact).square().mean(dim=(1, 2)).sqrt()
    losses[name] = td_loss(net, net, transitions).item()
    print(f"  {name:18} {losses[name]:9.4f} {curves[name][-1]:12.3f}")

fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
looks = [("#d1495b", "-"), ("#2a7fba", "-"), ("#2e8b57", "--")]
for (name, curve), (colour, style) in zip(curves.items(), looks):
    ax.plot(curve, label=name, color=colour, linestyle=style)
ax.set_xlabel("updates")
ax.set_ylabel("RMS error of Q (reward)")
ax.set_ylim(bottom=0)
ax.legend(frameon=False)
plt.show()
