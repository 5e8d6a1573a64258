"""The autograd graph of a few lines of torch as a picture, drawn by running them."""

from __future__ import annotations

from dataclasses import dataclass

from .layers import Link, Route, place
from .picture import PAGE_WIDTH, Picture, counted, escaped, finish, listed, number, text_width, wrap
from .record import Graph, Step, record

#: More steps than this are a wall, not a picture.
MOST_STEPS = 48

_MARGIN = 2.0
_PAD = 9.0
_LINE = 16.0
_SIZE = {"name": 13.0, "fact": 11.5, "saved": 11.5}
_LABEL = "no gradient"
_LABEL_SIZE = 11.0
_MOST_PARALLEL = 3
#: (widest box in px, most boxes beside each other), from comfortable to tight.
_FITS = ((200.0, 4), (150.0, 4), (200.0, 2), (128.0, 3), (150.0, 2), (128.0, 2), (108.0, 3), (108.0, 2))


def draw_graph(code: str, title: str | None = None, alt: str | None = None, *, key: str = "") -> Picture:
    """Run `code` in a fresh namespace and draw the tensors it makes, from top to bottom in the order of the calls.

    A line is whole where autograd carries a gradient back along it and dashed, with the words "no gradient", where
    it does not.
    Two lines between the same boxes are two edges in `grad_fn.next_functions`.
    A box says the tensor's name, the call that made it, its shape, its `grad_fn`, and what autograd saved for
    backward: the bytes read right after the call, and whether they were freed by the time the code had ended.

    title: the picture's short name; the names of the last results when None.
    alt: the text alternative; a description of everything drawn when None.
    key: tells apart the ids of pictures on one page that are alike in everything.

    Raises whatever `code` raises (frames of the code have the file name `<autograd-graph>`), and ValueError when
    it makes no tensor or more tensors than can be read in a picture.
    """
    graph, _ = record(code)
    if len(graph.steps) > MOST_STEPS:
        raise ValueError(f"a graph of {len(graph.steps)} tensors cannot be read as a picture; draw at most {MOST_STEPS}")
    if title is None:
        sources = {edge.source for edge in graph.edges}
        results = [label for k, label in enumerate(graph.labels()) if k not in sources]
        title = f"Autograd graph of {listed(results)}"
    return finish("graph", *_drawn(graph), title, describe(graph) if alt is None else alt, key)


# The same in words.


def describe(graph: Graph) -> str:
    """Everything that the picture of `graph` says, as sentences."""
    labels = graph.labels()
    sentences = [f"Graph of {counted(len(graph.steps), 'tensor')}."]
    for k, step in enumerate(graph.steps):
        sentences.append(_origin(graph, labels, k))
        if step.leaf:
            sentences.append(f"Its .grad is {'filled' if step.has_grad else 'None'}.")
        elif step.saved is not None:
            sentences.append(f"It {_saved_words(step, labels)}.")
    return " ".join(sentences)


def _origin(graph: Graph, labels: list[str], k: int) -> str:
    step = graph.steps[k]
    edges = [edge for edge in graph.edges if edge.target == k]
    name = f"{labels[k]}, shape {step.shape}"
    kind = "a leaf that requires grad" if step.leaf else f"grad_fn {step.grad_fn}" if step.grad_fn else "no grad_fn"
    if not edges:
        return f"{name}, is {kind}." if step.leaf else f"{name}, has {kind}."
    verb = f"is the result of {step.op} on" if step.op else "comes from"
    parents = [labels[e.source] + (f" ({e.paths} times)" if e.paths > 1 else "") for e in edges]
    sentence = f"{name}, {verb} {listed(parents)}, {kind if step.leaf else f'with {kind}'}."
    cut = [labels[e.source] for e in edges if not e.paths]
    if len(cut) == len(edges):
        return f"{sentence} No gradient flows back to {listed(cut)}."
    flowing = [labels[e.source] for e in edges if e.paths]
    return f"{sentence} A gradient flows back to {listed(flowing)}{f', none to {listed(cut)}' if cut else ''}."


def _saved_words(step: Step, labels: list[str]) -> str:
    assert step.saved is not None
    if not step.state:
        return "saves nothing"
    names = ", ".join(labels[s] for s in step.saved.steps)
    what = f"{names + ': ' if names else ''}{step.saved.nbytes:,} B"
    after = {"held": "", "freed": ", freed", "overwritten": ", overwritten since"}[step.state]
    return f"{'saves' if step.state == 'held' else 'saved'} {what}{after}"


# The drawing.


@dataclass(frozen=True)
class _Line:
    text: str
    style: str  # a key of _SIZE
    op: str = ""  # follows the text in lighter type


@dataclass(frozen=True)
class _Box:
    lines: tuple[_Line, ...]
    width: float
    height: float


