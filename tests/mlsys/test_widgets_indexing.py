"""The index explorer maps threads as the simulator does, and its pictures show what it says."""

import itertools
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.gpu.simt import block_dim, block_idx, grid_dim, kernel, thread_idx
from mlsys.viz.indexing import Mapping, footprints, mapping
from mlsys.widgets.indexing import BLOCKS, FORMS, ROUNDED, IndexExplorer, finding

SHAPES = [(40, 20), (64, 40), (1, 1), (1, 40), (64, 1), (33, 9)]


@kernel
def number_straight(image, width, height):
    x = block_idx.x * block_dim.x + thread_idx.x
    y = block_idx.y * block_dim.y + thread_idx.y
    block = block_idx.y * grid_dim.x + block_idx.x
    if x < width and y < height:
        image[y, x] = (block * block_dim.y + thread_idx.y) * block_dim.x + thread_idx.x


@kernel
def number_swapped(image, width, height):
    y = block_idx.x * block_dim.x + thread_idx.x
    x = block_idx.y * block_dim.y + thread_idx.y
    block = block_idx.y * grid_dim.x + block_idx.x
    if x < width and y < height:
        image[y, x] = (block * block_dim.y + thread_idx.y) * block_dim.x + thread_idx.x


@pytest.fixture
def box():
    return IndexExplorer()


@pytest.mark.parametrize("block", BLOCKS.values(), ids=str)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("itemsize", [1, 4, 8])
def test_threads_and_sectors_are_those_of_the_simulator(block, swapped, itemsize):
    for width, height in SHAPES:
        launch = mapping(width, height, block, swapped, itemsize)
        image = np.full((height, width), -1, {1: np.int8, 4: np.int32, 8: np.int64}[itemsize])
        k = number_swapped if swapped else number_straight
        report = k.launch(launch.grid, block, (image, width, height), trace=True)
        assert report.threads == launch.threads and report.races == ()
        threads = np.arange(launch.threads)
        x, y = launch.xy(threads[launch.inside(threads)])
        if itemsize > 1:
            assert (image[y, x] == threads[launch.inside(threads)]).all()
        assert launch.busy == width * height == report.stores.bytes_asked // itemsize
        firsts = [start + k for start in range(0, launch.threads, launch.per_block) for k in range(0, launch.per_block, 32)]
        assert sum(len(launch.sectors(t)) for t in firsts) == report.stores.sectors


def test_least_sectors_are_never_more_than_touched():
    for (width, height), block in itertools.product(SHAPES, BLOCKS.values()):
        launch = mapping(width, height, block)
        for t in range(0, launch.threads, 32):
            assert launch.least_sectors(t) <= len(launch.sectors(t)) <= 32


def test_rounded_down_the_edge_is_missed_and_rounded_up_never():
    for (width, height), block in itertools.product(SHAPES, BLOCKS.values()):
        assert mapping(width, height, block).busy == width * height
    down = mapping(40, 20, (32, 8), rounded_up=False)
    assert down.grid == (1, 2) and down.busy == 32 * 16 and down.reach == (32, 16)
    assert Mapping(40, 20, (32, 8), (2, 1), swapped=True).reach == (8, 64)


def test_boxes_are_the_elements_of_the_sectors():
    for width, itemsize in ((1, 4), (7, 1), (40, 4), (64, 8)):
        launch = mapping(width, 20, (32, 8), itemsize=itemsize)
        boxes = launch.sector_boxes(0)
        elements = [(y + j) * width + x + i for x, y, wide, high in boxes for j in range(high) for i in range(wide)]
        want = [e for e in range(width * 20) if e * itemsize // 32 in launch.sectors(0)]
        assert sorted(elements) == want


def test_the_sentence_follows_a_thread(box):
    assert "thread (12, 1) of block (1, 0): number 44 in its block, so warp 1, lane 12" in box.sentence()
    assert "x = 44, y = 1: outside" in box.sentence() and "1,536 threads, 736 of them outside" in box.sentence()
    box.thread.value = 35
    assert "x = 3, y = 1: element 43." in box.sentence() and box.sentence() in box.readout.value


def test_what_the_lesson_says_is_seen(box):
    """One byte an element: 1 sector along a row, 32 down a column; 4 bytes: 4 and 32; 16 x 16: two half rows."""
    box.width.value, box.height.value, box.thread.value = 64, 40, 0
    for item, straight in (("1 byte", 1), ("4 bytes", 4)):
        box.item.value = item
        for form, want in (("x along a row", straight), ("x and y swapped", 32)):
            box.form.value = form
            assert len(box.model().sectors(0)) == want
    box.form.value, box.item.value, box.block.value = "x along a row", "1 byte", "16 x 16"
    assert finding(box.model(), 0) == "One request of this warp: 32 elements, 2 sectors where 1 would do"
    box.width.value, box.height.value, box.block.value, box.rounded.value = 40, 20, "32 x 8", "down: floor"
    assert "leaves 288 of 800 elements without a thread" in box.picture.value


def test_the_thread_stays_in_the_launch(box):
    box.width.value, box.height.value, box.thread.value = 64, 40, box.thread.max
    assert box.chosen(box.model()) == box.model().threads - 1 == 64 * 40 - 1
    box.height.value = 1
    assert box.chosen(box.model()) == 511 and box.sentence().startswith("Thread 511 ")
    for box.block.value, box.rounded.value in itertools.product(BLOCKS, ROUNDED):
        box.height.value = 40
        assert box.model().threads <= box.thread.max + 1


def test_every_corner_draws(box):
    sizes = (box.width.min, box.width.max), (box.height.min, box.height.max)
    for (width, height), block in itertools.product(itertools.product(*sizes), ("8 x 32", "128 x 1", "10 x 6")):
        box.width.value, box.height.value, box.block.value = width, height, block
        for box.rounded.value, box.form.value, box.item.value in itertools.product(ROUNDED, FORMS, ("1 byte", "8 bytes")):
            for thread in (0, box.thread.max):
                box.thread.value = thread
                picture = box.draw()
                assert "nan" not in box.picture.value and finding(box.model(), box.chosen(box.model())) in picture.label
                for shape in picture.shapes:
                    if shape[0] == "rect":
                        assert 0 <= shape[1] and shape[1] + shape[3] <= picture.width and shape[2] + shape[4] <= picture.height - 20
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_an_update_takes_milliseconds(box):
    """Measured 1 to 2 ms of CPU time; the limit leaves room for a slow machine."""
    before = time.process_time()
    for _ in range(20):
        box.update()
    assert (time.process_time() - before) / 20 < 0.02


def test_footprints_show_the_warp_and_its_sectors():
    maps = {"straight": mapping(64, 32, (32, 8), itemsize=1), "swapped": mapping(64, 32, (32, 8), swapped=True, itemsize=1)}
    axes = footprints(maps)
    assert [ax.get_title() for ax in axes] == ["straight: 1 sector", "swapped: 32 sectors"] or [
        ax.get_title(loc="left") for ax in axes
    ] == ["straight: 1 sector", "swapped: 32 sectors"]
    for ax, sectors in zip(axes, (1, 32)):
        assert len(ax.patches) == sectors + 32
        boxes = [(p.get_x(), p.get_y(), p.get_width(), p.get_height()) for p in ax.patches]
        lanes = [b for b in boxes if b[2] == 1]
        assert len(lanes) == 32 and all(any(x <= a and a + 1 <= x + w and y == b for x, y, w, _ in boxes if w > 1) for a, b, *_ in lanes)
    plt.close("all")
