"""The occupancy explorer says what the vendor's rules say, and its picture holds what it counts."""

import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.gpu.occupancy import occupancy
from mlsys.specs.sm import SMS, sm
from mlsys.viz.occupancy import (
    REGS,
    SHADES,
    SMEM,
    THREADS,
    along,
    plain_division,
    register_steps,
    settle,
    stairs,
    throughput_lines,
)
from mlsys.viz.style import COLOUR
from mlsys.widgets.occupancy import CHIPS, OccupancyExplorer, finding, next_step, refusal, rounding


@pytest.fixture
def box():
    return OccupancyExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def rects(picture, **wanted):
    """Rectangles of a picture as (x, y, w, h) whose fill or hatch is as wanted."""
    found = [dict(zip(("x", "y", "w", "h", "fill", "stroke", "hatch", "opacity"), s[1:])) for s in picture.shapes if s[0] == "rect"]
    return [r for r in found if all(r[key] == value for key, value in wanted.items())]


def test_the_first_picture_is_the_lesson(box):
    assert "33 registers leave 75 % of the warps; plain division says 87.5 %" in box.picture.value
    assert "One block more fits with at most 32 registers (now 33)." in box.picture.value
    box.regs.value = 32
    assert "All 64 warp slots are filled: occupancy 100 %" in box.picture.value


def test_it_says_what_the_calculator_says():
    rng = np.random.default_rng(0)
    for chip in SMS:
        for threads, regs, smem in zip(rng.integers(1, 65, 25) * 16, rng.integers(16, 256, 25), rng.integers(0, 100, 25) * 1024):
            here = settle(int(threads), int(regs), int(smem), sm(chip))
            truth = occupancy(chip, int(threads), int(regs), dynamic_smem_bytes=int(smem), opt_in=True)
            assert here.found == truth
            assert here.plain >= truth.blocks_per_sm
            assert set(here.limiters) == set(truth.limiters.split("+")) - {"barriers"}


def test_every_block_that_fits_is_drawn_once(box):
    """Warp slots: as many filled cells as warps; areas of registers and shared memory are to scale."""
    for box.regs.value, box.threads.value, box.smem_kib.value in ((33, 256, 0), (96, 224, 20), (40, 48, 3), (64, 1024, 100)):
        here = box.model()
        picture = box.draw()
        shaded = [r for r in rects(picture) if r["fill"] in SHADES]
        slots = [r for r in shaded if r["x"] < 320 and r["y"] < 290]
        assert len(slots) == here.found.warps_per_sm
        assert len({(r["x"], r["y"]) for r in slots}) == len(slots)
        share = here.found.warps_per_sm * here.launch.regs * 32 / here.on.registers
        registers = [r for r in shaded if 340 < r["x"] and r["y"] < 290]
        assert sum(r["w"] * r["h"] for r in registers) == pytest.approx(share * 374 * 92, rel=1e-6)
        memory = [r for r in shaded if 310 < r["y"] < 345]
        asked = here.found.blocks_per_sm * here.launch.dynamic_smem_bytes / here.on.shared_bytes
        assert sum(r["w"] for r in memory) == pytest.approx(asked * 690, rel=1e-6)


def test_waste_is_seen_where_there_is_some(box):
    waste = {"fill": COLOUR["memory"], "hatch": "x"}
    box.chip.value, box.regs.value = "7.0", 40
    assert len(rects(box.draw(), **waste)) == 1  # the legend alone: a V100 keeps nothing back
    box.regs.value = 41
    assert len(rects(box.draw(), **waste)) == 1 + box.model().found.warps_per_sm


def test_the_limiter_is_red_and_hatched(box):
    assert len(rects(box.draw(), fill=COLOUR["limiter"], hatch="/")) == 1
    box.regs.value, box.threads.value = 32, 256
    assert box.model().limiters == ["warps", "registers"]
    assert len(rects(box.draw(), fill=COLOUR["limiter"], hatch="/")) == 2


@pytest.mark.parametrize("chip, threads, regs, smem, title", [
    ("9.0", 128, 32, 32, "1 KiB on top of each block's shared memory: 6 blocks, not 7"),
    ("8.0", 224, 96, 0, "Each partition holds 5 whole warps of 96 registers: 2 blocks, not 3"),
    ("8.0", 48, 40, 0, "48 threads take 2 whole warps: 24 blocks, not 32"),
    ("8.0", 32, 24, 0, "32 blocks are the most: small blocks leave half of the warp slots empty"),
    ("8.0", 256, 64, 0, "Registers run out first: 4 blocks, 50 % of the warps"),
    ("10.0", 128, 128, 227, "Shared memory runs out first: 1 block, 6.25 % of the warps"),
])
def test_titles_name_the_reason(chip, threads, regs, smem, title):
    assert finding(settle(threads, regs, smem * 1024, sm(chip))) == title


