"""The drawn graph against autograd's own answer."""

import os
import pickle
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest
import torch
from _ext.pictures.graph import draw_graph
from _ext.pictures.graph import MOST_STEPS, describe
from _ext.pictures.picture import PAGE_WIDTH
from _ext.pictures.record import record

SVG = "{http://www.w3.org/2000/svg}"

DETACH = """
import torch
x = torch.arange(4.0, requires_grad=True)
y = x * x
u = y.detach()
z = u * x
s = z.sum()
"""

EXAMPLES = {
    "detach": DETACH,
    "clone": """
import torch
x = torch.ones(3, requires_grad=True)
c = x.clone()
d = x.detach().clone()
e = c + d
""",
    "no_grad": """
import torch
x = torch.ones(3, requires_grad=True)
with torch.no_grad():
    y = x * 2
z = x * y
""",
    "two losses over one trunk": """
import torch
x = torch.ones(3, requires_grad=True)
trunk = x.exp()
a = trunk.sum()
b = trunk.mean()
""",
    "used twice by one call": """
import torch
x = torch.ones(3, requires_grad=True)
y = x * x
c = torch.cat([y, x, y, y])
""",
    "several results": """
import torch
x = torch.arange(4.0, requires_grad=True)
a, b = x.split(2)
m = a * b
v, i = m.max(0)
""",
    "a chain of steps": """
import torch
W = torch.eye(2, requires_grad=True)
h0 = torch.zeros(2)
g1 = W @ h0
h1 = torch.tanh(g1)
g2 = W @ h1
h2 = torch.tanh(g2)
loss = h2.sum()
""",
    "constant input": """
import torch
w = torch.ones(3, requires_grad=True)
target = torch.zeros(3)
error = w - target
loss = error.pow(2)
""",
    "data": """
import torch
x = torch.ones(3, requires_grad=True)
d = x.data
y = d * x
""",
}


def named_edges(graph):
    labels = graph.labels()
    return {(labels[e.source], labels[e.target]): e.paths for e in graph.edges}


def asked_of_autograd(tensor, source):
    """How often `tensor.grad_fn` leads straight to `source`; AccumulateGrad is told by its variable."""
    count = 0
    for fn, output_nr in tensor.grad_fn.next_functions if tensor.grad_fn else ():
        if fn is None:
            continue
        if source.grad_fn is None:
            count += getattr(fn, "variable", None) is source
        else:
            count += fn is source.grad_fn and output_nr == source.output_nr
    return count


@pytest.mark.parametrize("code", EXAMPLES.values(), ids=EXAMPLES)
def test_edges_are_those_of_next_functions(code):
    graph, namespace = record(code)
    tensors = {name: value for name, value in namespace.items() if isinstance(value, torch.Tensor)}
    assert set(tensors) <= set(graph.labels())
    drawn = {pair: paths for pair, paths in named_edges(graph).items() if set(pair) <= set(tensors)}
    assert drawn
    for target in tensors:
        for source in tensors:
            assert asked_of_autograd(tensors[target], tensors[source]) == drawn.get((source, target), 0), (source, target)


@pytest.mark.parametrize("code", EXAMPLES.values(), ids=EXAMPLES)
def test_steps_say_what_the_tensors_say(code):
    graph, namespace = record(code)
    for label, step in zip(graph.labels(), graph.steps):
        tensor = namespace.get(label)
        if isinstance(tensor, torch.Tensor):
            assert step.shape == tuple(tensor.shape)
            assert step.grad_fn == (tensor.grad_fn.name() if tensor.grad_fn else "")
            assert step.leaf == (tensor.is_leaf and tensor.requires_grad)


