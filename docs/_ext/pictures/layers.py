"""Place boxes in layers from top to bottom and route edges between them, without a box in any edge's way.

The usual way (Sugiyama): layers by longest path, a dummy in every layer that an edge passes, fewer crossings by
barycentres, then x by least squares.
Layers of boxes take turns with layers of labels, so that a label has a place of its own as well.
"""

from __future__ import annotations

from dataclasses import dataclass

GAP = 14.0  # px between neighbours in a layer
BEND = 17.0  # px between a layer and the next one, in which edges bend
PORT = 26.0  # px between two edges at the same side of a box
LANE = 8.0  # px that an edge takes in a layer that it passes
_SWEEPS = 12


@dataclass(frozen=True)
class Link:
    """An edge to be routed. label: (width, height) in px of a label that is to stand on it, or None."""

    source: int
    target: int
    label: tuple[float, float] | None = None


@dataclass(frozen=True)
class Route:
    """points: (x, top, bottom) of every stretch on which the edge runs straight down, from source to target;
    between two stretches it bends.
    label: index of the stretch that the label stands on, or None.
    """

    points: tuple[tuple[float, float, float], ...]
    label: int | None


@dataclass(frozen=True)
class Placement:
    """corners: top left corner of each box, in px; routes: one for each link; width and height of it all, in px."""

    corners: tuple[tuple[float, float], ...]
    routes: tuple[Route, ...]
    width: float
    height: float


def place(boxes: list[tuple[float, float]], links: list[Link], most: int) -> Placement:
    """Place `boxes` (width and height in px) so that links run downwards, at most `most` boxes beside each other.

    Links lead from a lower index to a higher one, else ValueError.
    """
    if any(not 0 <= link.source < link.target < len(boxes) for link in links):
        raise ValueError("a link leads from a lower index to a higher one")
    level = _levels(len(boxes), links, most)
    grid = _Grid(boxes, links, level)
    grid.order()
    grid.spread()
    return grid.placement()


def _levels(count: int, links: list[Link], most: int) -> list[int]:
    earliest = [0] * count
    for link in sorted(links, key=lambda k: k.target):
        earliest[link.target] = max(earliest[link.target], earliest[link.source] + 1)
    # What has no source stands close to its first use.
    targets = {link.target for link in links}
    for n in range(count):
        uses = [earliest[k.target] for k in links if k.source == n]
        if n not in targets and uses:
            earliest[n] = min(uses) - 1
    level, taken = [0] * count, {}
    for n in sorted(range(count), key=lambda n: (earliest[n], n)):
        level[n] = max([earliest[n], *(level[k.source] + 1 for k in links if k.target == n)])
        while taken.get(level[n], 0) >= most:
            level[n] += 1
        taken[level[n]] = taken.get(level[n], 0) + 1
    used = sorted(set(level))
    return [used.index(v) for v in level]


