"""The drawn memory against the memory itself."""

import ctypes
import itertools
import pickle
import re
import xml.etree.ElementTree as ET

import pytest
import torch
from _ext.pictures.layout import draw_layout
from _ext.pictures.memory import blocks, elided, read, strip
from _ext.pictures.picture import PAGE_WIDTH

SVG = "{http://www.w3.org/2000/svg}"
NUMBERS = torch.arange(24.0)


def tensors():
    t = NUMBERS.clone()
    return {
        "0-d": t[5],
        "1-d": t[:7],
        "strided": t[1::3],
        "2-d": t.view(4, 6),
        "transposed": t.view(4, 6).T,
        "sliced": t.view(4, 6)[1:3, 1::2],
        "expanded": t[2:5].expand(4, 3),
        "expanded 0-d": torch.tensor(3.0).expand(2, 2),
        "3-d": t.view(2, 3, 4),
        "3-d permuted": t.view(2, 3, 4).permute(2, 0, 1),
        "4-d": t.view(2, 2, 2, 3),
        "channels last": torch.ones(1, 2, 3, 3).cumsum(3).contiguous(memory_format=torch.channels_last),
        "bool": torch.tensor([[True, False], [False, False]]),
        "int16": torch.arange(5, dtype=torch.int16),
        "bfloat16": torch.arange(4, dtype=torch.bfloat16),
        "overlapping": t.as_strided((3, 3), (1, 1), 2),
        "big": torch.arange(1000).view(20, 50),
    }


def elements(tensor, columns=12, rows=8, count=4):
    """(index, cell) of each drawn element, by counting along the drawn rows and columns."""
    table = tensor if tensor.dim() >= 2 else tensor.reshape(1, -1)
    found = []
    for block in blocks(tensor, columns, rows, count):
        if block is None:
            continue
        part = table[block.index] if block.index else table
        for r, line in zip(elided(part.shape[0], rows), block.rows):
            for c, cell in zip(elided(part.shape[1], columns), line or ()):
                if cell is not None:
                    found.append(((*block.index, r, c)[-max(1, tensor.dim()) :], cell))
    return found


@pytest.mark.parametrize("name", tensors())
def test_offsets_lead_to_the_drawn_values_in_memory(name):
    tensor = tensors()[name]
    cells = elements(tensor)
    assert cells
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).tolist()
    for index, cell in cells:
        if tensor.dim() == 0:
            index = ()
        assert cell.value == tensor[index].item() == storage[cell.offset]
        assert cell.offset == tensor.storage_offset() + sum(i * s for i, s in zip(index, tensor.stride()))


def test_offsets_are_addresses():
    t = torch.arange(12.0).view(3, 4)[1:, ::2]
    start = t.untyped_storage().data_ptr()
    for _, cell in elements(t):
        assert ctypes.c_float.from_address(start + cell.offset * t.element_size()).value == cell.value


@pytest.mark.parametrize("name", [n for n in tensors() if n != "big"])
def test_every_element_of_a_small_tensor_is_drawn(name):
    tensor = tensors()[name]
    assert len(elements(tensor)) == tensor.numel()


@pytest.mark.parametrize("name", tensors())
def test_strip_is_the_storage(name):
    tensor = tensors()[name]
    storage = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage()).tolist()
    cells = [c for c in strip(tensor, 24) if c is not None]
    assert len(cells) == min(len(storage), len(cells)) and (len(storage) > 24 or len(cells) == len(storage))
    indices = itertools.product(*map(range, tensor.shape))
    reached = {tensor.storage_offset() + sum(i * s for i, s in zip(index, tensor.stride())) for index in indices}
    for cell in cells:
        assert cell.value == storage[cell.offset]
        assert cell.used == (cell.offset in reached)
    memory = read(tensor, [])
    assert memory.used == len(reached)
    assert memory.length == len(storage)


def test_strip_of_a_big_storage_shows_where_the_tensor_begins():
    cells = strip(torch.arange(1000)[500:510], 12)
    assert len(cells) <= 12
    offsets = [c.offset for c in cells if c]
    assert {0, 500, 999} <= set(offsets) and offsets == sorted(offsets)
    gaps = [k for k, c in enumerate(cells) if c is None]
    assert all(cells[k + 1].offset - cells[k - 1].offset > 1 for k in gaps)
    assert sum(b - a > 1 for a, b in zip(offsets, offsets[1:])) == len(gaps)


@pytest.mark.parametrize("size", range(30))
@pytest.mark.parametrize("most", [3, 4, 5, 12])
def test_elided_leaves_out_the_middle(size, most):
    shown = elided(size, most)
    assert len(shown) == min(size, most)
    kept = [k for k in shown if k is not None]
    assert kept == sorted(kept) and set(kept) <= set(range(size))
    assert shown.count(None) == (size > most)
    if size:
        assert (kept[0], kept[-1]) == (0, size - 1)


