"""Counters follow from what a launch does, and the limiter is what helps when it is changed."""

from dataclasses import replace

import numpy as np
import pytest

from mlsys.gpu import Launch
from mlsys.gpu.simt import block_dim, block_idx, float32, kernel, thread_idx
from mlsys.profile import Counted, counters, from_report, limiter
from mlsys.profile.counters import (
    DRAM_BUSY,
    DURATION,
    LATENCY_S,
    LIMITS,
    SECTORS_PER_REQUEST,
    SM_BUSY,
    TENSOR_BUSY,
    USEFUL_BYTES,
    WARPS_ACTIVE,
    WAVES,
    duration_s,
    residency,
    times_s,
)
from mlsys.specs import A100_80GB, H100_SXM

ADD = Counted("add", 100_000, Launch(256, 16), 1.2e7, 1.6e6, 6.4e6, 2.048e8, 3.2e6, in_flight=2)


def drawn(rng):
    warps = 2 ** int(rng.integers(0, 6))
    blocks = int(rng.integers(1, 50_000))
    requests = float(rng.integers(1, 40)) * blocks * warps
    return Counted("drawn", blocks, Launch(32 * warps, int(rng.integers(16, 65))), requests * rng.uniform(2, 400), requests,
                   requests * rng.uniform(1, 32), 32 * requests, requests * rng.uniform(0, 8), in_flight=rng.uniform(0.5, 8))


@pytest.mark.parametrize("seed", range(60))
def test_percentages_are_bounded_and_the_longest_part_is_full(seed):
    counted = drawn(np.random.default_rng(seed))
    seen, times = counters(counted, A100_80GB), times_s(counted, A100_80GB)
    for name in (SM_BUSY, DRAM_BUSY, TENSOR_BUSY, WARPS_ACTIVE):
        assert 0 <= seen[name] <= 100 + 1e-9
    assert seen[DURATION] == pytest.approx(duration_s(counted, A100_80GB) * 1e9)
    assert {"compute": seen[SM_BUSY], "memory": seen[DRAM_BUSY]}.get(max(times, key=times.get), 100) == pytest.approx(100)
    assert seen[SECTORS_PER_REQUEST] == pytest.approx(counted.load_sectors / counted.loads)


@pytest.mark.parametrize("seed", range(60))
def test_the_limiter_is_what_helps(seed):
    """Twice the rate of anything but the limiter never shortens the launch; of the limiter, it does."""
    counted = drawn(np.random.default_rng(seed))
    now, found = duration_s(counted, A100_80GB), limiter(counted, A100_80GB)
    changed = {
        "compute": replace(counted, instructions=counted.instructions / 2),
        "memory": replace(counted, load_sectors=counted.load_sectors / 2, store_sectors=counted.store_sectors / 2),
        "latency": replace(counted, in_flight=2 * counted.in_flight),
    }
    times = {name: duration_s(other, A100_80GB) for name, other in changed.items()}
    for name, time in times.items():
        assert (time < now) == (name == {"occupancy": "latency"}.get(found, found))
    if found == "occupancy":
        assert residency(counted, A100_80GB).fraction < 1


def test_little_s_law():
    """Bytes under way over the latency: half the warps, half the bandwidth, as long as latency decides."""
    chain = replace(ADD, in_flight=0.5)
    half = replace(chain, launch=Launch(256, 64))  # 4 blocks instead of 8
    assert times_s(half, A100_80GB)["latency"] / times_s(chain, A100_80GB)["latency"] == pytest.approx(2, rel=0.01)
    waves = -(-ADD.blocks // (8 * 108))
    assert times_s(ADD, A100_80GB)["latency"] == pytest.approx(waves * 2 / 2 * LATENCY_S)


def test_small_grids_are_latency_and_registers_are_occupancy():
    few = replace(ADD, blocks=20, loads=320.0, load_sectors=1280.0, store_sectors=640.0, instructions=2400.0)
    assert limiter(few, A100_80GB) == "latency"
    assert limiter(replace(ADD, launch=Launch(256, 200)), A100_80GB) == "occupancy"
    assert counters(replace(ADD, launch=Launch(256, 200)), A100_80GB)[LIMITS["registers"]] == 1
    with pytest.raises(ValueError, match="does not fit"):
        times_s(replace(ADD, launch=Launch(1024, 255)), A100_80GB)


def test_tensor_cores_count_as_compute():
    n = 4096
    gemm = Counted("gemm", 1024, Launch(256, 128, 65_536, opt_in=True), 1e6, 3e5, 2 * n * n * 2 / 32, 2.0 * n * n * 2, n * n * 2 / 32,
                   tensor_flops=2.0 * n**3, in_flight=8)
    for chip in (A100_80GB, H100_SXM):
        assert limiter(gemm, chip) == "compute"
        assert counters(gemm, chip)[TENSOR_BUSY] == pytest.approx(100)


@kernel
def strided_copy(a, out, n, stride):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i < n:
        out[i] = a[i * stride]


def traced(stride):
    n = 4096
    a, out = np.zeros(n * stride, np.float32), np.zeros(n, np.float32)
    return strided_copy.launch(grid=n // 256, block=256, args=(a, out, n, stride), trace=True)


def test_real_kernels():
    near, far = (from_report(traced(stride), regs=16, in_flight=1, blocks=200_000) for stride in (1, 32))
    assert limiter(near, A100_80GB) == limiter(far, A100_80GB) == "memory"
    seen = [counters(counted, A100_80GB) for counted in (near, far)]
    assert seen[0][SECTORS_PER_REQUEST] == 4 and seen[1][SECTORS_PER_REQUEST] == 32
    assert seen[0][USEFUL_BYTES] == 100 and seen[1][USEFUL_BYTES] == pytest.approx(100 / 8)
    assert seen[1][DURATION] == pytest.approx(seen[0][DURATION] * 36 / 8)
    assert seen[0][WAVES] == pytest.approx(200_000 / (8 * 108))
    with pytest.raises(ValueError, match="without trace=True"):
        from_report(strided_copy.launch(grid=1, block=32, args=(np.zeros(32, float32), np.zeros(32, float32), 32, 1)), regs=16)


def test_scaling_a_report_scales_every_count():
    one, many = from_report(traced(2), regs=16), from_report(traced(2), regs=16, blocks=160)
    for name in ("instructions", "loads", "load_sectors", "store_sectors", "load_bytes"):
        assert getattr(many, name) == pytest.approx(10 * getattr(one, name))
