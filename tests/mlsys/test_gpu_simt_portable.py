"""A kernel that is handed in does on the other side what it did at home, and nothing but the kernel language gets through."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mlsys.gpu.simt as cuda
from mlsys import check
from mlsys.gpu.simt import (
    KernelSyntaxError,
    block_dim,
    block_idx,
    device,
    float32,
    kernel,
    local,
    shared,
    shfl_down,
    sync_threads,
    thread_idx,
)
from mlsys.gpu.simt.portable import from_portable

TILE = 8
SLOPE = np.float32(0.25)


@device
def halve(x):
    return x / 2


half = halve


@kernel
def everything(a, out, n):
    """Shared and local memory, a device function under another name, modules, numbers."""
    # a comment, so that line numbers have to be kept
    tile = shared((TILE, 32), float32)

    own = local(2, np.float32)
    i = block_idx.x * block_dim.x + thread_idx.x
    tile[thread_idx.x // 32, thread_idx.x % 32] = a[i] if i < n else 0
    sync_threads()
    own[0] = tile[0, thread_idx.x % 32]
    for _ in range(2):
        own[0] += half(own[0]) * SLOPE
    x = math.sqrt(max(own[0], 0)) + np.float32(cuda.thread_idx.y)
    x += shfl_down(x, 1)
    if i < min(n, len(out), out.shape[0]):
        out[i] = x


@kernel
def wrong(a):

    i = thread_idx.x
    a[i + 1] = 0


def test_a_kernel_gives_the_same_numbers_and_the_same_report_on_the_other_side():
    a = np.random.default_rng(0).random(500, dtype=np.float32)
    here, there = np.zeros_like(a), np.zeros_like(a)
    mine = everything.launch(2, 256, (a, here, 500), trace=True)
    theirs = check.launch(everything.portable(), 2, 256, a, there, 500)
    assert (here == there).all() and here.any()
    assert (mine.sectors, mine.issue_slots, mine.races, mine.shared) == (theirs.sectors, theirs.issue_slots, theirs.races, theirs.shared)
    assert {(line.line, line.text) for line in mine.lines} == {(line.line, line.text) for line in theirs.lines}


def test_an_error_names_the_readers_own_line():
    with pytest.raises(check.CheckFailed) as failed:
        check.launch(wrong.portable(), 1, 4, np.zeros(4))
    line = wrong.function.__code__.co_firstlineno + 4
    assert f"wrong, line {line}: " in str(failed.value) and "a[i + 1] = 0" in str(failed.value)


def test_what_travels_is_plain_data():
    from grading.sealed.codec import dumps, loads

    taken = everything.portable()
    assert loads(dumps(taken)) == taken
    assert set(taken["devices"]) == {"half"} and taken["words"]["cuda.thread_idx"] == "thread_idx"


@kernel
def unwritten(a):
    """A kernel as a student finds it."""
    raise NotImplementedError("Replace this line with your answer.")


def test_a_kernel_that_is_not_written_says_so():
    for use in (unwritten.portable, lambda: unwritten.launch(1, 1, (np.zeros(1),))):
        with pytest.raises(NotImplementedError, match="unwritten is not written yet"):
            use()
    with pytest.raises(check.CheckFailed, match="unwritten is not written yet"):
        check.launch(unwritten, 1, 1, np.zeros(1))
    with pytest.raises(check.CheckFailed, match="put @kernel"):
        check.launch(hand_in, 1, 1, np.zeros(1))
    with pytest.raises(check.CheckFailed):
        check.launch(hand_in("def f(a): raise NotImplementedError"), 1, 1, np.zeros(1))


TABLE = np.zeros(3)


@pytest.mark.parametrize("name", ["TABLE", "open", "pytest.raises"])
def test_other_things_from_outside_are_refused_at_home(name):
    space = dict(globals())
    text = f"def f(a):\n    a[0] = {name}\n"
    import linecache

    linecache.cache["<refused>"] = (1, None, text.splitlines(True), "<refused>")
    exec(compile(text, "<refused>", "exec"), space)
    with pytest.raises((TypeError, cuda.KernelError), match=name.split(".")[0]):
        kernel(space["f"]).portable()


def hand_in(text: str, **parts) -> dict:
    return {"name": "f", "text": text, "line": 1, "numbers": {}, "words": {}, "devices": {}} | parts


@pytest.mark.parametrize(
    "text",
    [
        "def f(a): open('x')",
        "def f(a): a.__class__",
        "def f(a): a[0] = a.flat",
        "def f(a): __import__('os')",
        "def f(a, b=print(1)): pass",
        "def f(a, *b): pass",
        "def f(a): _m = 1",
        "def f(a): _And = 1",
        "def f(a): a[0] = (lambda: 1)()",
        "def f(a): a[0] = [c for c in a]",
        "def f(a):\n    import os",
        "def f(a):\n    def g(): pass",
        "def f(a): a[0] = f'{a}'",
        "def f(a): a[0] = 'x'",
        "def f(a): f(a)",
        "def f(a): a[0] = (y := 1)",
        "def g(a): pass",
        "x = 1\ndef f(a): pass",
        "def f(a): pass\nprint(1)",
        "class f: pass",
        "async def f(a): pass",
        "def f(a): global x",
        "def f(a):\n    exec('1')",
        "def f(",
        "def f(a): \x00",
        "def f(a): " + "(" * 3000 + "1" + ")" * 3000,
        "def f(a): a[0] = " + "-" * 5000 + "1",
    ],
)
def test_only_the_kernel_language_gets_through(text):
    with pytest.raises((KernelSyntaxError, RecursionError)):
        from_portable(hand_in(text))
    with pytest.raises(check.CheckFailed):
        check.launch(hand_in(text), 1, 1, np.zeros(1))


USED = {name: name for name in ("range", "shared", "local", "shfl_down", "thread_idx", "float", "len", "min")}


@pytest.mark.parametrize(
    "body",
    [
        "s = shared(1, range)", "s = shared(10**12, float)", "s = shared(900_000_000, float)", "s = local(900_000_000, float)",
        "a[0] = a.shape[5]", "a[0] = float()", "a[0] = len()", "a[0] = len(3)", "a[0] = min()", "a[0] = shfl_down(1, 0.5)",
        "a[0] = shfl_down(1, 1, thread_idx.x)", "thread_idx.x(3)", "a(3)", "break", "a.x += 1", "a[0] = " + "9" * 400,
    ],
)  # fmt: skip
def test_whatever_stops_a_kernel_is_a_failed_check(body):
    with pytest.raises(check.CheckFailed):
        check.launch(hand_in(f"def f(a): {body}", words=USED), 1, 32, np.zeros(32, np.float32))


@pytest.mark.parametrize("text", ["def f(a: print('ran'), /): pass", "def f(a, a): pass", "def f(*, a): pass"])
def test_only_plain_parameters(text):
    with pytest.raises(check.CheckFailed):
        check.launch(hand_in(text), 1, 1, np.zeros(1))


@pytest.mark.parametrize("body", ["(a, a)[0][0] = thread_idx.x", "(a, a)[1][0] += 1", "b = a\n    b[0] = thread_idx.x"])
def test_a_second_name_hides_no_race(body):
    try:
        report = check.launch(hand_in(f"def f(a):\n    {body}", words={"thread_idx": "thread_idx"}), 1, 32, np.zeros(32))
    except check.CheckFailed:
        return
    assert report.races


def test_decorators_and_annotations_do_not_run():
    text = "@print('ran')\ndef f(a: print('ran')) -> print('ran'):\n    a[0] = 1"
    numbers = np.zeros(1)
    check.launch(hand_in(text), 1, 1, numbers)
    assert numbers[0] == 1


@pytest.mark.parametrize(
    "taken",
    [
        None, 3, [], {}, "def f(a): pass", hand_in("def f(a): pass") | {"more": 1}, hand_in("def f(a): pass", line=0),
        hand_in("def f(a): pass", line=10**9), hand_in("def f(a): pass", words={"x": "open"}),
        hand_in("def f(a): pass", words={"x": ["y"]}), hand_in("def f(a): pass", words={"__builtins__": "min"}),
        hand_in("def f(a): pass", numbers={"x": "y"}), hand_in("def f(a): pass", numbers={"x": 10**30}),
        hand_in("def f(a): pass", numbers={3: 4}), hand_in("def f(a): pass", numbers={"_m": 4}),
        hand_in("#" * 30_000 + "\ndef f(a): pass"), hand_in("def f(a): pass", devices={"g": 3}),
        hand_in("def f(a): pass", devices={"g": hand_in("def f(a): eval('1')")}),
        hand_in("def _m(a): pass", name="_m"),
    ],
)  # fmt: skip
def test_forged_parts_are_refused(taken):
    with pytest.raises(check.CheckFailed):
        check.launch(taken, 1, 1, np.zeros(1))


def test_an_endless_kernel_is_stopped():
    with pytest.raises(check.CheckFailed, match="rounds"):
        check.launch(hand_in("def f(a):\n    while a[0] == 0:\n        a[0] = 0"), 1, 1, np.zeros(1))
