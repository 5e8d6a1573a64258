"""A plot's text alternative says what the figure holds."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pytest

from _ext.pictures.plots import describe


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_lines_are_told_by_their_ends_and_extremes(axes):
    axes.plot([1, 2, 3], [10, 5, 7], label="held")
    axes.set(xlabel="steps", ylabel="bytes\nheld")
    assert describe(axes.figure) == "Plot of bytes held against steps. held: 10 at 1, 7 at 3; lowest 5, highest 10."


def test_bars_are_told_by_name(axes):
    axes.barh(["a", "b"], [2000, 0.5])
    axes.set(xlabel="KiB")
    assert describe(axes.figure) == "Plot of KiB. a 2,000, b 0.5."


def test_upright_bars_and_labels(axes):
    axes.bar(["a", "b"], [1, 2], label="made")
    assert describe(axes.figure) == "Plot. made: a 1, b 2." or describe(axes.figure) == "made: a 1, b 2."


def test_many_series_are_counted(axes):
    for at in range(12):
        axes.plot([0, 1, 2], [at, at, at], label=f"s{at}")
    assert describe(axes.figure).endswith("4 more.")


def test_points_and_empty_figures(axes):
    assert describe(axes.figure) == "Plot."
    axes.scatter([1, 2, 3], [1, 2, 3])
    assert describe(axes.figure) == "Points: 3 points."
