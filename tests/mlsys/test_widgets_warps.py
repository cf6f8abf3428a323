"""The warp explorer says what the scheduler does, and the pictures of the lesson show what they were given."""

import xml.etree.ElementTree as ET

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.gpu.scheduler import ISSUED, chain, ipc_bound, simulate
from mlsys.gpu.simt import kernel, thread_idx
from mlsys.gpu.waves import waves
from mlsys.specs import H100_SXM, sm
from mlsys.viz import warps as draw
from mlsys.viz.style import COLOUR
from mlsys.widgets.warps import MOST_WARPS, SHOWN, WarpExplorer, finding, round_masks


@pytest.fixture
def box():
    return WarpExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@kernel
def one_round(on_long, y):
    i = thread_idx.x
    y[i] = i
    if on_long[i]:
        y[i] = 1
        y[i] = 2
        y[i] = 3
        y[i] = 4
        y[i] = 5
        y[i] = 6
    else:
        y[i] = 1
        y[i] = 2
    y[i] = 7


def test_the_round_is_what_the_simulated_machine_issues():
    """Beside the index, one common instruction and the condition before the branch; one common one behind it."""
    for lanes in range(33):
        masks = round_masks(lanes)
        report = one_round.launch(1, 32, (np.arange(32) < lanes, np.zeros(32)), trace=True, timeline=0)
        shapes = [bits for _, bits in report.timeline[1:]] + [2**32 - 1]
        assert [int(np.packbits(mask, bitorder="little").view("<u4")[0]) for mask in masks.T] == shapes


def test_what_the_lesson_says_is_seen(box):
    assert [round_masks(lanes).shape[1] for lanes in (0, *range(1, 32), 32)] == [6, *[12] * 31, 10]
    box.latency.value, box.warps.value = 32, 16
    rates = []
    for box.ilp.value in (1, 2, 3, 4):
        rates.append(box.model()[1])
    assert rates == [0.5, 1.0, 1.0, 1.0]
    for box.ilp.value, box.warps.value in ((1, 5), (3, 9)):
        by_policy = set()
        for policy in tuple(box.policy.options):
            box.policy.value = policy
            by_policy.add(box.model()[1])
        assert len(by_policy) == 1


def test_the_rate_is_the_bound_for_every_setting(box):
    for box.warps.value in (1, 7, 16):
        for box.latency.value in (1, 9, 32):
            for box.ilp.value in (1, 4):
                schedule, ipc = box.model()
                assert ipc == pytest.approx(ipc_bound(box.warps.value, box.latency.value, box.ilp.value))
                assert schedule.cycles >= SHOWN and schedule.cycles % box.latency.value == 0


def test_sentence_and_title(box):
    box.warps.value, box.latency.value, box.lanes.value = 4, 8, 1
    assert "0.50 instructions a cycle (bound 0.50)" in box.sentence()
    assert "1 lane on the long side: a round takes 12 issue slots" in box.sentence()
    assert "26 % of the peak: too few instructions in flight and lanes are masked off" in box.picture.value
    assert finding(1.0, round_masks(32)) == "100 % of the peak: every slot and every lane is in use"


def test_squares_are_the_issued_slots(box):
    for box.warps.value, box.lanes.value in ((3, 5), (16, 31)):
        schedule, _ = box.model()
        shapes = box.draw().shapes
        shown = int(np.count_nonzero(schedule.warp[:SHOWN] >= 0))
        fills = [shape[5] for shape in shapes if shape[0] == "rect" and shape[2] < 300]
        assert fills.count(COLOUR["compute"]) == shown and fills.count(COLOUR["limiter"]) == SHOWN - shown


def test_every_corner_draws_inside_the_picture(box):
    for box.warps.value in (1, MOST_WARPS):
        for box.latency.value in (1, 32):
            for box.lanes.value in (0, 1, 31, 32):
                picture = box.draw()
                root = ET.fromstring(picture.svg())
                assert root.attrib["role"] == "img" and "nan" not in box.picture.value
                for shape in picture.shapes:
                    if shape[0] == "rect":
                        _, x, y, w, h, *_ = shape
                        assert 0 <= x and x + w <= picture.width and 0 <= y and y + h <= picture.height
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_filled_lanes_are_the_active_ones(box):
    box.lanes.value = 5
    masks = round_masks(5)
    lanes = [shape for shape in box.draw().shapes if shape[0] == "rect" and shape[2] >= 344 and shape[5] == COLOUR["compute"]]
    assert sum(shape[4] for shape in lanes) == pytest.approx(masks.sum() * 128 / 32) and len(lanes) == masks.shape[1]


def test_lane_map_colours_active_lanes():
    ax = draw.lane_map([(1, 0b101), (2, 2**32 - 1)], "A finding", ["a short name", "a name that is too long"])
    shown = np.nan_to_num(ax.images[0].get_array().filled(np.nan))
    assert shown[:, 0].tolist() == [1.0, 0.0, 1.0, *[0.0] * 29] and shown[:, 1].all()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a short name", "a name that is..."]


def test_rare_branch_is_between_the_mean_and_the_whole_branch():
    ax = draw.rare_branch([0, 0.05], [4, 166], 4, 201, "A finding")
    pays, mean, dots = ax.lines
    assert (pays.get_ydata() >= mean.get_ydata() - 1e-9).all() and pays.get_ydata().max() < 205
    assert pays.get_ydata()[-1] == pytest.approx(4 + 201 * (1 - 0.95**32)) and len(dots.get_xdata()) == 2


def test_issue_rows_have_a_square_for_each_issue():
    run = simulate([chain(20, 4)] * 3, cycles=32)
    axes = draw.issue_rows({"three": run}, "A finding")
    squares = next(line for line in axes[0].lines if line.get_marker() == "s")
    assert len(squares.get_xdata()) == np.count_nonzero(run.state == ISSUED) == 24
    assert "three\n24 of 32 slots" in {text.get_text() for text in axes[0].texts}


def test_curves_go_through_the_simulated_dots():
    ax = draw.ipc_curves(6, (1, 2), "A finding", most=8)
    for line, dots, ilp in zip(ax.lines[::2], ax.lines[1::2], (1, 2)):
        assert np.interp(dots.get_xdata(), line.get_xdata(), line.get_ydata()) == pytest.approx(dots.get_ydata(), abs=0.03)
        assert dots.get_ydata() == pytest.approx([min(1, w * ilp / 6) for w in range(1, 9)])


def test_teeth_and_parts():
    ax = draw.wave_teeth(H100_SXM, "A finding", most=3)
    line, lowest = ax.lines
    assert line.get_ydata()[132] == waves(133, H100_SXM).utilisation and len(lowest.get_xdata()) == 2
    assert {text.get_text() for text in ax.texts} == {"133 blocks: 50.4 %"}
    words = "".join(text.get_text() for text in draw.sm_parts("One SM", sm("9.0"), 128).texts)
    assert words.count("64 KiB") == 4 and words.count("16 resident warps") == 4 and "228 KiB" in words and words.count("32 FP32") == 4
