"""Figures of the block's lesson: shares add up to 100 %, the title counts what was beaten."""

import matplotlib
import pytest

from mlsys.specs.models import GPT2_SMALL, LLAMA3_8B
from mlsys.transformer.counts import parameter_parts
from mlsys.viz.block import learning_curve, part_bars

matplotlib.use("Agg")


def test_bars_show_all_shares_but_the_thinnest():
    ax = part_bars({m.name: parameter_parts(m) for m in (GPT2_SMALL, LLAMA3_8B)})
    for row in (0, 1):
        width = sum(p.get_width() for p in ax.patches if p.get_y() < row < p.get_y() + p.get_height())
        assert 99.8 < width <= 100
    texts = [t.get_text() for t in ax.texts]
    assert texts == ["31 %", "23 %", "46 %", "7 %", "17 %", "70 %", "7 %"]


@pytest.mark.parametrize("end, beaten", [(3.4, 2), (4.0, 1), (5.0, 0)])
def test_title_counts_the_tables_that_are_beaten(end, beaten):
    losses = [6.0 - 0.01 * step for step in range(100)]
    ax = learning_curve(losses, {"letters": 4.5, "pairs": 3.5}, end)
    title = ax.get_title("left") or ax.get_title()
    assert f"beat {beaten} of 2" in title and title.startswith("100 steps")
