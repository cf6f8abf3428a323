"""The memory with two levels: attention in it equals plain attention, and its bytes equal the closed forms."""

import math

import numpy as np
import pytest

from mlsys.gpu import attention_traffic as traffic
from mlsys.gpu import sram
from mlsys.gpu.attention_traffic import Attention, blocks, visits
from mlsys.gpu.fused_attention import Forward, backward, forward, naive
from mlsys.gpu.sram import run
from mlsys.gpu.sram_language import NoSuchArray, SramError, SramFull, parse
from mlsys.transformer import causal_mask

CASES = [(1, 1, 1, 1), (5, 2, 2, 3), (16, 4, 4, 4), (33, 8, 16, 8), (40, 3, 7, 40), (64, 16, 64, 5)]  # n, d, rows, cols


def plain(q, k, v, causal=False, scale=1.0):
    """Attention by its definition, with the log of the sums."""
    scores = q @ k.T / math.sqrt(q.shape[1]) * scale
    if causal:
        scores = np.where(causal_mask(len(q)), scores, -np.inf)
    top = scores.max(1, keepdims=True)
    e = np.exp(scores - top)
    return e / e.sum(1, keepdims=True) @ v, (top + np.log(e.sum(1, keepdims=True)))[:, 0], e / e.sum(1, keepdims=True)


def gradients(q, k, v, dout, causal):
    """The closed form, over whole matrices."""
    out, _, p = plain(q, k, v, causal)
    ds = p * (dout @ v.T - (dout * out).sum(1, keepdims=True)) / math.sqrt(q.shape[1])
    return ds @ k, ds.T @ q, p.T @ dout


def draw(n, d, seed=0, size=1.0):
    rng = np.random.default_rng(seed)
    return tuple(size * rng.normal(size=(n, d)) for _ in range(4))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, d, rows, cols", CASES)
def test_forward_equals_plain_attention(n, d, rows, cols, causal):
    for size in (1.0, 30.0):  # scores of thousands too
        q, k, v, _ = draw(n, d, n, size)
        out, lse, _ = plain(q, k, v, causal)
        for got in (forward(q, k, v, rows, cols, 10**6, causal), naive(q, k, v, rows, 10**6, causal)):
            assert np.allclose(got.out, out, rtol=1e-10, atol=1e-12)
            assert np.allclose(got.lse, lse, rtol=1e-12, atol=1e-12)


