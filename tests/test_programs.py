"""The programs of examples/: each runs as a reader would run it, and its functions keep what its page says of them."""

import contextlib
import functools
import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
import pytest
import torch
from matplotlib import colors
from torch import nn

ROOT = Path(__file__).parents[1]
PROGRAMS = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
PAGES = ROOT / "docs" / "programs"
SECONDS = 10  # of processor time: wall time says more about the other jobs of the machine
QUIET = {"MPLBACKEND": "agg", "PYTHONWARNINGS": "ignore:FigureCanvas"}  # no window, and no warning that there is none


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """As the programs ask for it: two threads that wait for each other are slow on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run_twice(name):
    """Run a program in two processes at once; return (status, output, errors, processor seconds) of each."""
    started = []
    for seed, threads in (("1", "1"), ("2", "2")):  # neither the order of sets nor the threads may show
        out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        environment = {**os.environ, **QUIET, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads}
        program = [sys.executable, str(ROOT / "examples" / f"{name}.py")]
        started.append((subprocess.Popen(program, stdout=out, stderr=err, env=environment, cwd=tempfile.gettempdir()), out, err))
    for process, out, err in started:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
            file.close()
        yield process.returncode, *texts, usage.ru_utime + usage.ru_stime


@functools.cache
def load(name):
    """The names that a program leaves behind, and its figures."""
    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.close("all")
    shown, pyplot.show = pyplot.show, lambda: None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            names = runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
        return names, [pyplot.figure(number) for number in pyplot.get_fignums()]
    finally:
        pyplot.show = shown


def names_of(name):
    return load(name)[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_runs_as_a_reader_runs_it(name):
    (status, output, errors, seconds), (status_again, output_again, errors_again, _) = run_twice(name)
    assert (status, status_again) == (0, 0), errors + errors_again
    assert errors == errors_again == ""
    assert output.strip() and output == output_again
    assert not re.search(r"0x[0-9a-f]{6}|\d\s?(ms|µs|us|s|seconds)\b", output), "an address or a time differs at each run"
    assert seconds < SECONDS


@pytest.mark.parametrize("name", PROGRAMS)
def test_has_a_page_that_shows_it_and_an_entry_in_the_index(name):
    page = (PAGES / f"{name}.md").read_text("utf-8")
    assert f":load: ../../examples/{name}.py\n" in page
    assert "\n## What to look at\n" in page and "```{doctest}" in page and "../operations/" in page
    index = (PAGES / "index.md").read_text("utf-8")
    assert f"({name}.md): " in index and f"\n{name}\n" in index


def test_no_page_without_a_program():
    assert sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "index") == PROGRAMS


def contrast(colour, ground):
    """Contrast ratio of two colours, as WCAG 2 defines it."""

    def luminance(c):
        parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colors.to_rgb(c)]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts))

    low, high = sorted((luminance(colour), luminance(ground)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", PROGRAMS)
def test_plots_have_labelled_axes_and_colours_for_light_and_dark(name):
    source = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    names, figures = load(name)
    assert len(figures) == source.count("plt.subplots(") == source.count("plt.show()")
    for figure in figures:
        width, height = figure.get_size_inches()
        assert width <= 6 and height <= 4
        for axes in figure.axes:
            assert axes.get_xlabel()
            bars = [patch for patch in axes.patches if patch.get_width()]
            # A bar's name stands at its axis; a curve's axis needs a label.
            assert axes.get_ylabel() or bars
            marks = [line.get_color() for line in axes.lines] + [bar.get_facecolor() for bar in bars]
            assert marks
            for colour in marks:
                assert contrast(colour, "white") >= 3 and contrast(colour, "#131416") >= 3, colour


# td_target


def test_td_exact_values_solve_the_bellman_equation_of_their_own_policy():
    p = names_of("td_target")
    states, gamma, slip, exact = p["STATES"], p["GAMMA"], p["SLIP"], p["exact"]
    policy = exact.argmax(dim=1)
    steps, rewards = torch.zeros(states, states), torch.zeros(states)
    for chance, ways in ((1 - slip, policy), (slip, 1 - policy)):
        for state, way in enumerate(ways.tolist()):
            after = state + (1 if way == p["RIGHT"] else -1)
            if 0 <= after < states:
                steps[state, after] += chance
            else:
                rewards[state] += chance * p["PRIZE"][way]
    values = torch.linalg.solve(torch.eye(states) - gamma * steps, rewards)
    assert torch.allclose(values, exact.max(dim=1).values, atol=1e-5)


def test_td_loss_moves_the_value_and_not_the_target():
    p = names_of("td_target")
    torch.manual_seed(3)
    net = nn.Embedding(p["STATES"], 2)
    state, action, reward, next_state, done = (column[:50] for column in p["transitions"])
    p["td_loss"](net, net, (state, action, reward, next_state, done)).backward()
    with torch.no_grad():
        error = net.weight[state, action] - reward - p["GAMMA"] * (1 - done) * net.weight[next_state].max(dim=1).values
    by_hand = torch.zeros_like(net.weight).index_put_((state, action), 2 * error / 50, accumulate=True)
    assert torch.allclose(net.weight.grad, by_hand, atol=1e-6)


def test_td_values_are_right_only_with_a_constant_target():
    p = names_of("td_target")
    ends = {name: curve[-1].item() for name, curve in p["curves"].items()}
    assert ends["detach"] < 0.05 and ends["target network"] < 0.05 and ends["without detach"] > 0.1
    assert p["losses"]["without detach"] < p["losses"]["detach"]


# gan_step


@pytest.mark.parametrize("seed", range(3))
def test_gan_steps_leave_the_gradients_that_the_page_tells(seed):
    p = names_of("gan_step")
    torch.manual_seed(seed)
    real, noise = p["sample"](p["BATCH"])
    G, D, *_ = p["make_gan"]()
    loss_D = p["criterion"](D(real), p["ones"]) + p["criterion"](D(G(noise)), p["zeros"])
    loss_G = p["criterion"](D(G(noise)), p["ones"])
    wanted = p["gradient_of"](loss_G, G), p["gradient_of"](loss_D, D)
    loss_G, loss_D = (p["criterion"](D(G(noise)), p[label]) for label in ("ones", "zeros"))
    foreign = p["gradient_of"](loss_D, G), p["gradient_of"](loss_G, D)
    for got, own in zip(p["step_gradients"](p["right_step"], real, noise), wanted):
        assert torch.allclose(got, own, atol=1e-6)
    for got, own, other in zip(p["step_gradients"](p["silent_step"], real, noise), wanted, foreign):
        assert torch.allclose(got, own + other, atol=1e-6) and not torch.allclose(got, own, atol=1e-3)


def test_right_gan_step_spares_the_generator_the_walk_of_the_other_loss():
    p = names_of("gan_step")
    G, D, opt_G, opt_D = p["make_gan"]()
    seen = []
    opt_D.register_step_pre_hook(lambda *_: seen.extend(weight.grad for weight in G.parameters()))
    p["right_step"](G, D, opt_G, opt_D, p["real"], p["noise"])
    assert seen and all(gradient is None for gradient in seen)


def test_gan_steps_move_both_networks():
    p = names_of("gan_step")
    for step in (p["right_step"], p["silent_step"]):
        gan = p["make_gan"]()
        before = [weight.clone() for net in gan[:2] for weight in net.parameters()]
        step(*gan, p["real"], p["noise"])
        after = [weight for net in gan[:2] for weight in net.parameters()]
        assert not any(torch.equal(a, b) for a, b in zip(before, after))


def test_gan_learns_in_the_right_order_alone():
    p = names_of("gan_step")
    torch.manual_seed(5)
    for step, learns in ((p["right_step"], True), (p["silent_step"], False)):
        means, spreads = p["train"](step, steps=300)
        assert (abs(means[-1] - 3.0) < 0.5 and 0.2 < spreads[-1] < 1.2) == learns


# shared_trunk


def test_trunk_walks_hold_and_free_what_the_page_tells():
    p = names_of("shared_trunk")
    (_, retained_work, retained), (_, summed_work, summed), (_, listed_work, listed) = (p["run"](way) for way in p["ways"])
    assert retained[0] == retained[1] == retained[2] == summed[0] == listed[0] > retained[3] > 0
    assert summed[1] == listed[1] == retained[4] == 0
    assert summed_work == listed_work
    # Backward of a Linear layer: two products for the weights and the inputs, the first layer's inputs need none.
    rows, width, features = p["BATCH"], p["WIDTH"], p["FEATURES"]
    trunk = 2 * rows * width * (features + 4 * width) / 1e6
    heads = 2 * 2 * rows * width * (1 + 5 + 2) / 1e6
    assert summed_work == pytest.approx(trunk + heads) and retained_work == pytest.approx(3 * trunk + heads)


def test_trunk_gradients_are_those_of_a_plain_sum():
    p = names_of("shared_trunk")
    wanted = torch.autograd.grad(sum(p["losses"]()), p["model"].parameters())
    for way in p["ways"]:
        for got, grad in zip(p["run"](way)[0], wanted):
            assert torch.allclose(got, grad, rtol=1e-4, atol=1e-6)


# tbptt


def full_gradient(p, model, series):
    """Backpropagation through every step, without the program's own loop."""
    state, loss = torch.zeros(p["BATCH"], p["HIDDEN"]), 0.0
    for value, following in zip(series[:-1], series[1:]):
        forecast, state = model(value, state)
        loss = loss + (forecast - following).square().mean()
    return torch.cat([grad.flatten() for grad in torch.autograd.grad(loss, model.parameters())])


