"""The tile explorer says what the model says, draws at every end of its sliders, and its figures show their data."""

import re
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.gpu import gemm, gemm_validation, sgemm_ladder
from mlsys.gpu.tiles import RESOURCES, Tile, tile_time
from mlsys.specs.accelerators import A40, A100_80GB, A6000, H100_SXM
from mlsys.viz.style import COLOUR
from mlsys.viz.tiling import SHOWN, dips_figure, ladder_figure, measured_figure, parts_figure
from mlsys.widgets.tiles import TileExplorer, finding, sms


@pytest.fixture
def box():
    return TileExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_the_start_is_the_tile_of_the_lesson(box):
    here = tile_time(Tile(128, 128, 8, 8, 8), 4096, 4096, 4096, A6000)
    assert box.model().time_s == here.time_s
    assert f"{here.gflops(4096, 4096, 4096):,.0f} GFLOP/s, limited by issue slots" in box.sentence()
    assert "4.36 GB out of the SMs, 8 KiB and 256 threads a block, 2 on an SM" in box.sentence()
    assert box.sentence() in box.readout.value and "126 times less than without tiles" in box.picture.value


def test_what_the_lesson_says_is_seen(box):
    box.tm.value = box.tn.value = 4
    assert "16,010 GFLOP/s, limited by shared memory" in box.sentence()
    box.tm.value = box.tn.value = 2
    assert "no GPU runs this, 4,096 threads, but a block has at most 1,024" in box.sentence()
    box.tm.value = box.tn.value = 8
    box.bk.value = 64
    assert "64 KiB and 256 threads a block, 1 on an SM; 23,909 GFLOP/s" in box.sentence()
    box.bk.value, box.size.value = 8, 1280
    assert "The last turn uses 16 of 84 SMs: 40 % of the chip is idle" in box.picture.value
    large = box.model().gflops(1280, 1280, 1280)
    box.bm.value = box.bn.value = 64
    assert box.model().gflops(1280, 1280, 1280) > 1.5 * large


def test_the_limiter_is_marked_once_and_named(box):
    for box.tm.value in (4, 8, 16):
        here = box.model()
        assert box.picture.value.count(", limiter") == 1
        assert f"limited by {SHOWN[here.limiter]}" in box.sentence()
        assert here.seconds[here.limiter] == max(here.seconds.values())


def test_every_corner_draws(box):
    for chip in (A6000, A40, A100_80GB, H100_SXM):
        box.chip.value = chip
        for box.size.value in (256, 4160, 8192):
            for control in (box.bm, box.bn, box.bk, box.tm, box.tn):
                start = control.value
                for end in (control.options[0][1], control.options[-1][1]):
                    control.value = end
                    svg = box.picture.value
                    assert "nan" not in svg and "inf" not in svg
                    widths = [float(w) for w in re.findall(r'<rect [^>]*width="(-?[\d.]+)"', svg)]
                    assert min(widths) >= 0 and max(widths) <= 760
                control.value = start
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_nothing_lies_outside_of_the_picture(box):
    for box.size.value, box.bm.value, box.bn.value in ((256, 256, 16), (8192, 16, 256), (4160, 256, 64)):
        for shape in box.draw().shapes:
            if shape[0] == "rect":
                _, x, y, w, h, *_ = shape
                assert -1 <= x and x + w <= 761 and -1 <= y and y + h <= 717, shape


def test_a_tile_that_does_not_fit_says_what_is_too_much(box):
    box.bm.value = box.bn.value = 256
    box.bk.value, box.tm.value = 64, 16
    assert "no block fits on an SM" in box.sentence()
    assert "This tile does not fit: 128 KiB and 90,112 registers for one block" in box.picture.value
    assert "1.3 times what an SM has" in box.picture.value and "turns (down)" not in box.picture.value


def test_sms_come_back_out_of_a_time():
    for chip in (A6000, A100_80GB, H100_SXM):
        for size in (64, 1000, 5000):
            assert sms(tile_time(Tile(64, 64, 8, 8, 8), size, size, size, chip)) == chip.units


def test_titles_are_findings():
    tile = Tile(64, 64, 8, 8, 8)
    assert finding(tile, tile_time(tile, 256, 256, 256, A6000), 256, A6000.peak_fp32) == (
        "The only turn uses 16 of 84 SMs: 81 % of the chip is idle"
    )
    assert finding(tile, None, 256, 1.0) == "This tile does not run"
    thin = Tile(16, 16, 64, 16, 8)
    said = finding(thin, tile_time(thin, 256, 256, 256, A6000), 256, 1.0)
    assert said == "30 of 32 lanes of a warp have no thread: 1,422 GFLOP/s"


def test_a_thin_tile_and_a_short_turn_can_be_seen(box):
    box.size.value, box.bm.value, box.bn.value, box.tm.value, box.tn.value = 8192, 16, 16, 2, 2
    blue = [shape for shape in box.draw().shapes if shape[0] == "rect" and shape[5] == COLOUR["compute"] and shape[2] < 200]
    assert blue and blue[0][4] >= 2 and blue[0][3] == pytest.approx(250 * 84 / 512)
    box.bm.value, box.tm.value, box.tn.value = 256, 16, 1
    close = [shape for shape in box.draw().shapes if shape[0] == "line" and len(shape[1]) == 2 and shape[3] == 0.4]
    assert len(close) == 15  # between rows of threads; those between columns would lie a pixel apart


def test_an_update_takes_milliseconds(box):
    """Measured 3 ms of CPU time; the limit leaves room for a slow machine."""
    before = time.process_time()
    for _ in range(20):
        box.update()
    assert (time.process_time() - before) / 20 < 0.02


def test_the_ladder_figure_shows_both_speeds():
    steps = sgemm_ladder.ladder()
    ax = ladder_figure(steps, "A finding")
    drawn = [bar.get_width() for bar in ax.patches]
    assert drawn == pytest.approx([step.published for step in steps] + [step.gflops for step in steps])
    assert [text.get_text() for text in ax.texts] == [SHOWN[step.limiter] for step in steps]


def test_the_parts_figure_marks_each_limiter():
    tiles = {"a": Tile(32, 32, 32, 1, 1), "b": Tile(128, 128, 8, 8, 8)}
    times = {name: tile_time(tile, 4096, 4096, 4096, A6000) for name, tile in tiles.items()}
    ax = parts_figure(times, "A finding")
    heights = [bar.get_height() for bar in ax.patches]
    for found in times.values():
        for name in RESOURCES:
            assert any(height == pytest.approx(1e3 * found.seconds[name]) for height in heights)
    assert len([text for text in ax.texts if "limiter" in text.get_text()]) == 2


def test_the_other_figures_show_what_they_are_given():
    m = np.arange(100, 200)
    ax = dips_figure(m, m * 1.0, ([120, 150], [90.0, 100.0]), 300, "A finding")
    assert ax.lines[0].get_ydata().tolist() == m.tolist() and ax.lines[1].get_xdata().tolist() == [120, 150]
    measured = gemm_validation.measured()
    ax = measured_figure(measured, gemm.time_s, "A finding")
    assert [len(line.get_xdata()) for line in ax.lines[:3]] == [len(rows) for rows in measured.values()]
    ratio = gemm.time_s("a40", *measured["a40"][:, :3].T) / measured["a40"][:, 3]
    assert np.allclose(ax.lines[1].get_ydata(), ratio)
