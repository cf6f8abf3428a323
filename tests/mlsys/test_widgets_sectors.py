"""The sector explorer counts what the addresses touch, and draws each sector once."""

import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.viz.sectors import FIRST, LAST, places, sector_map, stride_bandwidth, touched
from mlsys.viz.style import COLOUR
from mlsys.widgets.sectors import ARRAY, FIELDS, SIZES, STRUCTS, SectorExplorer, finding, reason


@pytest.fixture
def box():
    return SectorExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def by_bytes(addresses, itemsize):
    """Sectors by looking at every byte."""
    return len({byte // 32 for a in addresses.tolist() for byte in range(a, a + itemsize)})


def test_the_count_is_that_of_the_bytes(box):
    for box.access.value in (ARRAY, STRUCTS, FIELDS):
        for _, box.itemsize.value in SIZES:
            for box.stride.value, box.offset.value in ((1, 0), (1, 5), (3, 2), (8, 31), (32, 7)):
                assert box.model().sectors == by_bytes(box.addresses(), box.itemsize.value)
                assert box.model().sectors == len(touched(box.addresses(), box.itemsize.value))


def test_each_sector_and_each_element_is_drawn_once(box):
    for box.stride.value, box.offset.value, box.itemsize.value in ((2, 0, 4), (1, 1, 4), (32, 31, 16), (1, 0, 1)):
        rects = [s[1:] for s in box.draw().shapes if s[0] == "rect"]
        sectors = [r for r in rects if r[3] == 34 and r[4] == COLOUR["idle"]]
        assert len(sectors) == box.model().sectors
        assert min(r[0] for r in sectors) >= FIRST - 1e-6 and max(r[0] + r[2] for r in sectors) <= LAST + 1e-6
        assert all(a[0] + a[2] <= b[0] + 1e-6 for a, b in zip(sectors, sectors[1:]))
        used = sum(r[2] for r in rects if r[3] == 34 and r[4] == COLOUR["memory"])
        assert used / sum(r[2] for r in sectors) == pytest.approx(box.model().efficiency)


def test_lanes_point_at_their_bytes(box):
    """The end of each lane's line lies inside one of the elements drawn."""
    box.stride.value, box.offset.value = 5, 3
    shapes = box.draw().shapes
    elements = [s[1:] for s in shapes if s[0] == "rect" and s[4] == 34 and s[5] == COLOUR["memory"]]
    ends = [s[1][1][0] for s in shapes if s[0] == "line" and s[3] == 0.8]
    assert len(ends) == len(elements) == 32
    assert all(any(r[0] < x < r[0] + r[2] for r in elements) for x in ends)


def test_what_the_lesson_says_is_seen(box):
    box.access.value, box.stride.value = STRUCTS, 7
    counts = set()
    for box.offset.value in range(8):
        counts.add(box.model().sectors)
    assert counts == {28}
    box.stride.value = 8
    assert box.model().sectors == 32
    box.access.value = FIELDS
    for box.stride.value in (1, 8, 32):
        assert box.model().sectors == 4
    box.access.value, box.itemsize.value, box.stride.value, box.offset.value = ARRAY, 1, 1, 0
    assert box.model().sectors == 1
    box.offset.value = 1
    assert box.model().sectors == 2


def test_titles_and_reasons(box):
    box.stride.value, box.offset.value = 1, 1
    assert finding(box.model()) == "5 sectors move 160 bytes for 128 that are used: 80 %"
    assert "begin 4 bytes behind the edge" in box.picture.value
    box.stride.value, box.offset.value = 9, 0
    assert reason(box.addresses(), 4, box.model()).startswith("Lanes lie 36 bytes apart: each has a sector of its own")
    assert box.sentence() in box.readout.value.replace("&#x27;", "'")


def test_a_field_beyond_the_struct_is_its_last(box):
    box.access.value, box.stride.value, box.offset.value = STRUCTS, 3, 31
    assert box.addresses()[0] == 2 * 4


def test_every_corner_draws(box):
    for box.access.value in (ARRAY, STRUCTS, FIELDS):
        for box.itemsize.value in (1, 16):
            for box.stride.value in (1, 32):
                for box.offset.value in (0, 31):
                    assert "nan" not in box.picture.value and len(finding(box.model())) < 85
                    lefts, width = places(touched(box.addresses(), box.itemsize.value))
                    assert lefts[0] >= FIRST - 1e-6 and lefts[-1] + width <= LAST + 1e-6 and width > 12
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_an_update_takes_milliseconds(box):
    """Measured 4 ms of CPU time; the limit leaves room for a slow machine."""
    before = time.process_time()
    for _ in range(10):
        box.update()
    assert (time.process_time() - before) / 10 < 0.05


def test_figures_show_what_they_were_given():
    ax = sector_map(np.arange(32) * 16)
    assert "16 sectors move 512 bytes, and 25 % of them are used" in ax.get_title() + ax.get_title("left")
    assert [text.get_text() for text in ax.texts] == [str(lane) for lane in range(32)]
    ax = stride_bandwidth([1, 2, 4], {"4 bytes": [1, 0.5, 0.25], "16 bytes": [1, 0.5, 0.5]}, "A finding")
    assert [line.get_ydata().tolist() for line in ax.lines] == [[100, 50, 25], [100, 50, 50]]
    assert ax.get_title() + ax.get_title("left") == "A finding"