def test_tbptt_with_one_window_is_the_whole_gradient():
    p = names_of("tbptt")
    torch.manual_seed(1)
    model, series = p["Forecaster"](), p["make_series"](31)
    wanted = full_gradient(p, model, series)
    assert torch.allclose(p["gradient"](model, series, 30), wanted, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(p["gradient"](model, series, 5), wanted, rtol=1e-2, atol=1e-3)
    p["accumulate"](model, series, 5, detach=False)  # slower and heavier, and the same as one window
    kept = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    assert torch.allclose(kept, wanted, rtol=1e-4, atol=1e-5)


def test_tbptt_memory_is_bounded_by_the_window_only_when_detached():
    p = names_of("tbptt")
    torch.manual_seed(1)
    model, series = p["Forecaster"](), p["make_series"](41)
    cut, carried = (p["accumulate"](model, series, 10, detach) for detach in (True, False))
    assert cut[:10] == cut[10:20] == cut[30:] == carried[:10]
    first = cut[1] - cut[0]
    # A little less where a window's loss goes; the history of the state stays.
    assert all(0.9 * first < after - before <= first for before, after in zip(carried, carried[1:]))


def test_tbptt_learns_and_does_not_move_weights_while_it_weighs():
    p = names_of("tbptt")
    torch.manual_seed(1)
    model, series = p["Forecaster"](), p["make_series"](601)
    before = [weight.clone() for weight in model.parameters()]
    p["accumulate"](model, series[:41], 10)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
    losses = p["train"](model, series)
    assert losses[-1] < losses[0] / 5


# count_parameters


def test_resnet18_is_the_real_one():
    p = names_of("count_parameters")
    model = p["ResNet18"]()
    assert p["count"](model) == {"trainable": 11_689_512, "frozen": 0, "buffers": 9_620, "bytes": 4 * 11_689_512 + 4 * 9_600 + 8 * 20}
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert len(shapes) == 122
    assert shapes["conv1.weight"] == (64, 3, 7, 7) and shapes["layer4.0.downsample.0.weight"] == (512, 256, 1, 1)
    assert model.eval()(torch.zeros(2, 3, 64, 64)).shape == (2, 1000)


def test_count_sees_frozen_tied_and_lazy_weights():
    p = names_of("count_parameters")
    tied = p["TinyLanguageModel"](words=7, width=2)
    assert p["count"](tied)["trainable"] == 7 * 2 + sum(w.numel() for w in tied.body.parameters())
    tied.embed.requires_grad_(False)
    assert p["count"](tied)["frozen"] == 14
    lazy = nn.Sequential(nn.Linear(2, 2), nn.LazyLinear(3))
    with pytest.raises(ValueError, match=re.escape("1.weight, 1.bias")):
        p["count"](lazy)
    lazy(torch.ones(1, 2))
    assert p["count"](lazy)["trainable"] == 6 + 9


def test_bytes_by_dtype_add_up():
    p = names_of("count_parameters")
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to(torch.float64)
    sizes = p["bytes_by_dtype"](model)
    assert sizes == {torch.float64: 8 * (8 + 4 + 4), torch.int64: 8}
    assert sum(sizes.values()) == p["count"](model)["bytes"]


# grouped_query_attention


def test_attention_of_each_head_by_hand():
    p = names_of("grouped_query_attention")
    torch.manual_seed(2)
    q, k, v = (torch.randn(p["BATCH"], heads, 5, 4) for heads in (p["HEADS"], p["KV_HEADS"], p["KV_HEADS"]))
    wanted = torch.empty_like(q)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for head in range(p["HEADS"]):
        key, value = k[:, head // p["GROUP"]], v[:, head // p["GROUP"]]
        scores = (q[:, head] @ key.mT / 2).masked_fill(hidden, float("-inf"))
        wanted[:, head] = scores.softmax(dim=-1) @ value
    for way in p["ways"]:
        right = torch.allclose(way(q, k, v), wanted, atol=1e-5)
        assert right == (way.__name__ != "with_repeat"), way.__name__


def test_new_storage_counts_copies_and_not_views():
    p = names_of("grouped_query_attention")
    x = torch.ones(100)
    for made, function in (
        (0, lambda: x.view(10, 10).T),
        (0, lambda: x.expand(5, 100)),
        (0, lambda: x.detach().add_(0)),
        (400, lambda: x + 1),
        (2000, lambda: x.repeat(5)),
        (2000, lambda: x.expand(5, 100).reshape(-1)),
    ):
        with p["NewStorage"]() as counter:
            function()
        assert counter.bytes == made


# beam_search


def greedy(p, model, state, context):
    """The most probable word at each step, for one prompt."""
    word, sentence = p["BEGIN"], []
    for _ in range(p["STEPS"]):
        log_probs, state = model(torch.tensor([word]), state, context)
        word = p["END"] if sentence and sentence[-1] == p["END"] else log_probs.argmax().item()
        sentence.append(word)
    return sentence


def test_probabilities_of_all_sentences_add_up_to_one():
    totals = names_of("beam_search")["all_scores"].exp().sum(dim=1)
    assert torch.allclose(totals, torch.ones_like(totals), atol=1e-4)


def test_one_beam_is_greedy_and_enough_beams_are_exhaustive():
    p = names_of("beam_search")
    model, state, context = p["model"], p["state"][:8], p["context"][:8]
    words, _ = p["beam_search"](model, state, context, 1)
    with torch.no_grad():
        assert words[:, 0].tolist() == [greedy(p, model, s[None], c[None]) for s, c in zip(state, context)]
    beams = p["WORDS"] ** (p["STEPS"] - 1)
    words, scores = p["beam_search"](model, state, context, beams)
    assert torch.allclose(scores, p["all_scores"][:8].topk(beams, dim=1).values, atol=1e-4)
    assert torch.equal(words[:, 0], p["best_words"][:8])


def test_beams_are_distinct_sorted_true_and_end_once():
    p = names_of("beam_search")
    words, scores = p["beam_search"](p["model"], p["state"], p["context"], 12)
    assert (scores.diff(dim=1) <= 0).all()
    for sentences, found, state, context in zip(words, scores, p["state"], p["context"]):
        assert len(sentences.unique(dim=0)) == 12
        assert torch.allclose(p["score"](p["model"], state, context, sentences), found, atol=1e-4)
        ended = (sentences == p["END"]).cummax(dim=1).values
        assert (sentences[ended] == p["END"]).all()


def test_each_mistake_makes_scores_untrue():
    p = names_of("beam_search")
    assert p["judge"](*p["beam_search"](p["model"], p["state"], p["context"], 8))[2] == 1.0
    for mistake in p["mistakes"].values():
        assert p["judge"](*p["beam_search"](p["model"], p["state"], p["context"], 8, **mistake))[2] < 0.5