def test_detach_cuts_and_says_so():
    graph, _ = record(DETACH)
    assert named_edges(graph) == {("x", "y"): 2, ("y", "u"): 0, ("x", "z"): 1, ("u", "z"): 0, ("z", "s"): 1}
    picture = draw_graph(DETACH)
    root = ET.fromstring(picture.svg)
    edges = root.findall(f".//{SVG}g[@class]")
    kinds = Counter(g.get("class") for g in edges if g.get("class").startswith("edge"))
    assert kinds == {"edge flows": 4, "edge cut": 1, "edge constant": 1}
    for edge in edges:
        if edge.get("class") in ("edge cut", "edge constant"):
            assert edge.findtext(f"{SVG}text") == "no gradient"
            lines = [p for p in edge.findall(f"{SVG}path") if p.get("class") != "head"]
            assert lines and all(p.get("stroke-dasharray") for p in lines)
        elif edge.get("class") == "edge flows":
            assert all(p.get("stroke-dasharray") is None for p in edge.findall(f"{SVG}path"))


def test_one_call_can_be_several_autograd_nodes():
    graph, namespace = record("""
import torch
logits = torch.ones(2, 3, requires_grad=True)
target = torch.tensor([0, 1])
loss = torch.nn.functional.cross_entropy(logits, target)
""")
    assert named_edges(graph) == {("logits", "loss"): 1, ("target", "loss"): 0}
    inner = namespace["loss"].grad_fn.next_functions[0][0]
    assert inner.name() == "LogSoftmaxBackward0"
    assert inner.next_functions[0][0].variable is namespace["logits"]


def test_gradient_reaches_only_the_input_it_goes_through():
    # `loss` depends on `a` through `b` alone, though the call reads `a` as well.
    graph, _ = record("""
import torch
a = torch.ones(3, requires_grad=True)
b = a * 2
loss = torch.nn.functional.mse_loss(b, a.detach())
""")
    edges = named_edges(graph)
    assert edges["b", "loss"] == 1
    assert ("a", "loss") not in edges
    assert edges["detach()", "loss"] == 0


def test_inplace_write_is_a_new_step():
    graph, namespace = record("""
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
first = y.grad_fn
y += 1
""")
    assert named_edges(graph) == {("x", "y #1"): 1, ("y #1", "y #2"): 1}
    assert namespace["y"].grad_fn.next_functions[0][0] is namespace["first"]
    assert [s.op for s in graph.steps] == ["", "exp", "add_"]


def test_write_through_a_view_goes_to_its_base():
    graph, namespace = record("""
import torch
x = torch.ones(3, requires_grad=True)
z = x * 1
old = z.grad_fn
v = z[0]
v.mul_(3)
""")
    assert named_edges(graph) == {("x", "z #1"): 1, ("z #1", "v #1"): 1, ("z #1", "z #2"): 1, ("z #2", "v #2"): 1}
    z, v = namespace["z"], namespace["v"]
    assert z.grad_fn.next_functions[0][0] is namespace["old"]
    assert v.grad_fn.next_functions[0][0] is z.grad_fn
    step = graph.steps[graph.labels().index("z #2")]
    assert (step.grad_fn, step.saved) == ("CopySlices", None)


def test_write_into_a_leaf_and_detach_inplace():
    graph, _ = record("""
import torch
w = torch.ones(3, requires_grad=True)
y = w * 2
y.detach_()
with torch.no_grad():
    w -= 1
z = w * y
""")
    edges = named_edges(graph)
    assert edges["y #1", "y #2"] == 0
    assert edges["w #1", "w #2"] == 0
    assert edges["w #1", "y #1"] == 1
    assert edges["w #2", "z"] == 1


def test_loop_names_each_state():
    graph, _ = record("""
import torch
W = torch.eye(2, requires_grad=True)
h = torch.zeros(2)
for t in range(2):
    h = torch.tanh(W @ h)
""")
    edges = named_edges(graph)
    assert edges["h #1", "matmul() #1"] == 0
    assert edges["h #2", "matmul() #2"] == 1
    assert edges["W", "matmul() #1"] == edges["W", "matmul() #2"] == 1
    assert edges["matmul() #2", "h #3"] == 1