def test_forward_equals_the_transformers_attention():
    from mlsys.autograd import Tensor
    from mlsys.transformer.fused import self_attention

    q, k, v, _ = draw(48, 8)
    packed = Tensor(np.concatenate([q, k, v], axis=1)[None])
    theirs = self_attention(packed, heads=1, kv_heads=1, mask=causal_mask(48)).data[0]
    assert np.allclose(forward(q, k, v, 16, 8, 10**5, causal=True).out, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, d, rows, cols", CASES)
def test_backward_equals_the_closed_form(n, d, rows, cols, causal):
    q, k, v, dout = draw(n, d, n + 1)
    got = backward(q, k, v, forward(q, k, v, rows, cols, 10**6, causal), dout, rows=rows, cols=cols, sram_bytes=10**6, causal=causal)
    for mine, want in zip((got.dq, got.dk, got.dv), gradients(q, k, v, dout, causal)):
        assert np.allclose(mine, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_backward_equals_central_differences(causal):
    q, k, v, dout = draw(7, 3, 5)
    got = backward(q, k, v, forward(q, k, v, 2, 3, 10**4, causal), dout, rows=2, cols=3, sram_bytes=10**4, causal=causal)
    for which, mine in enumerate((got.dq, got.dk, got.dv)):
        for place in np.ndindex(7, 3):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [array.copy() for array in (q, k, v)]
                moved[which][place] += step
                ends.append((plain(*moved, causal)[0] * dout).sum())
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(mine[place], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, d, rows, cols", CASES)
def test_bytes_equal_the_closed_forms(n, d, rows, cols, causal):
    q, k, v, dout = draw(n, d)
    shape = Attention(n, d, causal, itemsize=4)
    tiled = forward(q, k, v, rows, cols, 10**6, causal, itemsize=4)
    assert tiled.report.hbm_bytes == traffic.by_keys_bytes(shape, rows, cols)
    back = backward(q, k, v, tiled, dout, rows=rows, cols=cols, sram_bytes=10**6, causal=causal, itemsize=4)
    assert back.report.hbm_bytes == traffic.backward_bytes(shape, rows, cols)
    stored = naive(q, k, v, rows, 10**6, causal, itemsize=4)
    assert stored.report.hbm_bytes == traffic.naive_bytes(shape, rows) + 4 * n  # and the log-sum-exp
    assert tiled.report.matmul_flops == 4 * d * sum((b - a) * (e - c) for a, b, c, e in visits(shape, rows, cols))


def queries_stay(n, d, rows, cols, causal):
    """The other loop order, as a program of its own: traffic only, no numbers."""
    lines = []
    for first, last in blocks(n, rows):
        lines += [f"q = Q[{first}:{last}]", f"out = full({last - first}, {d}, 0)", f"row = full({last - first}, 4, 0)"]
        for key, end in blocks(n, cols):
            if not causal or key < last:
                lines += [f"k = K[{key}:{end}]", f"v = V[{key}:{end}]", "s = q @ k.T", "out = out + s @ v"]
        lines += [f"O[{first}:{last}] = out", f"L[{first}:{last}] = rowsum(row)"]
    return lines


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n, d, rows, cols", CASES)
def test_closed_form_and_space_of_the_other_order(n, d, rows, cols, causal):
    hbm = {name: np.zeros((n, d)) for name in "QKVO"} | {"L": np.zeros((n, 1))}
    report = run(queries_stay(n, d, rows, cols, causal), hbm, 10**7)
    shape = Attention(n, d, causal)
    assert report.hbm_bytes == traffic.by_queries_bytes(shape, rows, cols)
    assert report.matmul_flops == 4 * d * traffic.pairs_computed(shape, rows, cols)
    assert report.peak_bytes == traffic.sram_bytes(d, min(rows, n), min(cols, n))
    room = traffic.sram_bytes(d, rows, cols)
    assert traffic.most_rows(room, d, cols) == rows and traffic.most_rows(room - 1, d, cols) < rows


def test_naive_minus_tiled_is_four_passes_over_the_scores():
    for n, d, rows, cols in CASES:
        shape = Attention(n, d)
        assert traffic.naive_bytes(shape, rows) - traffic.by_queries_bytes(shape, rows, cols) == 2 * (4 * n * n - n)


def test_more_sram_never_moves_more_and_traffic_goes_with_its_inverse():
    """n^2 d^2 / M: from 64 to 128 KiB passes fall to a half, within the rounding of blocks."""
    shape = Attention(65_536, 64)
    moved = [traffic.by_queries_bytes(shape, traffic.most_rows(kib * 1024, 64, 16), 16) for kib in (16, 32, 64, 128, 256)]
    assert all(a > b for a, b in zip(moved, moved[1:]))
    for kib, found in zip((64, 128, 256), moved[2:]):
        asymptote = 4 * shape.n**2 * shape.d**2 / (kib * 1024 / 2) * 2
        assert 1 < found / asymptote < 1.35


def test_published_bytes():
    """FlashAttention's figure 2, second version: 4.4 GB; and 40.3 GB for a baseline with more passes than ours counts."""
    shape = traffic.GPT2_MEDIUM
    tiled = traffic.by_keys_bytes(shape, 64, traffic.PUBLISHED_COLS) + traffic.backward_bytes(shape, 64, traffic.PUBLISHED_COLS)
    stored = traffic.naive_bytes(shape) + traffic.naive_backward_bytes(shape)
    assert tiled / 1e9 == pytest.approx(4.4, rel=0.05)
    assert 0.55 < stored / 1e9 / 40.3 < 0.7
    others = [(traffic.by_keys_bytes(shape, 64, c) + traffic.backward_bytes(shape, 64, c)) / 1e9 for c in (64, 128, 512)]
    assert all(abs(other / 4.4 - 1) > 0.3 for other in others)  # the block size matters: others would not fit


def test_space_is_counted_and_refused():
    q, k, v, dout = draw(64, 8)
    saved = forward(q, k, v, 16, 16, 10**5)
    for peak, again in (
        (saved.report.peak_bytes, lambda size: forward(q, k, v, 16, 16, size)),
        (naive(q, k, v, 16, 10**5).report.peak_bytes, lambda size: naive(q, k, v, 16, size)),
        (backward(q, k, v, saved, dout, rows=16, cols=16, sram_bytes=10**5).report.peak_bytes,
         lambda size: backward(q, k, v, saved, dout, rows=16, cols=16, sram_bytes=size)),
    ):
        again(peak)
        with pytest.raises(SramFull, match="are free"):
            again(peak - 2)


def test_kernels_begin_empty_and_are_counted_apart():
    hbm = {"X": np.ones((4, 4)), "Y": np.zeros((4, 4))}
    report = run(["kernel(one)", "x = X[0:4]", "kernel(two)", "y = X[0:2]", "Y[0:2] = y"], hbm, 32)
    assert report.kernels == {"one": (32, 0), "two": (16, 16)} and report.peak_bytes == 32 and report.peak_line == "x = X[0:4]"
    assert report.read_bytes == {"X": 48} and report.written_bytes == {"Y": 16} and report.work.bytes_moved == 64
    with pytest.raises(SramError, match="line 3, `Y.0:4. = x`: there is no buffer x in SRAM"):
        run(["x = X[0:4]", "kernel(two)", "Y[0:4] = x"], hbm, 64)


@pytest.mark.parametrize("line, says", [
    ("s = X[0:4] * 2", "load it into a buffer first"),
    ("s = rowmax(a @ b)", "has to lie in a buffer before its rows can be reduced"),
    ("s = a @ b @ b", "a product takes buffers"),
    ("s = a @ b + a @ b", "a line can hold one product"),
    ("s = exp(a) @ b", "a product takes buffers, and `exp\\(a\\)` is none"),
    ("s = a.T @ b.T @ a", "a product takes buffers"),
    ("s = c @ a", "multiplies shapes \\(4, 1\\) and \\(4, 4\\)"),
    ("s = a + d", "shapes \\(4, 4\\) and \\(2, 4\\) do not go together"),
    ("s = missing", "there is no buffer missing in SRAM; it has a, b, c, d"),
    ("free(missing)", "there is no buffer missing"),
    ("X = a", "X is an array in HBM"),
    ("Z[0:4] = a", "there is no array Z in HBM; it has X"),
    ("X[0:2] = a", "the value has shape \\(4, 4\\), the place in X has \\(2, 4\\)"),
    ("X[9:12] = a", "nothing of it lies in that range"),
    ("s = X[2:2]", "the range 2:2 is empty"),
    ("s = X[0:4:2]", "is read and written in ranges"),
    ("s = X[0]", "is read and written in ranges"),
    ("s = X[-2:4]", "is no whole number from 0 to"),
    ("s = causal(a, 1000000000000000000000, 0)", "is no whole number from 0 to"),
    ("s = X[0:2.0]", "is no whole number from 0 to"),
    ("s = full(100000, 100000, 0)", "all of SRAM holds"),
    ("s = full(0, 5, 0)", "holds no number"),
    ("s = 0x" + "f" * 280, "too large"),
    ("s = " + "~" * 290 + "a", "is not known here|recursion"),
    ("s = '\ud800'", "this is no step"),
    ("s = full(2, 2, a)", "the third argument is one number"),
    ("s = (c - c.T) + full(4, 5000, 0)", "all of SRAM holds"),
    ("s = a ** 2", "is not known here"),
    ("s = a.real", "only a buffer can be turned"),
    ("s = open(a)", "is not known here"),
    ("s = exp(a, b)", "is not known here"),
    ("s = 'text'", "is not known here"),
    ("s = 1" + " + 1" * 99, "text of at most 300"),
    (["s = a"], "a line is text"),
    ("s = t = a", "this is no step"),
    ("import os", "this is no step"),
    ("a", "this is no step"),
    ("x = 1; y = 2", "this is no step"),
    ("s = (", "this is no step"),
    ("kernel(one, two)", "this is no step"),
    (7, "a line is text"),
])
def test_lines_that_are_refused(line, says):
    hbm = {"X": np.ones((4, 4))}
    begin = ["a = X[0:4]", "b = X[0:4]", "c = rowmax(a)", "d = X[0:2]"]
    with pytest.raises(SramError, match=f"^line 5, .*({says})"):
        run([*begin, line], hbm, 2 * 10_000)


@pytest.mark.parametrize("program", [None, "x = X[0:1]", [], 3, ["x = X[0:1]"] * 20_001])
def test_what_is_no_program(program):
    with pytest.raises(SramError, match="a program is a list"):
        run(program, {"X": np.ones((1, 1))}, 8)


def test_arrays_that_are_no_matrices():
    for wrong in ([1.0], np.ones(3), np.ones((2, 2), int)):
        with pytest.raises(ValueError, match="not a float64 matrix"):
            run(["x = X[0:1]"], {"X": wrong}, 8)
    with pytest.raises(ValueError, match="sram_bytes=0"):
        run(["x = X[0:1]"], {"X": np.ones((1, 1))}, 0)


def test_a_product_that_replaces_its_operand_needs_space_for_both():
    hbm = {"X": np.eye(4), "Y": np.zeros((4, 4))}
    assert run(["x = X[0:4]", "x = exp(x)"], hbm, 32).peak_bytes == 32
    assert run(["x = X[0:4]", "x = x + x.T"], hbm, 32).peak_bytes == 32
    with pytest.raises(SramFull, match="x takes 32 bytes, 31 of 63 are free \\(x 32\\)"):
        run(["x = X[0:4]", "x = x @ x"], hbm, 63)
    assert run(["x = X[0:4]", "x = x @ x", "free(x)", "x = X[0:4]"], hbm, 64).peak_bytes == 64


def test_nothing_but_what_is_stored_leaves_the_chip():
    """A loaded buffer is a copy: changing it changes no array."""
    hbm = {"X": np.ones((2, 2))}
    run(["x = X[0:2]", "x = x * 5"], hbm, 8)
    assert (hbm["X"] == 1).all()


def test_forward_saves_what_backward_needs():
    q, k, v, dout = draw(12, 4)
    out, lse, _ = plain(q, k, v)
    from_plain = Forward(out, lse, forward(q, k, v, 4, 4, 10**5).report)
    a = backward(q, k, v, from_plain, dout, rows=4, cols=4, sram_bytes=10**5)
    assert np.allclose(a.dk, gradients(q, k, v, dout, False)[1])


def test_errors_know_their_kind():
    with pytest.raises(NoSuchArray):
        run(["S[0:1] = 1"], {"X": np.ones((1, 1))}, 8)
    assert parse("O[0:4, 2:6] = a").columns == (2, 6)


def test_a_program_that_would_take_for_ever_is_refused(monkeypatch):
    """Work, buffers and messages have limits: a program may come from a stranger."""
    monkeypatch.setattr(sram, "MAX_WORK", 10**9)
    big = ["a = full(700, 700, 1)", "b = a + 0"]
    for line in ("b = " + " + ".join(["exp(a)"] * 30), "b = " + "-" * 200 + "a", "c = a @ b"):
        with pytest.raises(SramError, match="more work than"):
            run([*big, *[line] * 1_000], {"X": np.ones((1, 1))}, 4 * 10**6)
    many = [f"{'a' * 200}{number} = 1" for number in range(1001)]
    with pytest.raises(SramError, match="1,000 buffers already"):
        run(many, {"X": np.ones((1, 1))}, 10**6)
    with pytest.raises(SramError, match="and 992 more$") as caught:
        run([*many[:1000], "x = missing"], {"X": np.ones((1, 1))}, 10**6)
    assert len(str(caught.value)) < 1000
