"""What goes wrong says where: kernel, line, thread, index; and what the language lacks, says so."""

from __future__ import annotations

import linecache
import textwrap

import numpy as np
import pytest

from mlsys.gpu import simt
from mlsys.gpu.simt import (
    BarrierError,
    EndlessLoop,
    KernelError,
    KernelSyntaxError,
    LaneError,
    OutOfBounds,
    UnsetRead,
    atomic_add,
    block_dim,
    block_idx,
    float32,
    int32,
    kernel,
    local,
    shared,
    shfl_down,
    sync_threads,
    thread_idx,
)


def cell(body: str, name: str = "<ipython-input-7-abc>", parameters: str = "a, n"):
    """Define a kernel as a notebook does: source in linecache, then exec."""
    source = f"@kernel\ndef k({parameters}):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {word: getattr(simt, word) for word in simt.__all__} | {"np": np}
    exec(compile(source, name, "exec"), scope)
    return scope["k"]


def zeros(n=8):
    return np.zeros(n, np.int32)


def test_an_index_beyond_the_end_names_kernel_line_thread_and_index():
    k = cell("i = block_idx.x * 4 + thread_idx.x\nif i != 5:\n    a[i] = i")
    with pytest.raises(OutOfBounds) as caught:
        k.launch((2, 2), 4, (zeros(7), 0))
    assert str(caught.value) == (
        "k, line 5: thread (3, 0, 0) of block (1, 0, 0) writes a[7], but a has 7 elements.\n    a[i] = i"
    )
    assert (caught.value.kernel, caught.value.line, caught.value.thread) == ("k", 5, ((1, 0, 0), (3, 0, 0)))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "body, error, sentence",
    [
        ("a[thread_idx.x - 1] = 1", OutOfBounds, r"thread \(0, 0, 0\) of block \(0, 0, 0\) writes a\[-1\], but a has 8"),
        ("a[-1] = 1", OutOfBounds, r"writes a\[-1\]"),
        ("x = 0\nif thread_idx.x > 2:\n    x = a[thread_idx.x + 5]", OutOfBounds, r"line 5: thread \(3, 0, 0\).*reads a\[8\]"),
        ("s = shared((2, 3), int32)\ns[0, thread_idx.x] = 1", OutOfBounds, r"writes s\[0, 3\], but s has 2 x 3\."),
        ("atomic_add(a, thread_idx.x * 3, 1)", OutOfBounds, r"updates a\[9\]"),
        ("a[0, 0] = 1", KernelError, "a has 1 axes and is indexed with 2"),
        ("a[0.5] = 1", KernelError, "an index is an integer"),
        ("s = shared(8, int32)\na[0] = s[thread_idx.x]", UnsetRead, r"reads shared s\[0\], which nobody has written"),
        ("s = shared(8, int32)\ns[thread_idx.x // 2] = 1\na[0] = s[thread_idx.x]", UnsetRead, r"reads shared s\[2\]"),
        ("s = shared(8, int32)\natomic_add(s, 0, 1)", UnsetRead, r"shared s\[0\]"),
        ("s = local(2, int32)\nif thread_idx.x < 3:\n    s[1] = 1\na[0] = s[1]", UnsetRead, r"thread \(3, 0, 0\).*s\[1\]"),
        ("if thread_idx.x < 3:\n    sync_threads()", BarrierError, r"3 of the 4 threads of block \(0, 0, 0\); thread \(3, 0, 0\)"),
        ("if thread_idx.x == 0:\n    return\nsync_threads()", BarrierError, r"thread \(0, 0, 0\) is not there"),
        ("for j in range(thread_idx.x):\n    sync_threads()", BarrierError, "line 4: .*3 of the 4"),
        ("a[0] = n // thread_idx.x", KernelError, r"thread \(0, 0, 0\) of block \(0, 0, 0\) divides an integer by zero"),
        ("a[0] = shfl_down(n, 1)", LaneError, r"thread \(3, 0, 0\).*lane 4 of its warp, which does not take part"),
        ("x = n\nif thread_idx.x < 2:\n    x = shfl_down(x, 1)", LaneError, r"thread \(1, 0, 0\).*lane 2"),
        ("shfl_down(n, 1, 3)", KernelError, "width=3"),
        ("while n == 0:\n    a[0] = 1", EndlessLoop, "loop of line 3 has gone through 100 rounds"),
        ("if n == 1:\n    x = 1\na[0] = x", UnsetRead, r"thread \(0, 0, 0\) .* uses x, which it has not been given"),
        ("if thread_idx.x < 2:\n    x = 1\na[0] = x", UnsetRead, r"thread \(2, 0, 0\) of block \(0, 0, 0\) uses x"),
        ("for j in range(thread_idx.x):\n    x = j\na[0] = j", UnsetRead, r"thread \(0, 0, 0\) .* uses j"),
        ("if thread_idx.x == 1:\n    x += 1", UnsetRead, r"thread \(1, 0, 0\) .* uses x"),
        ("print(n)", KernelError, r"print\(\) cannot be called in a kernel; a function of your own needs @device"),
        ("for j in range(0, 4, n):\n    pass", KernelError, "step 0"),
        ("shared((4, thread_idx.x), int32)", KernelError, "the same for all threads"),
        ("a[0] = thread_idx.w", KernelError, "thread_idx has x, y and z, not w"),
        ("n[0] = 1", KernelError, "only arrays are"),
        ("a[0] = 2 ** (n - 1)", KernelError, "negative power"),
        ("a[0] = 1.5 & 1", KernelError, "works on integers"),
        ("atomic_add(a, 1)", KernelError, r"the arguments do not fit atomic_add\(a, index, v\)"),
    ],
)
def test_faults_while_running(body, error, sentence, traced):
    with pytest.raises(error, match=sentence):
        cell(body).launch(1, 4, (zeros(), 0), trace=traced, max_rounds=100)


