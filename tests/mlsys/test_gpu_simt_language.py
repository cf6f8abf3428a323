"""The kernel language: issue slots, numbers, atomics, shuffles, device functions, the report."""

from __future__ import annotations

import dataclasses
import linecache

import numpy as np
import pytest

from mlsys.gpu import simt
from mlsys.gpu.simt import (
    atomic_add,
    atomic_cas,
    atomic_exch,
    ballot,
    block_dim,
    block_idx,
    device,
    float32,
    grid_dim,
    int32,
    kernel,
    local,
    shfl,
    shfl_xor,
    show,
    thread_idx,
    vote_all,
    vote_any,
)


@kernel
def add(a, b, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i < n:
        out[i] = a[i] + b[i]


@kernel
def branches(out):
    t = thread_idx.x
    if t < 8:
        out[t] = 1
    elif t < 12:
        out[t] = 2
    else:
        out[t] = 3
    for k in range(t % 4):
        out[t] += k


def test_issue_slots_of_nested_branches_and_loops():
    out = np.zeros(64, np.int32)
    report = branches.launch(1, 64, (out,), trace=True)
    slots = [(r.issue_slots, r.active_lanes) for r in report.lines]
    # index; if: both warps; its body: warp 0; elif: both; its body: warp 0; else: both; loop: 4 checks; body: 3 rounds
    assert slots == [(2, 64), (2, 64), (1, 8), (2, 56), (1, 4), (2, 52), (8, 16 * (1 + 2 + 3 + 4)), (6, 16 * 6)]
    assert report.issue_slots == 24 and "elif" in report.table()


@kernel
def numbers(ints, reals):
    big = 2147483647
    ints[0] = big + 1
    ints[1] = 7 // 2 * 100 + -7 // 2
    ints[2] = 65536 * 65536 + 5
    ints[3] = int(3.9) + int(-3.9)
    ints[4] = (1 << 31) >> 31
    reals[0] = 16777216.0 + 1
    reals[1] = ints[1] / 2
    reals[2] = 1 / 3
    x = 0.1
    for _k in range(10):
        x += 0.1
    reals[3] = x
    reals[4] = float32(ints[0]) * 2


def test_numbers_are_those_of_c():
    ints, reals = np.zeros(5, np.int32), np.zeros(5, np.float64)
    numbers.launch(1, 1, (ints, reals))
    assert ints.tolist() == [-(2**31), 296, 5, 0, -1]
    x = np.float32(0.1)
    for _ in range(10):
        x += np.float32(0.1)
    assert reals.tolist() == [16777216.0, 148.0, np.float32(1) / np.float32(3), x, -(2.0**32)]


@kernel
def words(out, old, flags):
    t = thread_idx.x
    own = local(2, int32)
    own[0] = t
    own[1] = shfl(t, 3)
    old[t] = atomic_add(out, t % 2, 1)
    if t < 32:
        flags[t, 0] = ballot(t % 3 == 0)
        flags[t, 1] = vote_any(t == 40)
        flags[t, 2] = vote_all(t < 32)
    won = atomic_cas(out, 3, 0, t + 1)
    if won == 0:
        out[4] = t
    atomic_exch(out, 5, own[0] + own[1])
    out[8 + t] = shfl_xor(t, 1)


def test_atomics_shuffles_votes_and_local_arrays():
    out, old, flags = np.zeros(72, np.int32), np.zeros(64, np.int32), np.zeros((32, 3), np.uint32)
    words.launch(1, 64, (out, old, flags))
    assert out[:2].tolist() == [32, 32] and sorted(old[::2]) == list(range(32))
    assert out[3:6].tolist() == [1, 0, 63 + 35]
    assert out[8:].tolist() == [t ^ 1 for t in range(64)]
    assert flags[5].tolist() == [sum(1 << k for k in range(0, 32, 3)), 0, 1]


@device
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@device
def clamp(x, low, high):
    return min(max(x, low), high)


@kernel
def call(out):
    t = thread_idx.x
    out[t] = factorial(clamp(t, 2, 6))


def test_device_functions_may_call_themselves():
    out = np.zeros(10, np.int32)
    call.launch(1, 10, (out,))
    assert out.tolist() == [2, 2, 2, 6, 24, 120, 720, 720, 720, 720]


@kernel
def where_am_i(out):
    x = block_idx.x * block_dim.x + thread_idx.x
    y = block_idx.y * block_dim.y + thread_idx.y
    z = block_idx.z * block_dim.z + thread_idx.z
    out[z, y, x] = grid_dim.x * 1000000 + block_idx.x * 100000 + thread_idx.z * 100 + thread_idx.y * 10 + thread_idx.x


def test_three_dimensions():
    out = np.zeros((6, 4, 6), np.int32)
    report = where_am_i.launch((2, 1, 3), (3, 4, 2), (out,), trace=True)
    assert out[3, 2, 4] == 2000000 + 100000 + 121 and out.min() >= 2000000
    assert report.races == () and report.threads == out.size


def test_constants_are_looked_up_when_the_kernel_is_launched():
    size = 3

    @kernel
    def fill(out):
        out[thread_idx.x] = size

    out = np.zeros(4, np.int32)
    fill.launch(1, 4, (out,))
    size = 5
    fill.launch(1, 2, (out,))
    assert out.tolist() == [5, 5, 3, 3]


def test_the_report_is_frozen_and_plain():
    a = np.ones(32, np.float32)
    report = add.launch(1, 32, (a, a, np.zeros(32, np.float32), 32))
    assert report.issue_slots is None and report.races is None and not report.traced
    assert str(report).endswith("not traced")
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.threads = 1
    assert "mask.some" in show(add)


@kernel
def diverge(out):
    t = thread_idx.x
    if t % 32 < 4:
        out[t] = 1
    else:
        out[t] = 2


def test_the_timeline_shows_a_warp_slot_by_slot():
    report = diverge.launch(2, 48, (np.zeros(48, np.int32),), trace=True, timeline=1)
    lines, lanes = zip(*report.timeline)
    assert [line - lines[0] for line in lines] == [0, 1, 2, 4]
    assert lanes == (0xFFFF, 0xFFFF, 0xF, 0xFFF0)
    with pytest.raises(ValueError, match="warps 0 to 3"):
        diverge.launch(2, 48, (np.zeros(48, np.int32),), trace=True, timeline=4)


def test_lines_of_device_functions_in_other_cells_stay_apart():
    scope = {word: getattr(simt, word) for word in simt.__all__}
    for name, source in (
        ("<cell 1>", "@device\ndef put(a, i):\n    a[i] = 1\n    return 2\n"),
        ("<cell 2>", "@kernel\ndef k(a):\n    x = put(a, thread_idx.x // 2)\n    a[4] = x\n"),
    ):
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), scope)
    report = scope["k"].launch(1, 8, (np.zeros(5, np.int32),), trace=True)
    assert [(r.line, r.text) for r in report.lines] == [
        (3, "x = put(a, thread_idx.x // 2)"), (4, "a[4] = x"), (3, "a[i] = 1"), (4, "return 2")
    ]  # fmt: skip
    assert {(r.first.line, r.first.text) for r in report.races} == {(3, "a[i] = 1"), (4, "a[4] = x")}
    with pytest.raises(simt.OutOfBounds, match="put, called from k, line 3: thread .* writes a"):
        scope["k"].launch(1, 16, (np.zeros(5, np.int32),))