def _drawn(graph: Graph) -> tuple[str, float, float]:
    labels = graph.labels()
    label_box = (text_width(_LABEL, _LABEL_SIZE) + 8, _LABEL_SIZE + 5)
    links, edges = [], []
    for edge in graph.edges:
        for _ in range(edge.paths if 1 < edge.paths <= _MOST_PARALLEL else 1):
            mark = _edge_label(edge.paths)
            size = (text_width(mark, _LABEL_SIZE) + 8, label_box[1]) if mark else None
            links.append(Link(edge.source, edge.target, size))
            edges.append(edge)
    for widest, most in _FITS:
        boxes = [_box(step, label, labels, widest) for step, label in zip(graph.steps, labels)]
        placed = place([(box.width, box.height) for box in boxes], links, most)
        if placed.width + 2 * _MARGIN <= PAGE_WIDTH:
            break
    body = [f'<g transform="translate({number(_MARGIN)} {number(_MARGIN)})">']
    for edge, route in zip(edges, placed.routes):
        stops = not edge.paths and graph.steps[edge.source].requires_grad
        style = "flows" if edge.paths else "cut" if stops else "constant"
        body.append(_edge(route, style, _edge_label(edge.paths)))
    body += [_node(step, box, corner) for step, box, corner in zip(graph.steps, boxes, placed.corners)]
    body.append("</g>")
    return "\n".join(body), placed.width + 2 * _MARGIN, placed.height + 2 * _MARGIN


def _edge_label(paths: int) -> str:
    return _LABEL if not paths else f"×{paths}" if paths > _MOST_PARALLEL else ""


def _box(step: Step, label: str, labels: list[str], widest: float) -> _Box:
    inner = widest - 2 * _PAD
    lines = []
    if step.name and step.op:
        op = f" = {step.call}"
        if text_width(label + op, _SIZE["name"]) <= inner:
            lines.append(_Line(label, "name", op))
        else:
            lines += [_Line(part, "name") for part in wrap(label, _SIZE["name"], inner)]
            lines += [_Line("", "name", part) for part in wrap(op.strip(), _SIZE["name"], inner)]
    else:
        lines += [_Line(part, "name") for part in wrap(label, _SIZE["name"], inner)]
    kind = step.grad_fn or ("leaf, requires grad" if step.leaf else "no grad_fn")
    facts = f"{step.shape} · {kind}"
    if text_width(facts, _SIZE["fact"]) <= inner:
        lines.append(_Line(facts, "fact"))
    else:
        lines += [_Line(part, "fact") for text in (str(step.shape), kind) for part in wrap(text, _SIZE["fact"], inner)]
    if step.leaf:
        lines.append(_Line(f".grad {'filled' if step.has_grad else 'None'}", "saved"))
    elif step.saved is not None:
        lines += [_Line(part, "saved") for part in wrap(_saved_words(step, labels), _SIZE["saved"], inner)]
    width = max(text_width(line.text + line.op, _SIZE[line.style]) for line in lines) + 2 * _PAD
    return _Box(tuple(lines), max(84.0, width), _LINE * len(lines) + 12)


def _node(step: Step, box: _Box, corner: tuple[float, float]) -> str:
    x, y = corner
    style = "leaf" if step.leaf else "result" if step.grad_fn else "constant"
    parts = [
        f'<g class="tensor {style}{f" {step.state}" if step.state else ""}">',
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(box.width)}" height="{number(box.height)}" rx="7"'
        ' fill="none" stroke="currentColor"/>',
    ]
    for k, line in enumerate(box.lines):
        op = f'<tspan class="op">{escaped(line.op)}</tspan>' if line.op else ""
        parts.append(
            f'<text class="{line.style}" x="{number(x + box.width / 2)}" y="{number(y + 18 + k * _LINE)}"'
            f' text-anchor="middle" font-size="{number(_SIZE[line.style])}">{escaped(line.text)}{op}</text>'
        )
    return "".join([*parts, "</g>"])


def _edge(route: Route, style: str, label: str) -> str:
    """A line that runs down through all stretches of `route`, with a gap for its label and a head at its end."""
    head = 7.0
    strokes, text = [], ""
    x, top, bottom = route.points[0]
    path = f"M{number(x)} {number(top)}V{number(bottom)}"
    for k, (x1, top1, bottom1) in enumerate(route.points[1:], 1):
        last = k == len(route.points) - 1
        end = top1 - head if last else top1
        middle = (bottom + end) / 2
        if x1 == x:
            path += f"V{number(end)}"
        else:
            path += f"C{number(x)} {number(middle)} {number(x1)} {number(middle)} {number(x1)} {number(end)}"
        if k == route.label:
            strokes.append(path)
            path = f"M{number(x1)} {number(bottom1)}"
            text = (
                f'<text class="label" x="{number(x1)}" y="{number((top1 + bottom1) / 2 + 4)}" text-anchor="middle"'
                f' font-size="{number(_LABEL_SIZE)}">{escaped(label)}</text>'
            )
        elif bottom1 > end and not last:
            path += f"V{number(bottom1)}"
        x, bottom = x1, bottom1
    strokes.append(path)
    dashes = "" if style == "flows" else ' stroke-dasharray="5 4"'
    lines = "".join(f'<path d="{d}" fill="none" stroke="currentColor"{dashes}/>' for d in strokes)
    tip = f'<path class="head" d="M{number(x - 4)} {number(bottom - head - 1)}h8L{number(x)} {number(bottom)}z"/>'
    return f'<g class="edge {style}">{lines}{tip}{text}</g>'