@pytest.mark.parametrize(
    "body, sentence",
    [
        ("with a:\n    pass", r"`with` is not part of the kernel language.*line 3\)"),
        ("x = 1\ntry:\n    pass\nfinally:\n    pass", r"`try` is not .*line 4\)"),
        ("x = [1, 2]", "a list is not part"),
        ("x = [k for k in range(3)]", "a list comprehension"),
        ("a[0:2] = 1", "a slice"),
        ("x = a @ a", "`@` is not"),
        ("x = n is a", "`is` is not part"),
        ("for x in a:\n    pass", r"runs one variable over range\(...\)"),
        ("while n:\n    pass\nelse:\n    pass", "`else` after a loop"),
        ("x = y = 1", "write two lines"),
        ("x, y = n", "need as many values"),
        ("x = 'text'", "'text' is not a number"),
        ("x: int = 3", "a type annotation"),
        ("return n", "a kernel returns nothing"),
        ("import math", "`import`"),
    ],
)
def test_what_the_language_lacks_is_said_where_the_kernel_is_defined(body, sentence):
    with pytest.raises(KernelSyntaxError, match=sentence):
        cell(body)


def test_guards_that_short_circuit_protect_what_follows():
    k = cell(
        """
        i = thread_idx.x
        if i < 8 and a[i] == 0:
            a[i] = 1
        if i >= 8 or a[i] == 0:
            n = 2
        if 0 <= i < 8 and 0 < a[i % 8] <= a[i]:
            a[i] += a[i + 1] if i < 7 else 10
        x = 100 // (i - 3) if i != 3 else 0
        """
    )
    a = zeros()
    k.launch(1, 32, (a, 0))
    assert a.tolist() == [2] * 7 + [11]


def test_a_variable_may_be_left_unset_where_it_is_not_used():
    k = cell(
        """
        i = thread_idx.x
        if i < 3:
            x = i
        if i > 20:
            return
        else:
            z = 1
        for j in range(i):
            y = j
        if i < 3:
            a[i] = x + z
            if i > 0:
                a[i] += y * 10
        """
    )
    a = zeros()
    k.launch(1, 32, (a, 0), trace=True)
    assert a.tolist() == [1, 2, 13, 0, 0, 0, 0, 0]
    assert "_has_x" in simt.show(k) and "_has_z" not in simt.show(k)


@simt.device
def only_even(t):
    if t % 2 == 0:
        return t


@kernel
def asks(a, n):
    a[0] = only_even(thread_idx.x) if thread_idx.x < n else 3


def test_a_device_function_that_returns_nothing_in_some_thread():
    asks.launch(1, 4, (zeros(), 1))
    with pytest.raises(UnsetRead, match=r"thread \(1, 0, 0\) .* uses the result of only_even, which it has not been given"):
        asks.launch(1, 4, (zeros(), 2))


