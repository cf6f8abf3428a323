"""Pictures of learning: what is drawn is what was handed in."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.data import digits
from mlsys.viz.learning import gap_curves, image_row


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_curves_and_the_best_point():
    train, valid = np.linspace(0.5, 1.0, 6), np.array([0.5, 0.8, 0.9, 0.7, 0.6, 0.6])
    ax = gap_curves(range(1, 7), train, valid, "epoch", "A finding")
    first, second, best = ax.lines
    assert np.allclose(first.get_ydata(), 100 * train) and np.allclose(second.get_ydata(), 100 * valid)
    assert (best.get_xdata()[0], best.get_ydata()[0]) == (3, 90)
    assert first.get_linestyle() != second.get_linestyle()
    assert {text.get_text() for text in ax.texts} == {"training", "validation", "best 90 %"}


def test_sizes_stand_on_a_log_axis():
    ax = gap_curves([1, 2, 4, 8], [0.1] * 4, [0.1] * 4, "units", "", log=True, ax=plt.subplots()[1])
    assert ax.get_xscale() == "log" and [t.get_text() for t in ax.get_xticklabels()] == ["1", "2", "4", "8"]


def test_image_row_shows_each_image_once():
    data = digits().take(slice(5))
    ax = image_row(data.images, data.labels)
    (image,) = ax.images
    assert image.get_array().shape == (10, 50)
    assert np.isclose(image.get_array().sum(), data.images.sum())
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2", "3", "4"]
