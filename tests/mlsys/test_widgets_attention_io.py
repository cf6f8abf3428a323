"""The traffic explorer says what the closed forms say, and every end of every slider gives a picture."""

import itertools
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from mlsys.gpu.attention_traffic import Attention, by_queries_bytes, forward_work, naive_bytes, sram_bytes
from mlsys.gpu.fusion import gelu, one_by_one, score
from mlsys.gpu.roofline import limiter
from mlsys.specs import A100_80GB, H100_SXM
from mlsys.viz.fusion import plan_bars, sram_curve
from mlsys.widgets.attention_io import HEADS, AttentionIOExplorer, finding, roofline_rows


@pytest.fixture
def box():
    return AttentionIOExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_it_says_what_the_closed_forms_say(box):
    shape = Attention(8192, 64, heads=HEADS)
    view = box.model()
    assert (view.naive, view.tiled) == (naive_bytes(shape), by_queries_bytes(shape, 64, 64))
    assert view.needed_bytes == sram_bytes(64, 64, 64) and view.fits
    assert box.sentence() in box.readout.value and finding(view) in box.picture.value
    assert "40.5 of 100 KiB" in box.sentence() and "8.66 GB" in box.sentence()


def test_blocks_that_do_not_fit(box):
    box.rows.value, box.cols.value = 1024, 256
    assert finding(box.model()) == "Does not fit: 840 KiB of 100" and "does not fit" in box.sentence()


def test_the_border_is_where_the_roofline_turns(box):
    for box.chip.value, chip in ((A100_80GB.name, A100_80GB), (H100_SXM.name, H100_SXM)):
        border = roofline_rows(box.model())
        shape = Attention(8192, 64, heads=HEADS)
        sides = [limiter(forward_work(shape, by_queries_bytes(shape, rows, 64)), chip) for rows in (border - 16, border)]
        assert sides == ["memory", "compute"] and abs(border / chip.ridge - 1) < 0.12


def test_what_the_lesson_says_is_seen(box):
    """Half a head of queries saves nothing; keys in a block do not matter; 160 and 320 queries reach the ridges."""
    box.rows.value = 32
    assert finding(box.model()).startswith("Blocks too small")
    box.rows.value, before = 128, None
    for box.cols.value in (16, 64, 256):
        assert before in (None, box.model().tiled)
        before = box.model().tiled
    assert roofline_rows(box.model()) == 320
    box.chip.value = A100_80GB.name
    assert roofline_rows(box.model()) == 160


def test_every_corner_draws(box):
    ends = [[control.min, control.max] for control in (box.sram, box.rows, box.cols)]
    for n, d, causal in itertools.product((512, 65536), (32, 256), (False, True)):
        box.tokens.value, box.d.value, box.causal.value = n, d, causal
        for box.sram.value, box.rows.value, box.cols.value in itertools.product(*ends):
            assert "nan" not in box.picture.value and "inf" not in box.picture.value
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_an_update_takes_milliseconds(box):
    """Measured 4 ms of CPU time at the largest setting; the limit leaves room for a slow machine."""
    box.tokens.value, box.causal.value = 65536, True
    before = time.process_time()
    for _ in range(10):
        box.update()
    assert (time.process_time() - before) / 10 < 0.04


def test_figures():
    graph = gelu(10**6)
    plans = {"apart": score(graph, one_by_one(graph), A100_80GB), "together": score(graph, [list(graph.made)], A100_80GB)}
    ax = plan_bars(plans, "A finding")
    assert sum(patch.get_width() for patch in ax.patches) == pytest.approx(sum(s.bytes_moved for s in plans.values()) / 1e9)
    shape = Attention(8192, 64, heads=16)
    naive, tiled, rule, once = sram_curve(shape, 16).lines[:4]
    assert (naive.get_ydata() == naive_bytes(shape) / 1e9).all() and (once.get_ydata() == shape.floor_bytes / 1e9).all()
    assert (tiled.get_ydata() > rule.get_ydata()).all() and (tiled.get_ydata() >= once.get_ydata()).all()
