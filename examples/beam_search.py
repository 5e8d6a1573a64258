"""Beam search over a tiny language model, held against exhaustive search.

With six words and five steps every sentence can be scored, so the best one is
known, and greedy and beam search are judged by it.
"""
import itertools

import matplotlib.pyplot as plt
import torch
from torch import nn

torch.set_num_threads(1)  # tensors this small are faster on one thread
WORDS, STEPS, PROMPTS, HIDDEN = 6, 5, 40, 16
END, BEGIN = 0, 1


class TinyLanguageModel(nn.Module):
    """Scores the next word from the last one, a state and a fixed context."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, HIDDEN)
        self.cell = nn.GRUCell(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, WORDS)

    def forward(self, word, state, context):
        """Log-probabilities (n, WORDS) and the new state (n, HIDDEN).

        word is (n,), state (n, HIDDEN), context (..., HIDDEN) with n rows in all.
        """
        given = self.embed(word).view_as(context) + context
        state = self.cell(given.flatten(0, -2), state)
        return self.out(3.0 * state).log_softmax(dim=-1), state


def only_end_after_end(log_probs, finished):
    """A finished sentence goes on with END at no cost, and with nothing else."""
    going_on = torch.full((WORDS,), float("-inf"))
    going_on[END] = 0.0
    return torch.where(finished[:, None], going_on, log_probs)


def spread(state, beams):
    """One row a beam, the beams of a prompt side by side: 0 0 0 1 1 1."""
    return state.repeat_interleave(beams, dim=0)


def follow(state, row):
    """The states of the winners; a row may win twice or not at all."""
    return state.index_select(0, row)


@torch.no_grad()
def beam_search(model, state, context, beams, spread=spread, follow=follow):
    """The `beams` best sentences found for each prompt, best first.

    state and context are (prompts, HIDDEN).
    Returns words (prompts, beams, STEPS) and log-probabilities (prompts, beams).
    """
    prompts = len(state)
    state = spread(state, beams)
    context = context[:, None].expand(-1, beams, -1)  # the same for all beams: no copy
    first_row = torch.arange(prompts)[:, None] * beams

    words = torch.full((prompts * beams, 1), BEGIN)
    finished = torch.zeros(prompts * beams, dtype=torch.bool)
    # The beams of a prompt start equal: only the first one counts in the first step.
    scores = torch.full((prompts, beams), float("-inf"))
    scores[:, 0] = 0.0

    for _ in range(STEPS):
        log_probs, state = model(words[:, -1], state, context)
        log_probs = only_end_after_end(log_probs, finished)
        candidates = scores[:, :, None] + log_probs.view(prompts, beams, WORDS)
        scores, best = candidates.flatten(1).topk(beams, dim=1)
        row = (first_row + best // WORDS).flatten()  # the beam each winner comes from
        word = (best % WORDS).flatten()
        state = follow(state, row)
        words = torch.cat([words.index_select(0, row), word[:, None]], dim=1)
        finished = finished.index_select(0, row) | (word == END)
    return words[:, 1:].view(prompts, beams, STEPS), scores


@torch.no_grad()
def score(model, state, context, sentences):
    """Log-probability of each of the sentences (n, STEPS) for one prompt: (n,)."""
    count = len(sentences)
    state, context = state.expand(count, -1), context.expand(count, -1)
    word = torch.full((count,), BEGIN)
    total, finished = torch.zeros(count), torch.zeros(count, dtype=torch.bool)
    for step in range(STEPS):
        log_probs, state = model(word, state, context)
        word = sentences[:, step]
        log_probs = only_end_after_end(log_probs, finished)
        total += log_probs.gather(1, word[:, None]).squeeze(1)
        finished = finished | (word == END)
    return total


torch.manual_seed(0)
model = TinyLanguageModel()
state, context = torch.randn(PROMPTS, HIDDEN), torch.randn(PROMPTS, HIDDEN)

every = torch.tensor(list(itertools.product(range(WORDS), repeat=STEPS)))
all_scores = torch.stack([score(model, s, c, every) for s, c in zip(state, context)])
best_scores, best = all_scores.max(dim=1)
best_words = every[best]
print(f"{len(every):,} sentences a prompt, {PROMPTS} prompts")


def judge(words, scores):
    """Best sentences found, mean log-probability lost, share of true scores."""
    rows = zip(state, context, words)
    true_scores = torch.stack([score(model, *row) for row in rows])
    found = (words[:, 0] == best_words).all(dim=1).sum().item()
    lost = (best_scores - true_scores[:, 0]).mean().item()
    true = torch.isclose(scores, true_scores, atol=1e-4).float().mean().item()
    return found, lost, true


print("\nbeams    best sentence found    log-probability lost    scores that are true")
lost = {}
for beams in (1, 2, 3, 4, 6, 8, 12, 16):
    found, lost[beams], true = judge(*beam_search(model, state, context, beams))
    print(f"{beams:5} {found:15} of {PROMPTS} {lost[beams]:23.3f} {true:23.0%}")

print("\nthe same with 8 beams and one mistake")
mistakes = {
    "repeat for repeat_interleave": {"spread": lambda state, n: state.repeat(n, 1)},
    "states not reordered": {"follow": lambda state, row: state},
}
for name, mistake in mistakes.items():
    found, gap, true = judge(*beam_search(model, state, context, 8, **mistake))
    print(f"  {name:28} {found:3} of {PROMPTS} found,"
          f" {gap:.3f} lost, {true:.0%} of scores true")

print("\nstorage for 8 beams (KiB)")
copied, viewed = spread(state, 8), context[:, None].expand(-1, 8, -1)
print(f"  state, repeat_interleave {copied.untyped_storage().nbytes() / 1024:5.1f}")
print(f"  context, expand          {viewed.untyped_storage().nbytes() / 1024:5.1f}")

fig, ax = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
ax.plot(lost.keys(), lost.values(), "o-", color="#2a7fba")
ax.axhline(0.0, color="gray", linestyle="--")
ax.annotate("exhaustive search", (1, 0), (0, 4), textcoords="offset points")
ax.annotate("greedy", (1, lost[1]), (8, 0), textcoords="offset points", va="center")
ax.set_xlabel("beams")
ax.set_ylabel("mean log-probability lost (nats)")
plt.show()