def test_arguments_and_sizes_are_checked():
    k = cell("a[0] = n")
    for launch, error, sentence in (
        (lambda: k.launch(1, (64, 32), (zeros(), 1)), ValueError, "2048 threads; a block has at most 1024"),
        (lambda: k.launch((1, 1, 1, 1), 1, (zeros(), 1)), ValueError, "grid="),
        (lambda: k.launch(0, 1, (zeros(), 1)), ValueError, "each at least 1"),
        (lambda: k.launch(1, 1, (zeros(),)), TypeError, r"takes \(a, n\) and got 1"),
        (lambda: k.launch(1, 1, ([1, 2], 1)), TypeError, "a is a list"),
        (lambda: k.launch(1, 1, (np.zeros((4, 4), np.int32)[:, 0], 1)), ValueError, "not contiguous"),
        (lambda: k.launch(1, 1, (np.zeros(2, complex), 1)), TypeError, "complex128"),
        (lambda: k(zeros(), 1), RuntimeError, "launch k with"),
        (lambda: sync_threads(), RuntimeError, "only inside a kernel"),
        (lambda: thread_idx.x, RuntimeError, "only inside a kernel"),
    ):
        with pytest.raises(error, match=sentence):
            launch()
    fixed = zeros()
    fixed.flags.writeable = False
    with pytest.raises(KernelError, match="a is read-only"):
        k[1, 1](fixed, 1)


def test_source_that_cannot_be_read():
    scope = {"kernel": kernel}
    with pytest.raises(KernelSyntaxError, match="cannot be read"):
        exec("@kernel\ndef k(a):\n    a[0] = 1", scope)


def test_kernels_in_notebook_cells():
    """Defined by IPython itself, twice under the same name; lines count within the cell."""
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_cell("import numpy as np\nfrom mlsys.gpu.simt import *\nSIZE = 3")
    source = "# a comment\n\n@kernel\ndef k(a):\n    a[thread_idx.x] = {}\n\na = np.zeros(4, np.int32)\nr = k.launch(1, {}, (a,))"
    for value in ("SIZE", "SIZE + 1"):
        assert shell.run_cell(source.format(value, 4)).success
        assert shell.user_ns["a"].tolist() == [eval(value, {"SIZE": 3})] * 4
    result = shell.run_cell(source.format("1", 5))
    assert "k, line 5: thread (4, 0, 0)" in str(result.error_in_exec)


@kernel
def race_between_blocks(a, flag):
    s = shared(1, int32)
    if thread_idx.x == 0:
        s[0] = block_idx.x
        a[0] = block_idx.x
    sync_threads()
    a[1 + thread_idx.x + block_idx.x * block_dim.x] = s[0]
    if thread_idx.x == 1:
        flag[0] = 1


@kernel
def barrier_orders_a_block(a):
    t = thread_idx.x
    i = block_idx.x * block_dim.x
    a[i + t] = t
    sync_threads()
    a[i + t] += 1
    sync_threads()
    x = a[i + (t + 1) % block_dim.x]
    a[i + t] = x


def test_barriers_order_threads_of_a_block_and_never_blocks():
    a, flag = zeros(65), zeros(1)
    races = race_between_blocks.launch(2, 32, (a, flag), trace=True).races
    assert [(r.array, r.index, r.elements) for r in races] == [("a", (0,), 1), ("flag", (0,), 1)]
    assert {races[0].first.block, races[0].second.block} == {(0, 0, 0), (1, 0, 0)}
    assert str(races[0]).startswith("race on global a[0]: thread (0, 0, 0) of block (")
    alone = race_between_blocks.launch(1, 32, (a, flag), trace=True)
    assert alone.races == ()
    races = barrier_orders_a_block.launch(2, 32, (zeros(64),), trace=True).races
    assert [(r.first.kind, r.second.kind, r.elements) for r in races] == [("writes", "reads", 64)]


@kernel
def atomic_and_plain(a, out):
    atomic_add(a, 0, 1)
    out[thread_idx.x] = a[0]


def test_an_atomic_and_a_plain_access_race():
    (race,) = atomic_and_plain.launch(1, 32, (zeros(1), zeros(32)), trace=True).races
    assert (race.first.kind, race.second.kind) == ("updates", "reads")


@kernel
def aliases(a, b):
    t = thread_idx.x
    c = a
    x = b[t + 1]
    c[t] = x


def test_two_names_for_one_array_are_watched():
    a = zeros(34)
    assert aliases.launch(1, 32, (a[:33], a[:33]), trace=True).races
    assert not aliases.launch(1, 32, (a[:33], zeros(33)), trace=True).races
    assert aliases.second_names and not barrier_orders_a_block.second_names


def test_unused_words_are_importable():
    assert all(hasattr(simt, word) for word in simt.__all__)
    assert (local.name, float32, shfl_down.name) == ("local", np.float32, "shfl_down")
