"""Values, shape, stride and storage of tensors as a picture, read from their memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .memory import Block, Cell, Memory, blocks, read, strip
from .picture import MONO_ADVANCE, PAGE_WIDTH, Picture, counted, escaped, finish, listed, number, text_width, wrap

FILENAME = "<tensor-layout>"

_MARGIN = 2.0
_NAME, _FACT, _VALUE, _OFFSET, _HEADING = 13.0, 11.5, 12.0, 10.0, 11.0
_CELL_HEIGHT = 34.0
_GAP = 18.0
_COLUMNS, _ROWS, _BLOCKS, _STRIP_LINES = 12, 8, 4, 2
#: Colours in the style sheet. With more distinct values none is used: one colour for two values would mislead.
COLOURS = 12


def draw_layout(
    expressions: list[str], namespace: dict[str, Any], title: str | None = None, alt: str | None = None, *, key: str = ""
) -> Picture:
    """Evaluate `expressions` in a copy of `namespace` and draw the tensors one below the other.

    Each shows its values, shape, stride, dtype, bytes, and the storage under it as it lies in memory.
    A small number under a value is its position in the storage, in elements.
    A storage has a letter; tensors with the same letter share it, which is said in words as well.
    A tuple or list of tensors is drawn as its items.

    title: the picture's short name; the expressions when None.
    alt: the text alternative; a description of everything drawn when None.
    key: tells apart the ids of pictures on one page that are alike in everything.

    Raises whatever an expression raises, TypeError when a value is no tensor, ValueError when a tensor is not
    strided or not on the CPU or meta device, or when there is no expression.
    """
    expressions = [expression.strip() for expression in expressions if expression.strip()]
    if not expressions:
        raise ValueError("there is no expression to draw")
    tensors = _evaluated(expressions, namespace)
    storages: list[int] = []
    rows = [_Row(label, tensor, read(tensor, storages)) for label, tensor in tensors]
    if title is None:
        title = f"Values and storage of {listed(expressions)}"
    drawing = _Drawing(rows)
    return finish("layout", *drawing.drawn(), title, drawing.described() if alt is None else alt, key)


def _evaluated(expressions: list[str], namespace: dict[str, Any]) -> list[tuple[str, Tensor]]:
    namespace = dict(namespace)
    found: list[tuple[str, Tensor]] = []
    # The next cell of the page must draw the same random numbers with the picture and without it.
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for expression in expressions:
            value = eval(compile(expression, FILENAME, "eval"), namespace)
            if isinstance(value, (tuple, list)) and value:
                found += [(f"{expression}[{k}]", _checked(expression, item)) for k, item in enumerate(value)]
            else:
                found.append((expression, _checked(expression, value)))
    return found


def _checked(expression: str, value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{expression!r} is no tensor but {type(value).__name__}")
    if value.layout is not torch.strided:
        raise ValueError(f"{expression!r} has no strides to draw: its layout is {value.layout}")
    if value.device.type not in ("cpu", "meta"):
        raise ValueError(f"{expression!r} is on {value.device}, and only memory of the CPU is drawn")
    return value.detach()


@dataclass(frozen=True)
class _Row:
    label: str
    tensor: Tensor
    memory: Memory


def _value(value: bool | int | float | complex | None) -> str:
    """A value as short text; `~` marks an integer that is rounded."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**8 else f"~{value:.2e}"
    if isinstance(value, complex):
        return f"{value.real:.3g}{value.imag:+.3g}j"
    return f"{value:.4g}"