def test_custom_function_is_a_step():
    graph, _ = record("""
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
x = torch.ones(4, requires_grad=True)
y = Double.apply(x)
z = y.sum()
z.backward()
""")
    assert named_edges(graph) == {("x", "y"): 1, ("y", "z"): 1}
    y = graph.steps[graph.labels().index("y")]
    assert (y.grad_fn, y.saved.nbytes, y.state) == ("DoubleBackward", 16, "freed")


def test_new_leaf_after_detach():
    graph, _ = record("""
import torch
x = torch.ones(2, requires_grad=True)
d = x.detach().requires_grad_()
y = d * 2
y.sum().backward()
""")
    assert named_edges(graph)["x", "d"] == 0
    assert named_edges(graph)["d", "y"] == 1
    x, d = (graph.steps[graph.labels().index(n)] for n in "xd")
    assert (x.leaf, x.has_grad, d.leaf, d.has_grad) == (True, False, True, True)


def test_parameters_are_named_by_their_module():
    graph, _ = record("""
import torch
net = torch.nn.Linear(3, 2)
x = torch.ones(1, 3)
y = net(x)
unused = torch.nn.Linear(2, 2)
""")
    assert set(graph.labels()) == {"net.weight", "net.bias", "x", "y"}
    assert named_edges(graph) == {("net.weight", "y"): 1, ("net.bias", "y"): 1, ("x", "y"): 0}


TRUNK = """
import torch
x = torch.ones(4, requires_grad=True)
h = x.exp()
a = h.sum()
b = (h * h).mean()
"""


@pytest.mark.parametrize(
    ("last", "h", "square"),
    [
        ("", "held", "held"),
        ("a.backward()", "freed", "held"),
        ("a.backward(retain_graph=True)", "held", "held"),
        ("(a + b).backward()", "freed", "freed"),
        ("h.detach().zero_()", "overwritten", "overwritten"),
    ],
)
def test_saved_tensors_held_freed_or_overwritten(last, h, square):
    graph, _ = record(TRUNK + last)
    state = dict(zip(graph.labels(), (s.state for s in graph.steps)))
    assert (state["h"], state["mul()"], state["a"]) == (h, square, "")


def test_saved_state_is_what_a_second_backward_meets():
    graph, namespace = record(TRUNK + "a.backward()")
    assert "freed" in {s.state for s in graph.steps}
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        namespace["b"].backward()


SLICE = """
import torch
w = torch.ones(4, requires_grad=True)
a = w[:1]
y = a * a
"""


def test_saved_bytes_are_those_of_the_whole_storage():
    graph, _ = record(SLICE)
    assert graph.steps[graph.labels().index("y")].saved.nbytes == 16


