"""Kernels as a course writes them: results against NumPy, and counts against what paper and pencil give."""

from __future__ import annotations

import numpy as np
import pytest

from mlsys.gpu.simt import (
    atomic_add,
    block_dim,
    block_idx,
    device,
    float32,
    grid_dim,
    int32,
    kernel,
    shared,
    shfl_down,
    sync_threads,
    thread_idx,
)

TILE = 16


@kernel
def add(a, b, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i < n:
        out[i] = a[i] + b[i]


@kernel
def strided_add(a, b, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    for k in range(i, n, grid_dim.x * block_dim.x):
        out[k] = a[k] + b[k]


@kernel
def scale_image(image, out, height, width):
    x = block_idx.x * block_dim.x + thread_idx.x
    y = block_idx.y * block_dim.y + thread_idx.y
    if y >= height or x >= width:
        return
    out[y, x] = image[y, x] * 2.0


@kernel
def scale_image_swapped(image, out, height, width):
    y = block_idx.x * block_dim.x + thread_idx.x
    x = block_idx.y * block_dim.y + thread_idx.y
    if y < height and x < width:
        out[y, x] = image[y, x] * 2.0


@kernel
def matmul(a, b, c, m, n, k):
    tile_a = shared((TILE, TILE), float32)
    tile_b = shared((TILE, TILE), float32)
    tx, ty = thread_idx.x, thread_idx.y
    x = block_idx.x * TILE + tx
    y = block_idx.y * TILE + ty
    total = 0.0
    for t in range((k + TILE - 1) // TILE):
        tile_a[ty, tx] = a[y, t * TILE + tx] if y < m and t * TILE + tx < k else 0.0
        tile_b[ty, tx] = b[t * TILE + ty, x] if x < n and t * TILE + ty < k else 0.0
        sync_threads()
        for j in range(TILE):
            total += tile_a[ty, j] * tile_b[j, tx]
        sync_threads()
    if y < m and x < n:
        c[y, x] = total


@kernel
def block_sum(a, out, n):
    part = shared(256, float32)
    t = thread_idx.x
    i = block_idx.x * 256 + t
    part[t] = a[i] if i < n else 0.0
    sync_threads()
    step = 128
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        sync_threads()
        step //= 2
    if t == 0:
        out[block_idx.x] = part[0]


@kernel
def block_sum_without_barrier(a, out, n):
    part = shared(256, float32)
    t = thread_idx.x
    i = block_idx.x * 256 + t
    part[t] = a[i] if i < n else 0.0
    sync_threads()
    step = 128
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        step //= 2
    if t == 0:
        out[block_idx.x] = part[0]


@device
def warp_sum(v):
    for k in range(5):
        v += shfl_down(v, 16 >> k)
    return v


@kernel
def shuffle_sum(a, out, n):
    part = shared(32, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    v = warp_sum(a[i] if i < n else 0.0)
    if t % 32 == 0:
        part[t // 32] = v
    sync_threads()
    if t < 32:
        v = warp_sum(part[t] if t < block_dim.x // 32 else 0.0)
        if t == 0:
            atomic_add(out, 0, v)


@kernel
def histogram(values, counts, n):
    mine = shared(16, int32)
    t = thread_idx.x
    if t < 16:
        mine[t] = 0
    sync_threads()
    i = block_idx.x * block_dim.x + t
    if i < n:
        atomic_add(mine, values[i], 1)
    sync_threads()
    if t < 16:
        atomic_add(counts, t, mine[t])


@kernel
def histogram_with_race(values, counts, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i < n:
        counts[values[i]] += 1


@kernel
def transpose(a, out, n):
    tile = shared((32, 32), float32)
    tile[thread_idx.y, thread_idx.x] = a[block_idx.y * 32 + thread_idx.y, block_idx.x * 32 + thread_idx.x]
    sync_threads()
    out[block_idx.x * 32 + thread_idx.y, block_idx.y * 32 + thread_idx.x] = tile[thread_idx.x, thread_idx.y]


@kernel
def transpose_padded(a, out, n):
    tile = shared((32, 33), float32)
    tile[thread_idx.y, thread_idx.x] = a[block_idx.y * 32 + thread_idx.y, block_idx.x * 32 + thread_idx.x]
    sync_threads()
    out[block_idx.x * 32 + thread_idx.y, block_idx.y * 32 + thread_idx.x] = tile[thread_idx.x, thread_idx.y]


@kernel
def collatz(start, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i >= n:
        return
    v = start[i]
    steps = 0
    while v > 1:
        if v % 2 == 0:
            v //= 2
        else:
            v = 3 * v + 1
        steps += 1
    out[i] = steps


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 256, 257, 1000, 1024])
def test_vector_add_on_awkward_sizes(n):
    a, b, out = floats(n), floats(n), np.zeros(1100, np.float32)
    report = add[4, 256](a, b, out, n, trace=True)
    np.testing.assert_array_equal(out[:n], a + b)
    assert not out[n:].any()
    assert report.loads.requests == 2 * -(-n // 32) and report.stores.sectors == -(-n // 8)
    assert report.stores.bytes_asked == 4 * n
    out[:] = 0
    strided_add[2, 96](a, b, out, n)
    np.testing.assert_array_equal(out[:n], a + b)


def test_a_block_that_is_no_multiple_of_32_has_a_thin_warp():
    a, out = floats(144), np.zeros(144, np.float32)
    report = add.launch(3, 48, (a, a, out, 144), trace=True)
    np.testing.assert_array_equal(out, a + a)
    assert (report.threads, report.warps, report.issue_slots, report.active_lanes) == (144, 6, 18, 3 * 144)
    assert report.active_share == 0.75


def test_two_dimensions_guarded_and_swapped():
    image, out = floats(70, 90), np.zeros((70, 90), np.float32)
    right = scale_image.launch((3, 9), (32, 8), (image, out, 70, 90), trace=True)
    np.testing.assert_array_equal(out, image * 2)
    out[:] = 0
    swapped = scale_image_swapped.launch((3, 12), (32, 8), (image, out, 70, 90), trace=True)
    np.testing.assert_array_equal(out, image * 2)
    assert right.races == swapped.races == ()
    assert right.loads.requests == 70 * 3 and right.loads.sectors_per_request < 5
    assert swapped.loads.sectors_per_request > 20


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (17, 33, 20), (1, 1, 1)])
def test_tiled_matmul(m, n, k):
    a, b, c = floats(m, k), floats(k, n), np.zeros((m, n), np.float32)
    grid = -(-n // TILE), -(-m // TILE)
    report = matmul.launch(grid, (TILE, TILE), (a, b, c, m, n, k), trace=True)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)
    assert report.races == () and report.shared_bytes == 2 * 4 * TILE**2
    assert report.bank_ways == 1
    if m == 64:
        assert report.loads.bytes_asked == 2 * 64**3 * 4 // TILE
        assert report.barriers == 16 * 4 * 2


def test_reductions_with_barriers_and_with_shuffles():
    a = np.arange(1000, dtype=np.float32)
    out = np.zeros(4, np.float32)
    report = block_sum.launch(4, 256, (a, out, 1000), trace=True)
    assert out.sum() == a.sum() and report.races == () and report.barriers == 4 * 9
    total = np.zeros(1, np.float32)
    report = shuffle_sum.launch(4, 256, (a, total, 1000), trace=True)
    assert total[0] == a.sum() and report.races == () and report.atomics.requests == 4
    out[:] = 0
    races = block_sum_without_barrier.launch(4, 256, (a, out, 1000), trace=True).races
    assert races and {race.array for race in races} == {"part"} and races[0].space == "shared"
    assert "no barrier lies between" in str(races[0])


def test_histogram_with_and_without_race():
    values = np.random.default_rng(0).integers(0, 16, 1000).astype(np.int32)
    counts = np.zeros(16, np.int32)
    report = histogram.launch(4, 256, (values, counts, 1000), trace=True)
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=16))
    assert report.races == () and report.atomic_turns > 32
    counts[:] = 0
    report = histogram_with_race.launch(4, 256, (values, counts, 1000), trace=True)
    assert counts.sum() < 1000
    race = report.races[0]
    assert race.array == "counts" and race.elements == 16 and race.first.line == race.second.line
    assert (race.first.block, race.first.thread) != (race.second.block, race.second.thread)


def test_transpose_with_and_without_padding():
    a, out = floats(64, 64), np.zeros((64, 64), np.float32)
    plain = transpose.launch((2, 2), (32, 32), (a, out, 64), trace=True)
    np.testing.assert_array_equal(out, a.T)
    padded = transpose_padded.launch((2, 2), (32, 32), (a, out, 64), trace=True)
    np.testing.assert_array_equal(out, a.T)
    assert plain.shared.passes == 128 + 128 * 32 and padded.shared.passes == 256
    assert plain.sectors == padded.sectors == 2 * 128 * 4


def test_collatz():
    def steps(v):
        count = 0
        while v > 1:
            v, count = (v // 2 if v % 2 == 0 else 3 * v + 1), count + 1
        return count

    start, out = np.arange(1, 201, dtype=np.int32), np.zeros(200, np.int32)
    report = collatz.launch(2, 128, (start, out, 200), trace=True)
    np.testing.assert_array_equal(out, [steps(v) for v in range(1, 201)])
    assert 0.1 < report.active_share < 0.9