def _letter(storage: int) -> str:
    letters = ""
    storage += 1
    while storage:
        storage, rest = divmod(storage - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _shape_facts(memory: Memory) -> str:
    device = "" if memory.device == "cpu" else f" · {memory.device}"
    return f"shape {memory.shape} · stride {memory.stride} · {memory.dtype.removeprefix('torch.')}{device}"


def _size_facts(memory: Memory) -> str:
    facts = [counted(memory.numel, "element"), f"nbytes {memory.nbytes:,}"]
    if memory.offset:
        facts.append(f"storage offset {memory.offset}")
    if not memory.contiguous:
        facts.append("not contiguous")
    return " · ".join(facts)


class _Drawing:
    def __init__(self, rows: list[_Row]) -> None:
        self.rows = rows
        texts = [_value(c.value) for row in rows for c in (*self._cells(row, _COLUMNS), *self._strip(row, _COLUMNS)) if c]
        self.cell_width = max([26.0, *(text_width(text, _VALUE) + 10 for text in texts)])
        self.columns = max(3, min(_COLUMNS, int((PAGE_WIDTH - 2 * _MARGIN) // self.cell_width)))
        self.tables = [blocks(row.tensor, self.columns, _ROWS, _BLOCKS) for row in rows]
        self.strips = [self._strip(row, self.columns) for row in rows]
        distinct = list(dict.fromkeys(t for t in texts if t != "?"))
        self.colours = {text: k for k, text in enumerate(distinct)} if len(distinct) <= COLOURS else {}
        # Storages stand beside the values where all of them fit there, below each other.
        values = max((self._block_width(block) for table in self.tables for block in table if block), default=0.0)
        longest = max((len(cells) for cells in self.strips), default=0) * self.cell_width
        self.strip_x = _MARGIN + values + 32
        self.beside = self.strip_x + longest + _MARGIN <= PAGE_WIDTH and all(len(table) <= 1 for table in self.tables)
        self.out: list[str] = []
        self.width = 0.0

    @staticmethod
    def _cells(row: _Row, columns: int) -> list[Cell | None]:
        tables = blocks(row.tensor, columns, _ROWS, _BLOCKS)
        return [cell for block in tables if block for line in block.rows if line for cell in line]

    @staticmethod
    def _strip(row: _Row, columns: int) -> list[Cell | None]:
        return strip(row.tensor, columns * _STRIP_LINES)

    def _block_width(self, block: Block) -> float:
        return self.cell_width * max(len(line) for line in block.rows if line is not None)

    # In words.

    def described(self) -> str:
        """Everything that the picture says, as sentences."""
        sentences = []
        for row, tables, cells in zip(self.rows, self.tables, self.strips):
            facts = f"{_shape_facts(row.memory)} · {_size_facts(row.memory)}".replace(" ·", ",")
            sentences.append(f"{row.label}: {facts}.")
            facts = self._storage_facts(row).replace(" ·", ",")
            sentences.append(f"{facts[0].upper()}{facts[1:]}.")
            if tables and not row.memory.device == "meta":
                sentences.append(f"Values {self._values_in_words(row, tables)}.")
            if cells:
                unused = [str(c.offset) for c in cells if c and not c.used]
                rest = f", with position{'s' if len(unused) > 1 else ''} {listed(unused)} not used" if unused else ""
                sentences.append(f"Storage in order: {_line_in_words(cells)}{rest}.")
        return " ".join(sentences)

    @staticmethod
    def _values_in_words(row: _Row, tables: list[Block | None]) -> str:
        parts = []
        for block in tables:
            if block is None:
                parts.append("…")
                continue
            lines = ["…" if line is None else _line_in_words(line) for line in block.rows]
            table = lines[0] if row.tensor.dim() < 2 else " ".join(f"[{line}]" for line in lines)
            parts.append(f"at {list(block.index)} {table}" if block.index else table)
        return "; ".join(parts)

    def _storage_facts(self, row: _Row) -> str:
        memory = row.memory
        if memory.storage_nbytes is None:
            return "no storage: the meta device keeps no data"
        if memory.storage is None:
            return "storage of 0 B"
        others = [r.label for r in self.rows if r is not row and r.memory.storage == memory.storage]
        facts = [f"storage {_letter(memory.storage)}", f"{memory.storage_nbytes:,} B"]
        if others:
            facts.append(f"shared with {listed(others)}")
        elif len(self.rows) > 1:
            facts.append("not shared")
        if memory.used is not None and memory.used < memory.length:
            facts.append(f"uses {memory.used:,} of its {counted(memory.length, 'element')}")
        if memory.lazy:
            facts.append(f"{memory.lazy} bit set: the storage holds the values without it")
        return " · ".join(facts)

    # In lines and boxes.

    def drawn(self) -> tuple[str, float, float]:
        y = 0.0
        for k, row in enumerate(self.rows):
            if k:
                self.out.append(f'<path class="rule" d="M{number(_MARGIN)} {number(y)}H{number(PAGE_WIDTH - _MARGIN)}"/>')
                y += 8
            y = self._row(row, self.tables[k], self.strips[k], y)
        if any(self.strips):
            y = self._text(["small number: position in the storage"], "heading", _HEADING, _MARGIN, y - 4) + 6
        width = max(self.width + _MARGIN, PAGE_WIDTH)
        return "\n".join(self.out), width, y

    def _row(self, row: _Row, tables: list[Block | None], cells: list[Cell | None], y: float) -> float:
        room = PAGE_WIDTH - 2 * _MARGIN
        y = self._text(wrap(row.label, _NAME, room), "name", _NAME, _MARGIN, y)
        for facts in (_shape_facts(row.memory), _size_facts(row.memory), self._storage_facts(row)):
            y = self._text(_wrap_facts(facts, room), "fact", _FACT, _MARGIN, y)
        y += 6
        if not tables:
            y = self._text(["no elements"], "heading", _HEADING, _MARGIN, y) + 4
        top = self._text(["values"], "heading", _HEADING, _MARGIN, y) + 4 if tables else y
        bottom = self._tables(tables, row.memory.device == "meta", top)
        if cells:
            heading = f"storage {_letter(row.memory.storage or 0)}"
            if self.beside:
                side = self._text([heading], "heading", _HEADING, self.strip_x, y) + 4
                bottom = max(bottom, self._line(cells, self.strip_x, side, "place"))
            else:
                y = self._text([heading], "heading", _HEADING, _MARGIN, bottom + 4) + 4
                for start in range(0, len(cells), self.columns):
                    y = self._line(cells[start : start + self.columns], _MARGIN, y, "place") + 2
                bottom = y
        return bottom + _GAP

    def _tables(self, tables: list[Block | None], meta: bool, y: float) -> float:
        """Blocks from left to right, in a new line where the page ends."""
        x, bottom = _MARGIN, y
        for block in tables:
            width = self.cell_width if block is None else self._block_width(block)
            if x > _MARGIN and x + width > PAGE_WIDTH - _MARGIN:
                x, y = _MARGIN, bottom + 6
            top = y
            if block is None:
                top = self._text(["…"], "heading", _HEADING, x + 6, top)
            else:
                if block.index:
                    top = self._text([str(list(block.index))], "heading", _HEADING, x, top) + 4
                for line in block.rows:
                    if line is None:
                        top = self._text(["⋮"], "value", _VALUE, x + self.cell_width / 2 - 3, top) + 2
                    else:
                        top = self._line(line, x, top, "element meta" if meta else "element")
            bottom = max(bottom, top)
            x += width + 16
        return bottom

    def _line(self, cells: list[Cell | None] | tuple[Cell | None, ...], x: float, y: float, kind: str) -> float:
        for cell in cells:
            middle = number(x + self.cell_width / 2)
            if cell is None:
                self.out.append(f'<text class="value" x="{middle}" y="{number(y + 21)}" text-anchor="middle">…</text>')
            else:
                self.out.append(self._cell(cell, x, y, middle, kind))
            x += self.cell_width
        self.width = max(self.width, x)
        return y + _CELL_HEIGHT

    def _cell(self, cell: Cell, x: float, y: float, middle: str, kind: str) -> str:
        text = _value(cell.value)
        colour = f" v{self.colours[text]}" if text in self.colours and cell.used else ""
        dashes = "" if cell.used and cell.value is not None else ' stroke-dasharray="3 3"'
        offset = f'<text class="offset" x="{middle}" y="{number(y + 28)}" text-anchor="middle" font-size="{number(_OFFSET)}">{cell.offset}</text>'
        return (
            f'<g class="{kind}{colour}{"" if cell.used else " unused"}"><rect x="{number(x + 1)}" y="{number(y + 1)}"'
            f' width="{number(self.cell_width - 2)}" height="{number(_CELL_HEIGHT - 2)}" rx="3" fill="none"'
            f' stroke="currentColor"{dashes}/><text class="value" x="{middle}" y="{number(y + 16)}"'
            f' text-anchor="middle" font-size="{number(_VALUE)}">{escaped(text)}</text>'
            f"{'' if cell.value is None else offset}</g>"
        )

    def _text(self, lines: list[str], style: str, size: float, x: float, y: float) -> float:
        for line in lines:
            y += size + 4
            self.out.append(
                f'<text class="{style}" x="{number(x)}" y="{number(y)}" font-size="{number(size)}">{escaped(line)}</text>'
            )
            self.width = max(self.width, x + len(line) * MONO_ADVANCE * size)
        return y


def _line_in_words(cells: list[Cell | None] | tuple[Cell | None, ...]) -> str:
    return ", ".join("…" if cell is None else _value(cell.value) for cell in cells)


def _wrap_facts(facts: str, width: float) -> list[str]:
    """Break at the dots between facts where possible, inside of a fact where not."""
    lines = [""]
    for fact in facts.split(" · "):
        joined = f"{lines[-1]} · {fact}" if lines[-1] else fact
        if text_width(joined, _FACT) <= width:
            lines[-1] = joined
        else:
            pieces = wrap(fact, _FACT, width)
            lines = [*lines, *pieces] if lines[-1] else pieces
    return lines
