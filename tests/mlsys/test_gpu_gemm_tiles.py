"""Tiles: bytes counted by real kernels against the closed form, resources, and the time's parts."""

import numpy as np
import pytest

from mlsys.gpu.gemm_kernels import naive, run, tiled
from mlsys.gpu.tiles import (
    CHOICES,
    RESOURCES,
    Tile,
    memory_bytes,
    problem,
    search,
    shared_traffic_bytes,
    tile_occupancy,
    tile_time,
    traffic_bytes,
)
from mlsys.specs.accelerators import A40, A100_80GB, A6000, H100_SXM, V100_SXM2

NAIVE = Tile(1, 1, 1, 1, 1)


@pytest.mark.parametrize("tile", [NAIVE, Tile(8, 16, 8, 1, 1), Tile(16, 16, 4, 2, 1), Tile(32, 32, 8, 4, 4), Tile(64, 32, 16, 8, 4)])
@pytest.mark.parametrize("m, n, k", [(64, 64, 32), (50, 70, 30), (33, 1, 17)])
def test_counted_traffic_is_the_closed_form(tile, m, n, k):
    """Kernels run lane by lane; every load and store of global memory is counted, and the product is right."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    c = np.full((m, n), np.nan, np.float32)
    report = run(tile, a, b, c)
    assert np.allclose(c, a @ b, atol=1e-4) and not report.races
    assert report.bytes_asked == traffic_bytes(tile, m, n, k)
    assert report.stores.bytes_asked == 4 * m * n


@pytest.mark.parametrize("tile", [Tile(8, 16, 8, 1, 1), Tile(32, 32, 8, 4, 4), Tile(64, 32, 16, 8, 4)])
def test_counted_shared_memory_is_the_closed_form(tile):
    """The kernel reads A's element once for tn sums and B's for each sum: tm (1 + tn) words; the form keeps both: tm + tn."""
    a, b, c = (np.ones((64, 64), np.float32) for _ in range(3))
    report = run(tile, a, b, c)
    closed = shared_traffic_bytes(tile, 64, 64, 64)
    again = 4 * 64**3 // (tile.tm * tile.tn) * (tile.tm * (1 + tile.tn) - tile.tm - tile.tn)
    assert report.shared.bytes_asked == closed + again
    assert report.shared_bytes == tile.smem_bytes


def test_the_three_numbers_of_the_lesson():
    """4096^3 in fp32: 550, 17.2 and 4.4 GB."""
    found = [traffic_bytes(tile, 4096, 4096, 4096) / 1e9 for tile in (NAIVE, Tile(32, 32, 32, 1, 1), Tile(128, 128, 8, 8, 8))]
    assert [round(value, 1) for value in found] == [549.8, 17.2, 4.4]
    assert found[0] == pytest.approx((2 * 4096**3 + 4096**2) * 4 / 1e9)


def test_traffic_is_brute_force_over_blocks():
    rng = np.random.default_rng(1)
    for m, n, k, bm, bn in rng.integers(1, 60, (50, 5)).tolist():
        total = m * n
        for row in range(0, m, bm):
            for column in range(0, n, bn):
                total += (min(bm, m - row) + min(bn, n - column)) * k
        assert traffic_bytes(Tile(bm, bn, 8, 1, 1), m, n, k) == 4 * total


def test_memory_lies_between_once_and_every_time():
    tile = Tile(128, 128, 8, 8, 8)
    at_once = np.arange(1, 2000)
    found = memory_bytes(tile, 4096, 4096, 4096, at_once)
    assert (np.diff(found) <= 0).all()
    assert found[0] == traffic_bytes(tile, 4096, 4096, 4096) and found[-1] == 4 * 3 * 4096**2


@pytest.mark.parametrize("tile, sentence", [
    (Tile(64, 64, 8, 5, 8), "tm=5 does not divide bm=64"),
    (Tile(64, 60, 8, 8, 8), "tn=8 does not divide bn=60"),
    (Tile(64, 64, 8, 1, 1), "4,096 threads, but a block has at most 1,024"),
    (Tile(256, 256, 8, 16, 16), "a thread needs about 312 registers, but has at most 255"),
    (Tile(64, 64, 0, 8, 8), "bk=0 is no whole number above 0"),
    (Tile(64, 64, 8.5, 8, 8), "bk=8.5 is no whole number above 0"),
])
def test_tiles_that_cannot_run(tile, sentence):
    assert problem(tile) == sentence
    with pytest.raises(ValueError, match=sentence):
        tile_time(tile, 64, 64, 64, A6000)
    with pytest.raises(ValueError):
        tiled(tile)


def test_other_input_is_refused():
    with pytest.raises(ValueError, match="V100 SXM2: its L2 rate"):
        tile_time(Tile(64, 64, 8, 8, 8), 64, 64, 64, V100_SXM2)
    with pytest.raises(ValueError, match=r"c \(4, 4\) cannot be a \(4, 8\) @ b \(4, 4\)"):
        run(NAIVE, np.ones((4, 8), np.float32), np.ones((4, 4), np.float32), np.ones((4, 4), np.float32))


def test_a_slab_too_large_for_the_sm_fits_nowhere():
    found = tile_time(Tile(128, 256, 128, 8, 8), 4096, 4096, 4096, A40)
    assert not found.fits and found.limiter == "nothing fits" and found.time_s == np.inf
    assert tile_time(Tile(128, 256, 128, 8, 8), 4096, 4096, 4096, H100_SXM).fits


def test_parts_by_hand():
    """128 x 128 tiles of 4096^3 on 84 SMs at 1.8 GHz: 1,024 blocks, 13 on the busiest SM."""
    found = tile_time(Tile(128, 128, 8, 8, 8), 4096, 4096, 4096, A6000)
    clock = A6000.peak_fp32 / (2 * 84 * 128)
    assert (found.blocks, found.turns, found.resident) == (1024, 13, 2)
    assert found.full == pytest.approx(1024 / (13 * 84))
    assert found.seconds["compute"] == pytest.approx(13 * 4096 * 128 * 128 / 128 / clock)
    assert found.seconds["issue"] == pytest.approx(13 * 4096 * 8 * (64 + 4) / 4 / clock)
    assert found.seconds["shared"] == pytest.approx(13 * 4096 * (256 * 16 + 256) * 4 / 128 / clock)
    assert found.seconds["latency"] == pytest.approx(13 / 2 * (512 * 500 + 4096 * 30) / clock)
    assert tuple(found.seconds) == RESOURCES
    parts = list(found.seconds.values())
    assert max(parts) < found.time_s < sum(parts)


def test_each_cut_moves_its_own_resource():
    tiles = Tile(64, 64, 8, 4, 4), Tile(128, 128, 8, 4, 4), Tile(64, 64, 8, 8, 8)
    base, wide, thick = (tile_time(tile, 4096, 4096, 4096, A6000) for tile in tiles)
    assert wide.seconds["l2"] < 0.55 * base.seconds["l2"] and wide.seconds["shared"] > 0.9 * base.seconds["shared"]
    assert thick.seconds["shared"] < 0.6 * base.seconds["shared"] and thick.seconds["l2"] == base.seconds["l2"]
    deep = tile_time(Tile(64, 64, 16, 4, 4), 4096, 4096, 4096, A6000)
    assert deep.tile.smem_bytes == 2 * base.tile.smem_bytes and deep.traffic_bytes == base.traffic_bytes


def test_the_search_is_exhaustive():
    """Every tile of the choices alone, one after the other: the same set, the same times, in order."""
    few = {"bm": (16, 64, 256), "bn": (32, 64), "bk": (8, 64), "tm": (1, 4, 16), "tn": (2, 16)}
    found = search(1000, 2000, 512, A100_80GB, few)
    alone = {}
    for tile in (Tile(*sizes) for sizes in np.stack(np.meshgrid(*few.values()), -1).reshape(-1, 5).tolist()):
        if not problem(tile) and tile.threads >= 32:
            time = tile_time(tile, 1000, 2000, 512, A100_80GB)
            if time.fits:
                alone[tile] = time.time_s
    names = [Tile(*(int(size[i]) for size in vars(found.tile).values())) for i in range(len(found.blocks))]
    assert set(names) == set(alone) and len(names) == len(alone) > 10
    assert (np.diff(found.time_s) >= 0).all() and [alone[name] for name in names] == pytest.approx(found.time_s.tolist())
    assert found.limiter.shape == found.time_s.shape


def test_the_whole_search_holds_every_runnable_tile():
    found = search(4096, 4096, 4096, A6000)
    assert found.fits.all() and found.tile.threads.min() >= 32 and found.tile.threads.max() <= 1024
    assert found.tile.registers.max() <= 255 and (found.resident > 0).all()
    sizes = set(zip(*(size.tolist() for size in vars(found.tile).values())))
    assert len(sizes) == len(found.blocks) > 1500 and all(size in CHOICES["bm"] for size, *_ in sizes)


def test_occupancy_is_that_of_the_calculator():
    held = tile_occupancy(Tile(128, 128, 32, 8, 8), A100_80GB)
    assert held.blocks_per_sm == 2 and held.limiters == "registers" and held.smem_per_block == 32 * 1024 + 1024


def test_a_warp_shares_what_it_asks_for():
    """Without tiles a lane asks for 8 bytes a multiply-add; its warp moves a sector of A and four of B: 5 bytes."""
    a, b, c = (np.ones((64, 64), np.float32) for _ in range(3))
    report = naive.launch((2, 8), (32, 8), (a, b, c, 64, 64, 64), trace=True)
    assert report.loads.bytes_asked == 8 * 64**3 and report.loads.bytes_moved == 5 * 64**3


def test_published_speeds_are_met_as_far_as_the_docstring_says():
    """GFLOP/s on an RTX A6000 at 4,096, README of siboehm/SGEMM_CUDA: steps 3, 4, 6, 9 and 10."""
    published = {
        Tile(32, 32, 32, 1, 1): 2980.3, Tile(64, 64, 8, 8, 1): 8474.7, Tile(128, 128, 8, 8, 8): 18237.3,
        Tile(128, 128, 16, 8, 8): 19721.0, Tile(128, 128, 16, 8, 16): 21779.3,
    }  # fmt: skip
    found = [tile_time(tile, 4096, 4096, 4096, A6000).gflops(4096, 4096, 4096) for tile in published]
    assert found == sorted(found)
    ratio = np.array(found) / list(published.values())
    assert 0.95 < ratio.min() and ratio.max() < 1.4