class _Grid:
    """Cells in rows: even rows hold boxes, odd rows hold labels, and an edge has a dummy in every row it passes."""

    def __init__(self, boxes: list[tuple[float, float]], links: list[Link], level: list[int]) -> None:
        self.boxes, self.links = boxes, links
        self.size = list(boxes)
        self.row = [2 * v for v in level]
        self.chains: list[list[int]] = []
        for link in links:
            chain = [link.source]
            last = self.row[link.target] - 1
            for row in range(self.row[link.source] + 1, last + 1):
                chain.append(len(self.size))
                self.size.append(link.label if link.label and row == last else (LANE, 0.0))
                self.row.append(row)
            self.chains.append([*chain, link.target])
        self.above: list[list[int]] = [[] for _ in self.size]
        self.below: list[list[int]] = [[] for _ in self.size]
        for chain in self.chains:
            for a, b in zip(chain, chain[1:]):
                self.below[a].append(b)
                self.above[b].append(a)
        self.rows: list[list[int]] = [[] for _ in range(max(self.row, default=0) + 1)]
        for n, row in enumerate(self.row):
            self.rows[row].append(n)
        self.x: list[float] = []

    def order(self) -> None:
        """Order the cells of each row; the order with the fewest crossings wins, the first one among equals."""
        best, best_rows = self._crossings(), [list(r) for r in self.rows]
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            rows = self.rows[1:] if down else self.rows[-2::-1]
            for row in rows:
                position = {n: k for r in self.rows for k, n in enumerate(r)}
                near = self.above if down else self.below
                row.sort(key=lambda n: _mean([position[m] for m in near[n]], position[n]))
            crossings = self._crossings()
            if crossings < best:
                best, best_rows = crossings, [list(r) for r in self.rows]
        self.rows = best_rows

    def _crossings(self) -> int:
        position = {n: k for r in self.rows for k, n in enumerate(r)}
        total = 0
        for row in self.rows:
            pairs = [(position[a], position[b]) for a in row for b in self.below[a]]
            total += sum((a - c) * (b - d) < 0 for k, (a, b) in enumerate(pairs) for c, d in pairs[:k])
        return total

    def spread(self) -> None:
        """Choose the x of each cell's centre: near to its neighbours' centres, far enough from the next in its row."""
        self.x = [0.0] * len(self.size)
        for row in self.rows:
            self._settle(row, [0.0] * len(row))
        for sweep in range(4 * _SWEEPS):
            down = sweep % 2 == 0
            for row in self.rows if down else self.rows[::-1]:
                first, second = (self.above, self.below) if down else (self.below, self.above)
                self._settle(row, [_mean([self.x[m] for m in first[n] or second[n]], self.x[n]) for n in row])
        # The last sweep went up and may have left behind what hangs below a single cell.
        for n in (n for row in self.rows for n in row if len(self.above[n]) == 1):
            parent = self.above[n][0]
            if len(self.below[parent]) == 1 and self._is_free(n, self.x[parent]):
                self.x[n] = self.x[parent]
        for chain in self.chains:
            self._straighten(chain[1:-1])
        left = min((x - w / 2 for x, (w, _) in zip(self.x, self.size)), default=0.0)
        self.x = [x - left for x in self.x]

    def _straighten(self, cells: list[int]) -> None:
        """Put the cells of an edge below each other where the others leave room: the nearest such x wins."""
        for x in sorted({self.x[n] for n in cells}, key=lambda x: (sum(abs(self.x[n] - x) for n in cells), x)):
            if all(self._is_free(n, x) for n in cells):
                for n in cells:
                    self.x[n] = x
                return

    def _is_free(self, n: int, x: float) -> bool:
        row = self.rows[self.row[n]]
        k = row.index(n)
        # Half a pixel less than the full distance is still apart.
        left = k == 0 or x - self.x[row[k - 1]] >= self._distance(row[k - 1], n) - 0.5
        return left and (k == len(row) - 1 or self.x[row[k + 1]] - x >= self._distance(n, row[k + 1]) - 0.5)

    def _distance(self, a: int, b: int) -> float:
        """Smallest distance between the centres of two neighbours."""
        gap = GAP if min(a, b) < len(self.boxes) else LANE
        return round((self.size[a][0] + self.size[b][0]) / 2 + gap, 1)

    def _settle(self, row: list[int], wanted: list[float]) -> None:
        """Least squares with the order kept (pool adjacent violators)."""
        offset, offsets = 0.0, []
        for k, n in enumerate(row):
            if k:
                offset += self._distance(row[k - 1], n)
            offsets.append(offset)
        pools: list[list[float]] = []
        for want, offset in zip(wanted, offsets):
            pools.append([want - offset, 1.0])
            while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
                (a, n), (b, m) = pools[-2:]
                pools[-2:] = [[(a * n + b * m) / (n + m), n + m]]
        flat = [mean for mean, n in pools for _ in range(int(n))]
        for n, mean, offset in zip(row, flat, offsets):
            # Whole tenths of a pixel, so that sums in another order cannot change a picture.
            self.x[n] = round(mean + offset, 1)

    def placement(self) -> Placement:
        tops, bottoms, y = [], [], 0.0
        for row in self.rows:
            height = max((self.size[n][1] for n in row), default=0.0)
            tops.append(y)
            bottoms.append(y + height)
            y += height + BEND
        corners = tuple((self.x[n] - w / 2, tops[self.row[n]]) for n, (w, _) in enumerate(self.boxes))
        leave, arrive = self._ports(self.below, False), self._ports(self.above, True)
        routes = []
        for link, chain in zip(self.links, self.chains):
            source, target = chain[0], chain[-1]
            row = self.row[source]
            points = [(leave[source, chain[1]], tops[row] + self.boxes[source][1], bottoms[row])]
            points += [(self.x[n], tops[self.row[n]], bottoms[self.row[n]]) for n in chain[1:-1]]
            points.append((arrive[target, chain[-2]], tops[self.row[target]], tops[self.row[target]]))
            routes.append(Route(tuple(points), len(points) - 2 if link.label else None))
        width = max((x + w / 2 for x, (w, _) in zip(self.x, self.size)), default=0.0)
        return Placement(corners, tuple(routes), width, bottoms[-1] if bottoms else 0.0)

    def _ports(self, near: list[list[int]], arrive: bool) -> dict[tuple[int, int], float]:
        """x at which the edge between a box and the next cell meets the box."""
        ports = {}
        for n, (width, _) in enumerate(self.boxes):
            cells = sorted(near[n], key=lambda m: (self.x[m], m))
            step = min(PORT, (width - 20) / max(1, len(cells) - 1))
            for k, m in enumerate(cells):
                ports[n, m] = self.x[n] + (k - (len(cells) - 1) / 2) * step
        return ports


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