@pytest.mark.parametrize("chip, threads, regs, smem, reason", [
    ("8.0", 1024, 65, 0, "1024 threads take 73,728 registers, and the SM has 65,536"),
    ("8.6", 128, 32, 120, "120 KiB for a block, and A40 gives one at most 99 KiB"),
    ("7.5", 64, 32, 65, "65 KiB for a block, and T4 gives one at most 64 KiB"),
])
def test_a_launch_that_cannot_run_says_why(chip, threads, regs, smem, reason):
    here = settle(threads, regs, smem * 1024, sm(chip))
    assert here.found.blocks_per_sm == 0 and refusal(here) == reason
    assert finding(here) == f"Does not run: {reason}"
    assert next_step(here).startswith("A block fits with at most ")


def test_the_next_step_holds(box):
    """Do what the picture advises, and one block more is there."""
    box.regs.value, box.smem_kib.value, box.chip.value = 49, 20, "9.0"
    here = box.model()
    assert next_step(here) == "One block more fits with at most 48 registers (now 49)."
    more = settle(256, 48, 20 * 1024, here.on)
    assert more.found.blocks_per_sm == here.found.blocks_per_sm + 1
    assert settle(256, 32, 0, sm("8.0")).found.fraction == 1
    assert next_step(settle(256, 20, 0, sm("8.0"))) == "There is room up to 32 registers per thread."


def test_what_the_lesson_says_is_seen(box):
    box.chip.value, box.threads.value, box.regs.value = "9.0", 128, 64
    assert box.model().found.fraction == 0.5
    seen = {}
    for box.smem_kib.value in (27, 28):
        seen[box.smem_kib.value] = box.model().found.blocks_per_sm
    assert seen == {27: 8, 28: 7}
    for chip in SMS:
        assert settle(1024, 64, 0, sm(chip)).found.blocks_per_sm == 1
        assert settle(1024, 65, 0, sm(chip)).found.blocks_per_sm == 0


def test_more_of_anything_asked_for_never_fits_more_blocks():
    here = settle(192, 40, 9000, sm("8.9"))
    for name, values in (("regs", REGS), ("threads", THREADS), ("dynamic_smem_bytes", SMEM)):
        blocks, plain = along(here, name, values)
        assert (np.diff(blocks) <= 0).all() and (np.diff(plain) <= 0).all() and (blocks <= plain).all()


def test_every_corner_draws(box):
    for _, box.chip.value in CHIPS:
        for box.regs.value in (16, 255):
            for box.threads.value in (16, 1024):
                for box.smem_kib.value in (0, 228):
                    assert "nan" not in box.picture.value and "inf" not in box.picture.value
                    here, picture = box.model(), box.draw()
                    assert finding(here).split("'")[0] in box.picture.value and len(finding(here)) < 85
                    inside = [r for r in rects(picture) if r["x"] >= 0 and r["x"] + r["w"] <= picture.width + 1e-6]
                    assert len(inside) == len(rects(picture))
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_an_update_takes_milliseconds(box):
    """Measured 6 ms of CPU time; the limit leaves room for a slow machine."""
    before = time.process_time()
    for _ in range(10):
        box.update()
    assert (time.process_time() - before) / 10 < 0.06


def test_small_things():
    assert rounding(settle(256, 33, 0, sm("8.0"))).startswith("33 registers")
    assert stairs(np.array([1, 2]), np.array([3, 3])) == ([1, 2], [3, 3])
    assert plain_division(1024, 255, 0, sm("8.0")) == 0


def test_steps_show_what_is_handed_out():
    ax = register_steps(sm("8.0"), threads=256)
    plain, steps, dot = ax.lines
    at = np.asarray(steps.get_xdata()) == 33
    assert np.asarray(steps.get_ydata())[at] == 75 and np.asarray(plain.get_ydata())[at] == 87.5
    assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (33, 75)
    assert "33 registers: 75 %, not 87.5 %" in {text.get_text() for text in ax.texts}


def test_lines_of_throughput_are_full_where_they_say():
    ax = throughput_lines(lambda warps, ilp, latency: min(1.0, warps * ilp / latency), latency=18, most=24)
    assert [text.get_text().rsplit(" at ")[1] for text in ax.get_legend().get_texts()] == ["18 warps", "9 warps", "5 warps"]
    assert len({line.get_linestyle() for line in ax.lines[::2]}) == 3
