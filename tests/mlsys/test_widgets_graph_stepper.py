"""The graph stepper and the checkpoint explorer: right slopes, wrong ones where promised, and the trade."""

import numpy as np
import pytest

from mlsys.widgets.checkpointing import CheckpointExplorer, chain_cost
from mlsys.widgets.graph_stepper import EARLY, EXAMPLES, OPS, WAIT, GraphStepper, moment


def run(example, given):
    values = dict(given)
    for o in example.operations:
        values[o.name] = OPS[o.op][0](*(values[i] for i in o.inputs))
    return values["loss"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_waiting_gives_the_slopes_that_nudges_measure(name):
    example, h = EXAMPLES[name], 1e-6
    end = moment(example, WAIT, example.steps)
    for key, at in example.given.items():
        above, below = (run(example, {**example.given, key: at + step}) for step in (h, -h))
        assert end.adjoints[key] == pytest.approx((above - below) / (2 * h), rel=1e-6)


@pytest.mark.parametrize("name", EXAMPLES)
def test_memory_rises_to_the_loss_and_falls_to_nothing(name):
    example = EXAMPLES[name]
    kept = [len(moment(example, WAIT, step).kept) for step in range(example.steps + 1)]
    top = len(example.operations)
    assert kept[: top + 1] == sorted(kept[: top + 1]) and kept[top:] == sorted(kept[top:], reverse=True)
    assert kept[0] == kept[-1] == 0 and max(kept) == 3


@pytest.mark.parametrize("name", EXAMPLES)
def test_going_on_at_once_is_wrong_and_says_so(name):
    box = GraphStepper()
    box.graph.value, box.order.value = name, EARLY
    box.step.value = box.step.max
    assert "instead of" in box.sentence() and box.missed() == "x"
    box.order.value = WAIT
    assert "instead of" not in box.sentence()


def test_numbers_that_the_lesson_names():
    box = GraphStepper()
    box.order.value, box.step.value = EARLY, 6
    assert "x ends at 4 instead of 16" in box.readout.value
    box.graph.value, box.step.value = "a layer with a skip connection", 8
    assert "x ends at 18 instead of 9" in box.readout.value


def test_a_shorter_graph_lowers_the_step():
    box = GraphStepper()
    box.graph.value, box.step.value = "a layer with a skip connection", 8
    box.graph.value = "the graph from above"
    assert box.step.value == box.step.max == 6


def replayed(layers, segments):
    """Peak and repeated layers by playing the forward and the backward pass, one activation at a time."""
    short, longer = divmod(layers, segments)
    sizes = [short + (n < longer) for n in range(segments)]
    alive, peak, again = set(), 0, 0
    starts = [sum(sizes[:n]) for n in range(segments)]
    for start, size in zip(starts, sizes):  # forward: only the last segment keeps all its layers' inputs
        alive |= set(range(start, start + size)) if start == starts[-1] else {start}
        peak = max(peak, len(alive))
    for start, size in reversed(list(zip(starts, sizes))):
        missing = set(range(start, start + size)) - alive
        again += size if missing or start != starts[-1] else 0
        alive |= missing
        peak = max(peak, len(alive))
        alive -= set(range(start, start + size))
    assert not alive
    return peak, again


@pytest.mark.parametrize("layers", [4, 7, 36, 100])
def test_chain_cost_is_what_a_replay_counts(layers):
    for segments in range(1, layers + 1):
        cost = chain_cost(layers, segments)
        assert (cost.peak, cost.again) == replayed(layers, segments)
        assert 1 <= cost.time < 4 / 3


def test_the_best_number_of_segments_is_near_the_root():
    peaks = {s: chain_cost(100, s).peak for s in range(1, 101)}
    assert [s for s in peaks if peaks[s] == min(peaks.values())] == [8, 9, 10, 11, 12, 13]
    assert min(peaks.values()) == 19 and peaks[1] == peaks[100] == 100


def test_fewer_layers_lower_the_segments():
    box = CheckpointExplorer()
    box.layers.value, box.segments.value = 100, 60
    box.layers.value = 10
    assert box.segments.value == box.segments.max == 10


def test_segments_outside_the_chain_are_refused():
    with pytest.raises(ValueError, match="segments=5"):
        chain_cost(4, 5)


def test_the_figure_marks_the_best_step():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from mlsys.viz.backpropagation import difference_errors

    ax = difference_errors(np.array([1e-6, 1e-4, 1e-2]), {"float64": np.array([1e-8, 1e-10, 1e-6])})
    assert "best: h = 1e-04, error 1e-10" in [text.get_text() for text in ax.texts]
