"""Write what was measured: the figures, a small table for a page, and a plot."""

import json
import statistics
from collections import Counter
from dataclasses import asdict

from _ext.bench.measure import Figures

ROWS = [  # a row of the table: mode -> how a reader knows it
    ("MyST-NB off", "nothing run, MyST-NB and Furo as they come"),
    ("nothing run", "nothing run, the site only drawn"),
    ("import torch", "one import of torch"),
    ("all code, warm", "all code once, in one warm process"),
    ("cold", "**this build, cold**"),
    ("edit", "this build, one page edited"),
    ("nothing run, edit", "nothing run, one page edited"),
    ("unchanged", "this build, nothing changed"),
    ("MyST-NB force", "MyST-NB `force`, two jobs"),
    ("MyST-NB cache", "MyST-NB `cache`, empty, two jobs"),
]


LINES = [  # a line of the plot
    ("MyST-NB force", "MyST-NB force", "s:"),
    ("MyST-NB off", "nothing run, as they come", "v:"),
    ("cold", "this build, cold", "o-"),
    ("nothing run", "nothing run", "^--"),
]


def median(figures, what="wall"):
    """The median of one figure over the rounds."""
    return statistics.median(getattr(one, what) for one in figures)


def write(folder, results, facts, about):
    """Write builds.json, builds.md and builds.svg; `results` is size -> mode -> list of Figures, `facts` CPU seconds by name."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {size: {mode: [_kept(one) for one in figures] for mode, figures in modes.items()} for size, modes in results.items()}
    (folder / "builds.json").write_text(json.dumps({"about": about, "facts": facts, "results": kept}, indent=1) + "\n")
    draw(folder)


def draw(folder):
    """Write builds.md and builds.svg again, from builds.json alone."""
    told = json.loads((folder / "builds.json").read_text())
    results = {
        int(size): {mode: [Figures(status=0, **one) for one in figures] for mode, figures in modes.items()}
        for size, modes in told["results"].items()
    }
    (folder / "builds.md").write_text("\n".join([*_sentence(results), "", *_table(results), "", *_ratios(results), "", *_about(told["facts"], told["about"]), ""]))
    _plot(folder / "builds.svg", results)


def _kept(figures):
    return {name: round(value, 3) for name, value in asdict(figures).items() if name not in ("printed", "status")}


def _cell(figures):
    walls = [one.wall for one in figures]
    spread = f" ({min(walls):.2f}–{max(walls):.2f})" if len(walls) > 1 else ""
    return f"{statistics.median(walls):.2f}{spread}"


LEAST = "cold, of (nothing run + all code + one import)"


def _sentence(results):
    """Say the most important figures, in the words with which the page begins."""
    size = max(results)
    seconds, ratio = median(results[size]["cold"]), ratios(results)[LEAST][size]
    yield f"A site of {size} pages, each of which runs, is built from nothing in {seconds:.1f} s:"
    yield f"{ratio:.1f} times what drawing the pages, importing torch once and running their code once take."


def _table(results):
    sizes = sorted(results)
    yield "| seconds, median (lowest–highest) | " + " | ".join(f"{size} pages" for size in sizes) + " |"
    yield "| --- |" + " --- |" * len(sizes)
    for mode, words in ROWS:
        if any(mode in results[size] for size in sizes):
            yield f"| {words} | " + " | ".join(_cell(results[size][mode]) if mode in results[size] else "–" for size in sizes) + " |"


def ratios(results):
    """Compare, size by size: a dictionary of name -> {size: value}."""
    found = {}
    for size, modes in results.items():
        cells = median(modes["all code, warm"])
        code = cells + median(modes["import torch"])
        if "MyST-NB off" in modes:
            found.setdefault("cold, of (nothing run as they come + all code + one import)", {})[size] = median(modes["cold"]) / (
                median(modes["MyST-NB off"]) + code
            )
        found.setdefault(LEAST, {})[size] = median(modes["cold"]) / (median(modes["nothing run"]) + code)
        beyond = median(modes["cold"], "cpu") - median(modes["nothing run"], "cpu") - median(modes["import torch"]) - cells
        found.setdefault("CPU milliseconds a page beyond its cells", {})[size] = 1000 * beyond / size
        found.setdefault("edit, of an edit with nothing run", {})[size] = median(modes["edit"]) / median(modes["nothing run, edit"])
        stock = [median(modes[mode]) for mode in ("MyST-NB force", "MyST-NB cache") if mode in modes]
        if stock:
            found.setdefault("times faster than MyST-NB's fastest", {})[size] = min(stock) / median(modes["cold"])
        found.setdefault("peak memory, MB, all processes", {})[size] = modes["memory"][0].memory
        found.setdefault("peak memory, MB, one session", {})[size] = modes["memory"][0].largest
    return found


def _ratios(results):
    sizes = sorted(results)
    yield "| compared | " + " | ".join(f"{size} pages" for size in sizes) + " |"
    yield "| --- |" + " --- |" * len(sizes)
    for name, values in ratios(results).items():
        digits = 0 if "milliseconds" in name or "MB" in name else 2
        yield f"| {name} | " + " | ".join(f"{values[size]:.{digits}f}" if size in values else "–" for size in sizes) + " |"


def _about(facts, about):
    yield f"The facts of {facts['operations']} operations and of the page on views: {facts['cold']:.1f} s of CPU time measured anew,"
    yield f"{facts['warm']:.2f} s when they are known.\n"
    yield f"Measured with `{about['command']}` on {about['date']}: {about['cores']} cores, Python {about['python']}, torch {about['torch']},"
    yield f"Sphinx {about['sphinx']}, MyST-NB {about['myst-nb']}; {about['rounds']} rounds, {about['kinds of pages']} pages of this site over and over."
    if about["aborted"]:
        times = Counter(about["aborted"])
        told = (f"{what} {'once' if count == 1 else f'{count} times'}" for what, count in times.items())
        yield f"MyST-NB aborted, and was started again: {', '.join(told)}."


def _plot(path, results):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bench"
    import matplotlib.pyplot as plt

    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, axes = plt.subplots(figsize=(6, 3.4))
    sizes = sorted(results)
    for mode, label, style in LINES:
        if have := [size for size in sizes if mode in results[size]]:
            axes.plot(have, [median(results[size][mode]) for size in have], style, label=label)
    axes.set(xlabel="pages", ylabel="seconds", xscale="log", yscale="log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
