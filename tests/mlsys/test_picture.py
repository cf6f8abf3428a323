"""The picture builder: valid SVG with a label, a PNG from the same shapes, honest axes."""

import xml.etree.ElementTree as ET

import pytest

from mlsys.viz.picture import HATCHES, Axes, Picture, bars, tick_text, ticks


def example() -> Picture:
    picture = Picture(300, 200, 'A "quoted" <label> & more')
    ax = Axes(picture, (40, 20, 200, 140), (0, 10), (1, 1000), "steps", "loss", log="y")
    ax.plot([0, 5, 10, 12], [1, 10, 100, 5000], dash="--", label="end")
    ax.dot(5, 10)
    bars(picture, (0, 0, 300, 60), [("a", 1.0, "1"), ("b", 0.0, "0")], 1.0, lambda _: "#5790fc", lambda _: "/")
    for n, hatch in enumerate(HATCHES):
        picture.rect(n * 20, 180, 18, 18, "#f89c20", "currentColor", hatch)
    return picture


def test_svg_is_valid_and_labelled():
    root = ET.fromstring(example().svg())
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A "quoted" <label> & more'


def test_svg_ink_follows_the_theme():
    text = [e for e in ET.fromstring(example().svg()).iter() if e.tag.endswith("text")]
    assert text and all(e.get("fill") == "currentColor" for e in text)


def test_png_has_the_size_of_the_picture():
    png = example().png(scale=2.0)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
    assert (width, height) == (600, 400)


def test_lines_are_cut_at_the_box():
    picture = Picture(100, 100, "x")
    ax = Axes(picture, (0, 0, 100, 100), (0, 1), (0, 1))
    before = len(picture.shapes)
    ax.plot([0, 0.5, 1.5, 0.5, 1.0], [0, 0.5, 0.5, float("nan"), 2])
    drawn = picture.shapes[before:]
    assert len(drawn) == 1 and drawn[0][1] == [(0.0, 100.0), (50.0, 50.0)]


@pytest.mark.parametrize("limits", [(0, 1), (-3, 7), (0, 0.004), (1e5, 3e6), (2, 2.5)])
def test_ticks_lie_inside(limits):
    found = ticks(limits)
    assert 2 <= len(found) <= 12
    assert all(limits[0] - 1e-9 <= t <= limits[1] * (1 + 1e-9) for t in found)


def test_log_ticks_are_powers():
    assert ticks((3, 4e5), log=True) == [10.0, 100.0, 1e3, 1e4, 1e5]
    assert [tick_text(t) for t in (10.0, 1e5, 1e-3)] == ["10", "100k", "1e-3"]
