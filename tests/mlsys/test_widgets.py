"""Every widget: answers at both ends of every control, draws both kinds of picture, has labels."""

import xml.etree.ElementTree as ET

import pytest

import mlsys.widgets
from tests.benchmarks.widgets import all_widgets, controls, values


@pytest.mark.parametrize("kind", list(all_widgets()), ids=lambda k: k.__name__)
def test_widget(kind):
    box = kind()
    for control in controls(box):
        assert control.description, "a control without a label"
        if control.disabled:
            continue
        changes = shown(box, control) > 1 or len(values(control)) == 1
        if not changes:  # what acts only beside other settings, such as a rule for several warps that are ready
            others = [(other, other.value) for other in controls(box) if other is not control and not other.disabled]
            for other, _ in others:
                other.value = values(other)[-1]
            changes = shown(box, control) > 1
            for other, value in others:
                other.value = value
        assert changes, f"{control.description}: nothing changes from end to end"


def shown(box, control) -> int:
    """How many different pictures a control makes from end to end; it is put back."""
    start, seen = control.value, set()
    for value in values(control):
        control.value = value
        ET.fromstring(box.picture.value)
        assert len(box.sentence()) > 10
        seen.add(box.picture.value + box.readout.value)
    control.value = start
    return len(seen)


@pytest.mark.parametrize("kind", list(all_widgets()), ids=lambda k: k.__name__)
def test_all_controls_at_their_ends_together(kind):
    for pick in (0, -1):
        box = kind()
        for control in controls(box):
            control.value = values(control)[pick]
        ET.fromstring(box.picture.value)


@pytest.mark.parametrize("kind", list(all_widgets()), ids=lambda k: k.__name__)
def test_display_has_a_static_twin(kind):
    box = kind()
    bundle = box._repr_mimebundle_()
    assert bundle["image/png"][:4] == b"\x89PNG"
    assert bundle["text/plain"] == box.sentence()
    assert bundle["text/html"].startswith("<img alt=")
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_every_widget_is_exported():
    assert sorted(k.__name__ for k in all_widgets()) == sorted(mlsys.widgets.__all__)


def test_step_is_free_where_it_acts():
    box = mlsys.widgets.StrideExplorer()
    box.view.value = "every step-th row"
    assert not box.step.disabled
    box.step.value = 4
    assert "shape (2, 16), strides (64, 1)" in box.sentence()
