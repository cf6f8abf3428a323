"""The timeline explorer shows what the trace holds, and its figures say what they were given."""

import time
from html import escape

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.profile import device_account, simulate, union
from mlsys.viz.timeline import COLUMNS, MEANINGS, account_bars, columns, filled, meaning, rows_of, timeline
from mlsys.widgets.timeline import LOOPS, STEPS, WIDTHS, TimelineExplorer, accounts, run


@pytest.fixture
def box():
    return TimelineExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("fault", LOOPS)
def test_shares_are_those_of_the_trace(box, fault):
    box.fault.value = fault
    begin, end = box.window()
    assert end - begin == pytest.approx(20e-3)
    trace = run(fault)[0]
    for rank, shares in enumerate(accounts(fault, begin, end)):
        seconds = device_account(trace, rank, (begin, end))
        assert {name: shares[name] * (end - begin) for name in seconds} == pytest.approx(seconds, abs=1e-9)
        assert sum(shares[name] for name in seconds) == pytest.approx(1)
        assert f"rank {rank}: compute {100 * shares['compute']:.0f} %" in box.sentence()
    assert escape(box.sentence()) in box.readout.value and escape(box.finding(), quote=False) in box.picture.value.replace("&#x27;", "'")


def test_what_the_lesson_says_is_seen(box):
    """Idle after the host's wait and busy during it; gaps of the launch-bound loop in the optimizer; rank 0 waits for rank 1."""
    trace = run("sync: the host reads the loss in every step")[0]
    kernels = union(np.concatenate([trace.intervals(kind=kind, rank=0) for kind in ("kernel", "nccl")]))
    for begin, end in trace.intervals(kind="sync", rank=0)[3:-1]:
        during, after = (np.clip(kernels, low, high) for low, high in ((begin, end), (end, end + 4e-3)))
        assert np.diff(during).sum() > 0.95 * (end - begin) and np.diff(after).sum() < 0.02 * 4e-3
    trace = run("launch: eager, optimizer loops over tensors")[0]
    mine = trace.select(rank=0, step=5, kind="kernel")
    gaps = {}
    for adam in (False, True):
        rows = np.array([(e.start_s, e.end_s) for e in mine.events if e.name.startswith("adamw") == adam])
        rows = rows[np.argsort(rows[:, 0])]
        gaps[adam] = (rows[1:, 0] - rows[:-1, 1]).sum()
    assert gaps[True] > 3 * gaps[False]
    box.fault.value = "straggler: rank 1 is 1.5 times slower"
    assert box.finding().startswith("Rank 0 waits in its all-reduce for rank 1")
    box.fault.value, box.width.value = "none", 10e-3
    assert "Kernels run" in box.finding() or "no kernel hides" in box.finding()


def test_every_corner_draws_inside_the_picture(box):
    for box.fault.value in LOOPS:
        for box.start.value in (0.0, 3.0, float(STEPS)):
            for box.width.value in (WIDTHS[0][1], WIDTHS[-1][1]):
                picture = box.draw()
                assert "nan" not in box.picture.value and "inf" not in box.picture.value
                for shape in picture.shapes:
                    if shape[0] == "rect":
                        assert 0 <= shape[1] and shape[1] + shape[3] <= picture.width and shape[2] + shape[4] <= picture.height
                begin, end = box.window()
                assert run(box.fault.value)[0].start_s <= begin
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_the_start_moves_with_the_steps_and_stays_in_the_trace(box):
    steps = run("none")[2]
    for step in (0, 2, 4):
        box.start.value = float(step)
        assert box.window()[0] == pytest.approx(steps[step])
    box.start.value = float(STEPS)
    assert box.window()[1] == pytest.approx(run("none")[0].end_s)


def test_an_update_takes_milliseconds(box):
    """Measured 6 to 9 ms of CPU time; the limit leaves room for a slow machine."""
    for box.fault.value in LOOPS:  # the first look at a loop simulates it
        box.update()
    before = time.process_time()
    for step in range(20):
        box.start.value = 2 + 0.1 * step
    assert (time.process_time() - before) / 20 < 0.06


def test_columns_show_what_fills_them():
    rows = {"matrix": np.array([[0.0, 0.6], [1.0, 1.4]]), "memory": np.array([[0.6, 1.0]]), "idle": np.zeros((0, 2))}
    assert columns(rows, (0.0, 2.0), 4) == [("matrix", 0, 1), ("memory", 1, 2), ("matrix", 2, 3)]
    assert columns({}, (0, 1), 4) == []
    rng = np.random.default_rng(0)
    ends = np.cumsum(rng.uniform(0, 1, 40)).reshape(20, 2)
    edges = np.linspace(0, ends.max(), 17)
    want = [np.clip(np.minimum(ends[:, 1], high) - np.maximum(ends[:, 0], low), 0, None).sum() for low, high in zip(edges, edges[1:])]
    assert np.allclose(filled(ends, edges), want)


def test_every_row_has_a_meaning_with_its_own_look():
    trace = run("launch: eager, optimizer loops over tensors")[0]
    kinds = {meaning(event.name, event.kind) for event in trace.events}
    assert kinds <= MEANINGS.keys() and {"matrix", "memory", "optimizer", "communication", "launch", "work"} <= kinds
    device = [MEANINGS[name][:2] for name in ("matrix", "memory", "optimizer", "communication", "idle")]
    assert len({colour for colour, _ in device}) == len({hatch for _, hatch in device}) == 5
    products = {event.name for event in trace.events if meaning(event.name, event.kind) == "matrix"}
    assert {"qkv", "scores", "scores dq", "mlp up dw", "logits dx"} <= products and not {"gelu", "softmax", "add", "qkv bias"} & products


def test_the_figure_of_a_window_has_its_tracks():
    trace = run("none")[0]
    ax = timeline(trace, (0.055, 0.075), "A finding")
    assert [label.get_text() for label in ax.get_yticklabels()][:3] == ["rank 0 host", "rank 0 compute", "rank 0 comm"]
    assert ax.get_title(loc="left") + ax.get_title() == "A finding" and ax.get_xlabel() == "ms" and ax.get_xlim() == pytest.approx((0, 20))
    tracks = {(rank, track) for rank, track, _ in rows_of(trace)}
    assert {(0, "loader 0"), (0, "device idle"), (1, "compute")} <= tracks and (1, "loader 0") not in tracks
    assert len(ax.collections) <= COLUMNS


def test_bars_are_as_long_as_the_step():
    accounts_s = {}
    for name in ("none", "overlap: all-reduce after backward"):
        trace = simulate(LOOPS[name])
        accounts_s[name] = {part: s / 4 for part, s in device_account(trace, 0, trace.steady(4, 0)).items()}
    ax = account_bars(accounts_s, "A finding")
    written = [text.get_text() for text in ax.texts]
    assert written == [f"{1e3 * sum(parts.values()):.1f}" for parts in accounts_s.values()]
    assert "exposed communication" in [text.get_text() for text in ax.get_legend().get_texts()]