def drawn(picture):
    """Texts of the drawing, title and description left out."""
    root = ET.fromstring(picture.svg)
    return [text.text for text in root.iter(f"{SVG}text")]


def facts(picture):
    return " · ".join(drawn(picture))


def cells_in(picture, kind):
    root = ET.fromstring(picture.svg)
    found = []
    for g in root.iter(f"{SVG}g"):
        if kind in g.get("class", "").split():
            value, *offset = (t.text for t in g.findall(f"{SVG}text"))
            found.append((value, *map(int, offset)))
    return found


REPEATS = ["x", "x.repeat(2)", "x.repeat_interleave(2)", "x.expand(2, 3)"]


def test_repeats_side_by_side():
    x = torch.tensor([1.0, 2.0, 3.0])
    picture = draw_layout(REPEATS, {"x": x})
    assert cells_in(picture, "element") == [
        *[("1", 0), ("2", 1), ("3", 2)],
        *[("1", 0), ("2", 1), ("3", 2), ("1", 3), ("2", 4), ("3", 5)],
        *[("1", 0), ("1", 1), ("2", 2), ("2", 3), ("3", 4), ("3", 5)],
        *[("1", 0), ("2", 1), ("3", 2), ("1", 0), ("2", 1), ("3", 2)],
    ]
    assert [v for v, _ in cells_in(picture, "place")] == list("123" "123123" "112233" "123")
    text = facts(picture)
    assert [t for t in drawn(picture) if len(t) == 9 and t.startswith("storage ")] == [f"storage {c}" for c in "ABCA"]
    for fact in ("stride (0, 1)", "storage A · 12 B · shared with x.expand(2, 3)", "storage B · 24 B · not shared",
                 "6 elements · nbytes 24 · not contiguous", "storage A · 12 B · shared with x"):
        assert fact in text


def test_the_same_value_has_the_same_colour_and_no_colour_stands_for_two():
    root = ET.fromstring(draw_layout(REPEATS, {"x": torch.tensor([1.0, 2.0, 3.0])}).svg)
    pairs = {(g.get("class").split()[1], g.find(f"{SVG}text").text) for g in root.iter(f"{SVG}g")}
    assert pairs == {("v0", "1"), ("v1", "2"), ("v2", "3")}
    many = ET.fromstring(draw_layout(["x"], {"x": torch.arange(24).view(2, 12)}).svg)
    assert {g.get("class") for g in many.iter(f"{SVG}g")} == {"element", "place"}


@pytest.mark.parametrize("name", tensors())
def test_words_say_what_torch_says(name):
    tensor = tensors()[name]
    alt = draw_layout(["t"], {"t": tensor}).alt
    assert f"shape {tuple(tensor.shape)}, stride {tuple(tensor.stride())}, {str(tensor.dtype)[6:]}" in alt
    assert f"nbytes {tensor.nbytes:,}" in alt
    assert ("not contiguous" in alt) == (not tensor.is_contiguous())
    assert f"Storage A, {tensor.untyped_storage().nbytes():,} B" in alt


@pytest.mark.parametrize("name", tensors())
def test_fits_a_phone_and_is_drawn_inside(name):
    root = ET.fromstring(draw_layout(["t", "t.clone()"], {"t": tensors()[name]}).svg)
    width, height = float(root.get("width")), float(root.get("height"))
    assert width <= PAGE_WIDTH
    for rect in root.iter(f"{SVG}rect"):
        assert float(rect.get("x")) >= 0 and float(rect.get("x")) + float(rect.get("width")) <= width
        assert float(rect.get("y")) + float(rect.get("height")) <= height
    corners = [(rect.get("x"), rect.get("y")) for rect in root.iter(f"{SVG}rect")]
    assert len(corners) == len(set(corners))


def test_alt_lists_values_and_storage():
    x = torch.arange(6).view(2, 3)
    alt = draw_layout(["x", "x.T", "x[:, 1]"], {"x": x}).alt
    assert "Values [0, 1, 2] [3, 4, 5]." in alt
    assert "Values [0, 3] [1, 4] [2, 5]." in alt
    assert "Values 1, 4. Storage in order: 0, 1, 2, 3, 4, 5, with positions 0, 2, 3 and 5 not used." in alt
    assert "Storage A, 48 B, shared with x and x[:, 1]." in alt
    assert "uses 2 of its 6 elements" in alt
    blocks_in_words = draw_layout(["x"], {"x": torch.arange(8).view(2, 2, 2)}).alt
    assert "Values at [0] [0, 1] [2, 3]; at [1] [4, 5] [6, 7]." in blocks_in_words


