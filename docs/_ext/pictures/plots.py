"""Say in words what a matplotlib figure shows, from the figure's own axes, lines and bars."""

MOST = 8  # series or bars that are told one by one


def describe(figure):
    """Give a text alternative for `figure` (matplotlib.figure.Figure): a sentence for each axes and series."""
    return " ".join(_axes(axes) for axes in figure.axes if axes.get_visible())


def _axes(axes):
    sentences = []
    if axes.get_title():
        sentences.append(f"{axes.get_title()}.")
    names = [text for text in (axes.get_ylabel(), axes.get_xlabel()) if text]
    if names:
        sentences.append(" against ".join(_one_line(name) for name in names).join(("Plot of ", ".")))
    told = [*_lines(axes), *_bars(axes), *_points(axes)]
    sentences += told[:MOST]
    if len(told) > MOST:
        sentences.append(f"{len(told) - MOST} more.")
    return " ".join(sentences) or "Plot."


def _lines(axes):
    named = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]
    for line in named:
        x, y = [float(v) for v in line.get_xdata()], [float(v) for v in line.get_ydata()]
        name = line.get_label()
        who = "A line" if str(name).startswith("_") else str(name)
        yield f"{who}: {_number(y[0])} at {_number(x[0])}, {_number(y[-1])} at {_number(x[-1])}; lowest {_number(min(y))}, highest {_number(max(y))}."


def _bars(axes):
    for group in axes.containers:
        if not getattr(group, "patches", None):
            continue
        across = getattr(group, "orientation", "vertical") == "horizontal"
        ticks = {round(at, 6): label.get_text() for at, label in zip(*((axes.get_yticks(), axes.get_yticklabels()) if across else (axes.get_xticks(), axes.get_xticklabels())))}
        parts = []
        for bar in group.patches:
            middle = bar.get_y() + bar.get_height() / 2 if across else bar.get_x() + bar.get_width() / 2
            near = min(ticks, key=lambda at: abs(at - middle), default=None)
            parts.append(f"{_one_line(ticks[near]) if near is not None else '?'} {_number(bar.get_width() if across else bar.get_height())}")
        label = group.get_label()
        yield ("" if str(label).startswith("_") else f"{label}: ") + ", ".join(parts[: 2 * MOST]) + "."


def _points(axes):
    for group in axes.collections:
        count = len(group.get_offsets()) if hasattr(group, "get_offsets") else 0
        if count > 1:
            label = group.get_label()
            yield f"{'Points' if str(label).startswith('_') else label}: {count} points."


def _number(value):
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _one_line(text):
    return " ".join(str(text).split())
