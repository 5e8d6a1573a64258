"""How a strided tensor lies in memory, read from the tensor and from its storage."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

_COUNTED = 1_000_000  # offsets that are told apart one by one; above, `used` is left open


@dataclass(frozen=True)
class Cell:
    """One element. value: None on the meta device. offset: its position in the storage, in elements."""

    value: bool | int | float | complex | None
    offset: int
    used: bool = True


@dataclass(frozen=True)
class Block:
    """A table of elements: `None` in place of a row or a cell stands for those that are left out.

    index: where the block is in the leading dimensions; empty for tensors of up to two dimensions.
    """

    index: tuple[int, ...]
    rows: tuple[tuple[Cell | None, ...] | None, ...]


@dataclass(frozen=True)
class Memory:
    """What one tensor is and where its elements are.

    storage: a number for each storage in the picture, None where there are no bytes: on the meta device, and for
        a storage of 0 bytes.
    storage_nbytes: bytes; None on the meta device.
    used, length: storage elements that the tensor reaches, and all of them, in elements of its dtype;
        used is None where the offsets are too many to be told apart.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str
    offset: int
    numel: int
    nbytes: int
    contiguous: bool
    storage: int | None
    storage_nbytes: int | None
    used: int | None
    length: int
    lazy: str


def read(tensor: Tensor, storages: list[int]) -> Memory:
    """Measure `tensor`; its storage's address is looked up in `storages`, and added when it is not there."""
    storage = tensor.untyped_storage()
    meta = tensor.is_meta
    number = None
    if not meta and storage.nbytes():
        if storage.data_ptr() not in storages:
            storages.append(storage.data_ptr())
        number = storages.index(storage.data_ptr())
    length = 0 if meta else storage.nbytes() // tensor.element_size()
    offsets = _offsets(tensor)
    return Memory(
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()),
        dtype=str(tensor.dtype),
        device=str(tensor.device),
        offset=tensor.storage_offset(),
        numel=tensor.numel(),
        nbytes=tensor.nbytes,
        contiguous=tensor.is_contiguous(),
        storage=number,
        storage_nbytes=None if meta else storage.nbytes(),
        used=None if offsets is None else len(offsets),
        length=length,
        lazy="conj" if tensor.is_conj() else "neg" if tensor.is_neg() else "",
    )


def blocks(tensor: Tensor, columns: int, rows: int, count: int) -> list[Block | None]:
    """The elements of `tensor` as tables of at most `columns` by `rows`, at most `count` of them.

    What is more than that is left out in the middle; `None` stands for blocks left out.
    """
    if not tensor.numel():
        return []
    table = tensor if tensor.dim() >= 2 else tensor.reshape(1, -1) if tensor.is_contiguous() else tensor.unsqueeze(0)
    leading = table.shape[:-2]
    found: list[Block | None] = []
    for k in elided(math.prod(leading), count):
        if k is None:
            found.append(None)
            continue
        index = _unravel(k, leading)
        part = table[index] if index else table
        found.append(
            Block(
                index,
                tuple(
                    None
                    if r is None
                    else tuple(None if c is None else _cell(part, r, c) for c in elided(part.shape[1], columns))
                    for r in elided(part.shape[0], rows)
                ),
            )
        )
    return found


def strip(tensor: Tensor, most: int) -> list[Cell | None]:
    """The storage under `tensor`, element by element in its dtype; at most `most` cells, those left out as None."""
    if tensor.is_meta:
        return []
    storage = tensor.untyped_storage()
    length = storage.nbytes() // tensor.element_size()
    offsets = _offsets(tensor)
    first = tensor.storage_offset()
    if length <= most:
        wanted = set(range(length))
    else:
        # Both ends, and the place where the tensor begins; two cells go to the gaps between them.
        end = max(1, most // 4)
        start = max(first, end)
        middle = range(start, min(length, start + most - 2 * end - 2))
        wanted = {*range(end), *middle, *range(length - end, length)}
    cells: list[Cell | None] = []
    for position in sorted(wanted):
        if cells and cells[-1] is not None and cells[-1].offset != position - 1:
            cells.append(None)
        value = torch.empty(0, dtype=tensor.dtype).set_(storage, position, (1,), (1,)).item()
        cells.append(Cell(value, position, offsets is None or position in offsets))
    return cells


def elided(size: int, most: int) -> list[int | None]:
    """0 … size - 1, with one None in place of the middle when they are more than `most`."""
    if size <= most:
        return list(range(size))
    tail = (most - 1) // 2
    return [*range(most - 1 - tail), None, *range(size - tail, size)]


def _cell(table: Tensor, row: int, column: int) -> Cell:
    element = table[row, column]
    return Cell(None if table.is_meta else element.item(), element.storage_offset())


def _unravel(k: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for size in reversed(sizes):
        k, rest = divmod(k, size)
        index.append(rest)
    return tuple(reversed(index))


def _offsets(tensor: Tensor) -> set[int] | range | None:
    """Every position in the storage that the tensor reaches; None when they are too many to be told apart."""
    if not tensor.numel():
        return range(0)
    # A dimension of stride 0 reaches nothing new.
    moving = [(size, step) for size, step in zip(tensor.shape, tensor.stride()) if step and size > 1]
    first = tensor.storage_offset()
    last = first + sum((size - 1) * step for size, step in moving)
    # Without overlap the positions are as many as the elements; a run without a hole is then a range.
    expected = 1
    for size, step in sorted(moving, key=lambda m: m[1]):
        if step != expected:
            break
        expected *= size
    else:
        return range(first, last + 1)
    if math.prod(size for size, _ in moving) > _COUNTED:
        return None
    return {first + sum(steps) for steps in product(*(range(0, size * step, step) for size, step in moving))}
