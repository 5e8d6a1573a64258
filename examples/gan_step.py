"""One GAN step in the right order, and two wrong orders.

A generator learns to draw numbers from a normal distribution around 3.
Of the two wrong orders one raises, the other trains on wrong gradients in silence.
"""
from textwrap import shorten

import matplotlib.pyplot as plt
import torch
from torch import nn

torch.set_num_threads(1)  # tensors this small are faster on one thread
NOISE, BATCH = 2, 128
criterion = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)


def make_gan(seed=0, lr=2e-3):
    """Generator, discriminator and an optimizer for each."""
    torch.manual_seed(seed)

    def network(inputs):
        return nn.Sequential(
            nn.Linear(inputs, 32), nn.ReLU(),
            nn.Linear(32, 32), nn.ReLU(),
            nn.Linear(32, 1),
        )

    def optimizer(net):
        return torch.optim.Adam(net.parameters(), lr=lr, betas=(0.0, 0.99))

    G, D = network(NOISE), network(1)
    return G, D, optimizer(G), optimizer(D)


def right_step(G, D, opt_G, opt_D, real, noise):
    fake = G(noise)

    loss_D = criterion(D(real), ones) + criterion(D(fake.detach()), zeros)
    opt_D.zero_grad()
    loss_D.backward()  # detach: stops at the fakes, G is not touched
    opt_D.step()

    loss_G = criterion(D(fake), ones)  # D is run again, with its new weights
    opt_G.zero_grad()
    loss_G.backward()
    opt_G.step()


def raising_step(G, D, opt_G, opt_D, real, noise):
    fake = G(noise)
    loss_D = criterion(D(real), ones) + criterion(D(fake.detach()), zeros)
    loss_G = criterion(D(fake), ones)

    opt_D.zero_grad()
    loss_D.backward()
    opt_D.step()  # writes the weights that loss_G has saved

    opt_G.zero_grad()
    loss_G.backward()
    opt_G.step()


def silent_step(G, D, opt_G, opt_D, real, noise):
    fake = G(noise)
    logits = D(fake)
    loss_D = criterion(D(real), ones) + criterion(logits, zeros)
    loss_G = criterion(logits, ones)

    opt_D.zero_grad()
    opt_G.zero_grad()
    loss_D.backward(retain_graph=True)  # reaches G too
    loss_G.backward()  # reaches D too
    opt_D.step()
    opt_G.step()


def sample(count):
    """Real numbers and noise for one step."""
    return 3.0 + 0.6 * torch.randn(count, 1), torch.randn(count, NOISE)


def gradient_of(loss, net):
    """The gradient of `loss` for the weights of `net` alone, as one vector."""
    grads = torch.autograd.grad(loss, net.parameters())
    return torch.cat([grad.flatten() for grad in grads])


def step_gradients(step, real, noise):
    """What `step` has left in the .grad of G and D when it calls their optimizers."""
    G, D, opt_G, opt_D = make_gan(lr=0.0)  # no weight moves between the two
    seen = {}
    for net, opt in ((G, opt_G), (D, opt_D)):
        def note(*_, net=net):
            seen[net] = torch.cat([p.grad.flatten() for p in net.parameters()])
        opt.register_step_pre_hook(note)
    step(G, D, opt_G, opt_D, real, noise)
    return seen[G], seen[D]


def train(step, steps=600):
    """Mean and standard deviation of 1000 generated numbers after each 10th step."""
    gan = make_gan()
    spot = torch.randn(1000, NOISE)
    means, spreads = [], []
    for done in range(steps):
        step(*gan, *sample(BATCH))
        if done % 10 == 9:
            with torch.no_grad():
                fake = gan[0](spot)
            means.append(fake.mean())
            spreads.append(fake.std())
    return torch.stack(means), torch.stack(spreads)


torch.manual_seed(0)
real, noise = sample(BATCH)

print("D steps between the forward and the backward of G's loss:")
try:
    raising_step(*make_gan(), real, noise)
except RuntimeError as error:
    print(f"  {type(error).__name__}: {shorten(str(error), 72, placeholder=' ...')}")

# What each network is to follow, and what it must not.
G, D, _, _ = make_gan()
wanted_G = gradient_of(criterion(D(G(noise)), ones), G)
wanted_D = gradient_of(criterion(D(real), ones) + criterion(D(G(noise)), zeros), D)
foreign_G = gradient_of(criterion(D(G(noise)), zeros), G)  # D's loss, felt by G
foreign_D = gradient_of(criterion(D(G(noise)), ones), D)  # G's loss, felt by D

print("\ngradient used, against the gradient wanted     relative error    cosine")
for step in (right_step, silent_step):
    got_G, got_D = step_gradients(step, real, noise)
    for name, got, wanted in (("G", got_G, wanted_G), ("D", got_D, wanted_D)):
        error = (got - wanted).norm() / wanted.norm()
        cosine = nn.functional.cosine_similarity(got, wanted, dim=0)
        print(f"  {step.__name__:12} {name} {error:42.2f} {cosine:9.2f}")
both = (got_G, wanted_G + foreign_G), (got_D, wanted_D + foreign_D)
print("silent_step used the gradient of both losses in G and in D:",
      all(torch.allclose(got, total, atol=1e-6) for got, total in both))

print("\nafter 600 steps     mean   std    (real: 3.0, 0.6)")
fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
for step, colour in ((right_step, "#2a7fba"), (silent_step, "#d1495b")):
    means, spreads = train(step)
    print(f"  {step.__name__:14} {means[-1]:7.1f} {spreads[-1]:5.1f}")
    at = torch.arange(1, len(means) + 1) * 10
    ax.plot(at, means, color=colour, label=step.__name__)
    low, high = means - spreads, means + spreads
    ax.fill_between(at, low, high, color=colour, alpha=0.3, linewidth=0)
ax.axhline(3.0, color="gray", linestyle="--", label="mean of the real numbers")
ax.set_xlabel("steps")
ax.set_ylabel("generated number\n(mean ± standard deviation)")
ax.legend(frameon=False)
plt.show()