@pytest.mark.parametrize("code", [TRUNK, SLICE, *EXAMPLES.values()])
def test_saved_bytes_are_those_that_hooks_see(code):
    packed = {}

    def pack(tensor):
        frame = sys._getframe()
        while frame.f_code.co_filename != "<saving>":
            frame = frame.f_back
        # One line of the examples makes at most one node that saves; a node's storages are counted once.
        packed[frame.f_lineno, tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        exec(compile(code, "<saving>", "exec"), {})
    graph, _ = record(code)
    assert sum(s.saved.nbytes for s in graph.steps if s.saved) == sum(packed.values())


def test_saved_tensor_is_named():
    graph, _ = record(TRUNK)
    labels = graph.labels()
    h = graph.steps[labels.index("h")]
    assert [labels[s] for s in h.saved.steps] == ["h"]
    assert h.saved.nbytes == 16
    assert "saves h: 16 B" in draw_graph(TRUNK).svg
    assert "saved h: 16 B, freed" in draw_graph(TRUNK + "(a + b).backward()").alt


def test_two_autograd_edges_are_two_lines():
    root = ET.fromstring(draw_graph("import torch\nx = torch.ones(2, requires_grad=True)\ny = x * x").svg)
    lines = [g.find(f"{SVG}path").get("d") for g in root.iter(f"{SVG}g") if g.get("class") == "edge flows"]
    assert len(lines) == 2 and lines[0] != lines[1]


def test_many_autograd_edges_are_one_line_with_a_number():
    picture = draw_graph("import torch\nx = torch.ones(2, requires_grad=True)\ny = torch.stack([x] * 5)")
    root = ET.fromstring(picture.svg)
    (edge,) = [g for g in root.iter(f"{SVG}g") if g.get("class") == "edge flows"]
    assert edge.findtext(f"{SVG}text") == "×5"
    assert "x (5 times)" in picture.alt


@pytest.mark.parametrize("code", EXAMPLES.values(), ids=EXAMPLES)
def test_alt_says_every_edge_and_every_shape(code):
    graph, _ = record(code)
    alt, labels = draw_graph(code).alt, graph.labels()
    assert alt == describe(graph)
    for label, step in zip(labels, graph.steps):
        assert f"{label}, shape {step.shape}" in alt
    for k, label in enumerate(labels):
        mine = re.search(rf"{re.escape(label)}, shape .*?(?= \S+, shape |$)", alt).group()
        edges = [e for e in graph.edges if e.target == k]
        flowing = re.search(r"A gradient flows back to ([^.]*?)(, none to [^.]*)?\.( |$)", mine)
        assert {w for w in re.split(", | and ", flowing.group(1))} == {labels[e.source] for e in edges if e.paths} \
            if any(e.paths for e in edges) else flowing is None
        cut = re.search(r"(?:none|No gradient flows back) to ([^.]*)\.", mine)
        stopped = {labels[e.source].lstrip(".") for e in edges if not e.paths}
        assert {w for w in re.split(", | and ", cut.group(1))} == stopped if stopped else cut is None


def test_everything_drawn_is_inside_and_no_text_leaves_its_box():
    code = """
import torch
encoder_hidden_state_before_attention = torch.ones(2, 3, 4, 5, 6, requires_grad=True)
normalised = torch.nn.functional.layer_norm(encoder_hidden_state_before_attention, (6,))
both = torch.cat([normalised, normalised.detach(), encoder_hidden_state_before_attention])
"""
    root = ET.fromstring(draw_graph(code).svg)
    assert float(root.get("width")) <= PAGE_WIDTH
    for tensor in (g for g in root.iter(f"{SVG}g") if g.get("class", "").startswith("tensor")):
        rect = tensor.find(f"{SVG}rect")
        assert 0 <= float(rect.get("x")) and float(rect.get("x")) + float(rect.get("width")) <= float(root.get("width"))
        top, bottom = float(rect.get("y")), float(rect.get("y")) + float(rect.get("height"))
        for text in tensor.findall(f"{SVG}text"):
            words = "".join(text.itertext())
            assert len(words) * 0.6 * float(text.get("font-size")) <= float(rect.get("width"))
            assert top < float(text.get("y")) < bottom


@pytest.mark.parametrize("code", [*EXAMPLES.values(), TRUNK])
def test_fits_a_phone(code):
    assert float(ET.fromstring(draw_graph(code).svg).get("width")) <= PAGE_WIDTH


def test_is_the_same_in_every_build():
    program = "import sys\nfrom _ext.pictures.graph import draw_graph\nsys.stdout.write(draw_graph(sys.argv[1]).svg)"
    docs = str(Path(__file__).parent.parent / "docs")
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONPATH": docs, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program, DETACH]
        built = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=True, timeout=60)
        assert built.stdout == draw_graph(DETACH).svg


def test_ids_differ_between_pictures_and_name_the_alternative():
    pictures = [draw_graph(DETACH), draw_graph(TRUNK), draw_graph(DETACH, "other"), draw_graph(DETACH, key="2")]
    ids = [i for p in pictures for i in re.findall(r' id="([^"]+)"', p.svg)]
    assert len(ids) == 8 == len(set(ids))
    for picture in pictures:
        root = ET.fromstring(picture.svg)
        assert root.get("role") == "img"
        title, desc = (root.find(f".//*[@id='{i}']") for i in root.get("aria-labelledby").split())
        assert title.tag == f"{SVG}title" and title.text
        assert desc.tag == f"{SVG}desc" and desc.text == picture.alt


