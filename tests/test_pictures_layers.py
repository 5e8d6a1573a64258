"""Placing boxes and routing edges: nothing runs over anything."""

import random

import pytest
from _ext.pictures.layers import Link, place


def _graphs():
    for seed in range(25):
        rng = random.Random(seed)
        count = rng.randrange(2, 14)
        boxes = [(rng.randrange(80, 180), rng.randrange(40, 90)) for _ in range(count)]
        links = []
        for target in range(1, count):
            for source in rng.sample(range(target), rng.randrange(0, min(3, target) + 1)):
                links += [Link(source, target, rng.choice([None, None, (80.0, 16.0)]))] * rng.choice([1, 1, 2])
        yield pytest.param(boxes, links, rng.randrange(1, 5), id=str(seed))


GRAPHS = list(_graphs())


def pieces(route):
    """Points along a route, a few on each stretch and each bend."""
    points = list(route.points)
    for (x, top, bottom), (x1, top1, _) in zip(points, points[1:]):
        for k in range(9):
            t = k / 8
            yield x, top + (bottom - top) * t
            s = 3 * t * t - 2 * t**3  # the bend is a cubic with upright ends
            yield x + (x1 - x) * s, bottom + (top1 - bottom) * t


@pytest.mark.parametrize(("boxes", "links", "most"), GRAPHS)
def test_no_edge_runs_over_a_box(boxes, links, most):
    placed = place(boxes, links, most)
    for route in placed.routes:
        for x, y in pieces(route):
            assert -0.1 <= x <= placed.width + 0.1
            for (left, top), (width, height) in zip(placed.corners, boxes):
                assert not (left < x < left + width and top + 0.1 < y < top + height - 0.1)


@pytest.mark.parametrize(("boxes", "links", "most"), GRAPHS)
def test_boxes_and_labels_stand_apart(boxes, links, most):
    placed = place(boxes, links, most)
    rects = [(x, y, w, h) for (x, y), (w, h) in zip(placed.corners, boxes)]
    for link, route in zip(links, placed.routes):
        assert (route.label is None) == (link.label is None)
        if link.label:
            x, top, _ = route.points[route.label]
            rects.append((x - link.label[0] / 2, top, *link.label))
    for k, (x, y, w, h) in enumerate(rects):
        assert x >= -0.1 and y >= 0 and x + w <= placed.width + 0.1 and y + h <= placed.height + 0.1
        for x1, y1, w1, h1 in rects[:k]:
            assert x + w <= x1 + 0.1 or x1 + w1 <= x + 0.1 or y + h <= y1 or y1 + h1 <= y


@pytest.mark.parametrize(("boxes", "links", "most"), GRAPHS)
def test_edges_lead_down_from_box_to_box(boxes, links, most):
    placed = place(boxes, links, most)
    for link, route in zip(links, placed.routes):
        (x0, start, _), (x1, _, end) = route.points[0], route.points[-1]
        (left, top), (width, height) = placed.corners[link.source], boxes[link.source]
        assert left < x0 < left + width and start == top + height
        (left, top), (width, _) = placed.corners[link.target], boxes[link.target]
        assert left < x1 < left + width and end == top
        heights = [y for _, top, bottom in route.points for y in (top, bottom)]
        assert heights == sorted(heights)


@pytest.mark.parametrize(("boxes", "links", "most"), GRAPHS)
def test_rows_hold_no_more_than_allowed(boxes, links, most):
    tops = [y for _, y in place(boxes, links, most).corners]
    assert max(tops.count(y) for y in tops) <= most


def test_parallel_links_are_apart():
    routes = place([(100, 40)] * 2, [Link(0, 1)] * 2, 4).routes
    assert routes[0].points[0][0] != routes[1].points[0][0]
    assert routes[0].points[-1][0] != routes[1].points[-1][0]


def test_a_chain_is_straight():
    placed = place([(100, 40)] * 4, [Link(k, k + 1) for k in range(3)], 4)
    assert {x for route in placed.routes for x, _, _ in route.points} == {50}


def test_links_that_lead_up_are_refused():
    for link in (Link(1, 0), Link(0, 0), Link(0, 2)):
        with pytest.raises(ValueError, match="lower index to a higher one"):
            place([(10, 10)] * 2, [link], 2)