def test_expanded_to_a_billion_elements():
    picture = draw_layout(["x.expand(10**9)"], {"x": torch.zeros(1)})
    assert "1,000,000,000 elements, nbytes 4,000,000,000" in picture.alt
    assert "Storage A, 4 B." in picture.alt
    assert "…" in drawn(picture)


def test_empty_and_meta():
    picture = draw_layout(["torch.empty(0, 3)", "torch.empty(2, device='meta')"], {"torch": torch})
    assert "no elements" in drawn(picture)
    assert "Storage of 0 B." in picture.alt
    assert "No storage: the meta device keeps no data." in picture.alt
    assert cells_in(picture, "place") == []
    assert cells_in(picture, "meta") == [("?",), ("?",)]
    view = draw_layout(["x[3:]"], {"x": torch.tensor([1, 2, 3])})
    assert "uses 0 of its 3 elements" in view.alt
    assert cells_in(view, "unused") == [("1", 0), ("2", 1), ("3", 2)]


def test_conjugate_view_differs_from_its_storage():
    picture = draw_layout(["z.conj()"], {"z": torch.tensor([1 + 2j])})
    assert cells_in(picture, "element") == [("1-2j", 0)]
    assert cells_in(picture, "place") == [("1+2j", 0)]
    assert "conj bit set" in picture.alt


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.tensor(True), "True"),
        (torch.tensor(float("nan")), "nan"),
        (torch.tensor(-float("inf")), "-inf"),
        (torch.tensor(0.1), "0.1"),
        (torch.tensor(2**40), "~1.10e+12"),
        (torch.tensor(-7), "-7"),
    ],
)
def test_values_as_text(tensor, text):
    assert [v for v, _ in cells_in(draw_layout(["t"], {"t": tensor}), "element")] == [text]


def test_split_is_drawn_as_its_parts():
    picture = draw_layout(["x.split(2)"], {"x": torch.arange(4)})
    assert {"x.split(2)[0]", "x.split(2)[1]"} <= set(drawn(picture))
    assert "shared with x.split(2)[1]" in picture.alt


def test_requires_grad_is_no_obstacle():
    assert "Values 1, 1." in draw_layout(["w * 1"], {"w": torch.ones(2, requires_grad=True)}).alt


def test_page_is_left_as_it_was():
    namespace = {"torch": torch, "x": torch.ones(2)}
    state = torch.get_rng_state()
    draw_layout(["torch.rand(2)", "(y := x * 2)"], namespace)
    assert torch.equal(torch.get_rng_state(), state)
    assert set(namespace) == {"torch", "x"}


def test_is_the_same_in_every_build_and_ids_differ():
    namespace = {"x": torch.arange(3)}
    first, again, other = (draw_layout(e, namespace) for e in (["x"], ["x"], ["x", "x + 1"]))
    assert first == again
    assert pickle.loads(pickle.dumps(first)) == first
    ids = [i for p in (first, other, draw_layout(["x"], namespace, key="2")) for i in re.findall(r' id="([^"]+)"', p.svg)]
    assert len(ids) == 6 == len(set(ids))


def test_hostile_text_is_escaped():
    hostile = "</desc><script>&\"'\x00"
    picture = draw_layout(["d['<b>&\"]]>']"], {"d": {'<b>&"]]>': torch.ones(1)}}, hostile)
    root = ET.fromstring(picture.svg)
    assert root.findtext(f"{SVG}title") == hostile.replace("\x00", "\ufffd")
    assert "d['<b>&\"]]>']" in drawn(picture)
    assert not re.search(r"<script|<b>|<style|style=|href|url\(", picture.svg)
    assert draw_layout(["x"], {"x": torch.ones(1)}, alt="Mine.").alt == "Mine."


@pytest.mark.parametrize(
    ("expressions", "error", "text"),
    [
        ([], ValueError, "no expression"),
        (["  "], ValueError, "no expression"),
        (["y"], NameError, "'y' is not defined"),
        (["x +"], SyntaxError, "invalid syntax"),
        (["x.expand(5)"], RuntimeError, "must match the existing size"),
        (["x.numel()"], TypeError, r"'x.numel\(\)' is no tensor but int"),
        (["x.to_sparse()"], ValueError, "its layout is torch.sparse_coo"),
        (["(x, 1)"], TypeError, "is no tensor but int"),
        (["()"], TypeError, "is no tensor but tuple"),
    ],
)
def test_errors_come_out(expressions, error, text):
    with pytest.raises(error, match=text):
        draw_layout(expressions, {"x": torch.ones(2)})