def test_title_and_alt_given_are_kept_and_escaped():
    hostile = "</title><script>alert('\"&\x00')</script>"
    picture = draw_graph(DETACH, hostile, hostile)
    root = ET.fromstring(picture.svg)
    assert root.findtext(f"{SVG}title") == root.findtext(f"{SVG}desc") == hostile.replace("\x00", "\ufffd")
    assert picture.alt == hostile
    assert "<script" not in picture.svg


def test_hostile_names_are_escaped():
    code = "import torch\nx = {'<b>&\"]]>\\x01': torch.ones(2, requires_grad=True)}\ny = sum(x.values())"
    root = ET.fromstring(draw_graph(code).svg)
    assert "<b>&" in "".join(root.itertext())


def test_title_names_the_results():
    assert "Autograd graph of a and b</title>" in draw_graph(TRUNK).svg


def test_picture_can_be_pickled_and_not_be_changed():
    picture = draw_graph(DETACH)
    assert pickle.loads(pickle.dumps(picture)) == picture
    with pytest.raises(AttributeError):
        picture.svg = ""


def test_no_script_no_style_no_reference():
    svg = draw_graph(DETACH).svg
    assert not re.search(r"<script|<style|style=|href|url\(|\son\w+=", svg)
    assert "\n\n" not in svg


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        ("import torch\nx = torch.ones(2) + torch.ones(3)", RuntimeError, "must match the size"),
        ("x = = 1", SyntaxError, "invalid syntax"),
        ("x = undefined", NameError, "undefined"),
        ("import torch\nx = torch.ones(2, requires_grad=True)\nx.backward()", RuntimeError, "scalar outputs"),
        ("", ValueError, "makes no tensor"),
        ("x = 1", ValueError, "makes no tensor"),
        (f"import torch\nx = torch.ones(1)\nfor _ in range({MOST_STEPS}):\n    x = x + 1", ValueError, "draw at most"),
    ],
)
def test_errors_of_the_code_come_out(code, error, text):
    with pytest.raises(error, match=text):
        draw_graph(code)


def test_error_names_the_line():
    with pytest.raises(ZeroDivisionError) as caught:
        draw_graph("import torch\nx = torch.ones(1)\n\ny = 1 / 0\n")
    assert (caught.traceback[-1].path, caught.traceback[-1].lineno + 1) == ("<autograd-graph>", 4)


def test_leaves_torch_as_it_was():
    state, dtype = torch.get_rng_state(), torch.get_default_dtype()
    code = "import torch\ntorch.manual_seed(7)\ntorch.set_default_dtype(torch.float64)\nx = torch.rand(3)\ntorch.set_grad_enabled(False)"
    draw_graph(code)
    with pytest.raises(ZeroDivisionError):
        draw_graph(code + "\n1 / 0")
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_default_dtype() is dtype
    assert torch.is_grad_enabled()


def test_views_that_may_no_longer_be_used_do_not_stop_the_code():
    graph, namespace = record("""
import torch
x = torch.ones(4, requires_grad=True)
y = x * 1
a, b = y.split(2)
y.mul_(2)
""")
    assert {"a", "b", "y #1", "y #2"} <= set(graph.labels())
    with pytest.raises(RuntimeError, match="modified inplace"):
        namespace["a"].grad_fn


def test_tensors_that_are_only_named_are_drawn():
    graph, _ = record("from __future__ import annotations\nimport torch\nx = torch.ones(2)")
    assert [(s.name, s.shape, s.requires_grad) for s in graph.steps] == [("x", (2,), False)]
    assert graph.edges == ()
