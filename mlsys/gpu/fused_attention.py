"""Attention that runs in the instrumented memory: naive with its scores in HBM, and tiled, forward and backward.

The tiled forward goes by keys, as FlashAttention did in 2022: a block of keys and values stays in SRAM, blocks of queries
come by, and each takes away an output that is right for the keys seen so far. Two such outputs are merged by their
log-sum-exps. Backward keeps no weights: it makes them again from the scores and the log-sum-exp of the row, as
exp(s - lse), and needs of the output only D = rowsum(dO * O).
Simplified: one head, no dropout, the causal mask or none; computed in float64. Bytes are those of `attention_traffic`.
Lessons: fusion and IO-aware kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .attention_traffic import Attention, blocks, visits
from .sram import Report, run

LOW = "-1e300"  # stands for the maximum of a row whose keys are all masked


@dataclass(frozen=True)
class Forward:
    """out (n, d); lse (n,), the log of each row's sum of exponentials; report: what it moved."""

    out: np.ndarray
    lse: np.ndarray
    report: Report


@dataclass(frozen=True)
class Backward:
    """Gradients (n, d), and what they moved."""

    dq: np.ndarray
    dk: np.ndarray
    dv: np.ndarray
    report: Report


def naive(q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: int, sram_bytes: int, causal: bool = False, itemsize: int = 2) -> Forward:
    """Three kernels: scores into HBM, their softmax in HBM, weights times V. q, k, v: (n, d).

    >>> x = np.random.default_rng(0).normal(size=(3, 64, 8))
    >>> naive(*x, rows=16, sram_bytes=4096).report.kernels
    {'scores': (5120, 8192), 'softmax': (8192, 8320), 'mix': (12288, 1024)}
    """
    n, d = q.shape
    lines = ["kernel(scores)"]
    for first, last in blocks(n, rows):
        lines.append(f"q = Q[{first}:{last}]")
        for key, end in blocks(n, rows):
            product = f"q @ k.T * {d**-0.5!r}"
            lines += [f"k = K[{key}:{end}]", f"s = {f'causal({product}, {first}, {key})' if causal else product}"]
            lines.append(f"S[{first}:{last}, {key}:{end}] = s")
    lines.append("kernel(softmax)")
    for row in range(n):
        lines += [f"s = S[{row}:{row + 1}]", "peak = rowmax(s)", "s = exp(s - peak)", "total = rowsum(s)"]
        lines += [f"P[{row}:{row + 1}] = s / total", f"L[{row}:{row + 1}] = peak + log(total)"]
    lines.append("kernel(mix)")
    for first, last in blocks(n, rows):
        lines.append(f"out = full({last - first}, {d}, 0)")
        for key, end in blocks(n, rows):
            lines += [f"p = P[{first}:{last}, {key}:{end}]", f"v = V[{key}:{end}]", "out = out + p @ v"]
        lines.append(f"O[{first}:{last}] = out")
    return _forward(lines, q, k, v, sram_bytes, itemsize, S=np.zeros((n, n)), P=np.zeros((n, n)))


def forward(q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: int, cols: int, sram_bytes: int, causal: bool = False,
            itemsize: int = 2) -> Forward:
    """Tiled attention in one kernel, by keys: blocks of `cols` keys stay, blocks of `rows` queries come by. q, k, v: (n, d).

    Raises SramFull if the blocks do not fit.

    >>> x = np.random.default_rng(0).normal(size=(3, 64, 8))
    >>> tiled, plain = forward(*x, rows=16, cols=32, sram_bytes=4096), naive(*x, rows=16, sram_bytes=4096)
    >>> bool(np.allclose(tiled.out, plain.out)), tiled.report.hbm_bytes, plain.report.hbm_bytes
    (True, 7552, 43136)
    """
    n, d = q.shape
    lines = []
    for key, end in blocks(n, cols):
        lines += [f"k = K[{key}:{end}]", f"v = V[{key}:{end}]"]
        for first, last, at, _ in visits(Attention(n, d, causal), rows, cols):
            if at == key:
                lines += _merge_block(first, last, key, d, causal)
    return _forward(lines, q, k, v, sram_bytes, itemsize)


def _merge_block(first: int, last: int, key: int, d: int, causal: bool) -> list[str]:
    """One block of queries meets one block of keys, and its output is merged with what is in HBM."""
    product = f"q @ k.T * {d**-0.5!r}"
    lines = [f"q = Q[{first}:{last}]", f"s = {f'causal({product}, {first}, {key})' if causal else product}"]
    lines += [f"peak = maximum(rowmax(s), {LOW})", "s = exp(s - peak)", "lse = peak + log(rowsum(s))"]
    if key:
        lines += [f"old = L[{first}:{last}]", f"out = O[{first}:{last}]", "top = maximum(old, lse)"]
        lines += ["lse = top + log(exp(old - top) + exp(lse - top))", "out = out * exp(old - lse) + s @ v * exp(peak - lse)"]
    else:
        lines += ["out = s @ v / rowsum(s)"]
    return [*lines, f"O[{first}:{last}] = out", f"L[{first}:{last}] = lse"]


def backward(q: np.ndarray, k: np.ndarray, v: np.ndarray, saved: Forward, dout: np.ndarray, *, rows: int, cols: int, sram_bytes: int,
             causal: bool = False, itemsize: int = 2) -> Backward:
    """Gradients of a loss whose gradient toward the output is dout, from the output and log-sum-exp that forward left.

    >>> rng = np.random.default_rng(0)
    >>> x, dout = rng.normal(size=(3, 64, 8)), rng.normal(size=(64, 8))
    >>> tiled = backward(*x, forward(*x, 16, 32, 4096), dout, rows=16, cols=32, sram_bytes=6144)
    >>> tiled.report.kernels
    {'products': (2048, 128), 'gradients': (7680, 4096)}
    """
    n, d = q.shape
    lines = ["kernel(products)"]
    for first, last in blocks(n, rows):
        lines += [f"o = O[{first}:{last}]", f"g = G[{first}:{last}]", f"D[{first}:{last}] = rowsum(o * g)"]
    lines.append("kernel(gradients)")
    pairs = visits(Attention(n, d, causal), rows, cols)
    for key, end in blocks(n, cols):
        lines += [f"k = K[{key}:{end}]", f"v = V[{key}:{end}]", f"dk = full({end - key}, {d}, 0)", f"dv = full({end - key}, {d}, 0)"]
        for first, last, at, _ in pairs:
            if at == key:
                lines += _gradient_block(first, last, key, d, causal)
        lines += [f"DK[{key}:{end}] = dk", f"DV[{key}:{end}] = dv"]
    arrays = {"Q": q, "K": k, "V": v, "O": saved.out, "G": dout, "L": saved.lse[:, None]}
    hbm = {name: np.array(array, float) for name, array in arrays.items()}
    hbm |= {"D": np.zeros((n, 1)), **{name: np.zeros((n, d)) for name in ("DQ", "DK", "DV")}}
    report = run(lines, hbm, sram_bytes, itemsize)
    return Backward(hbm["DQ"], hbm["DK"], hbm["DV"], report)


def _gradient_block(first: int, last: int, key: int, d: int, causal: bool) -> list[str]:
    """What one block of queries and one of keys add to the gradients."""
    product, rows = f"q @ k.T * {d**-0.5!r}", f"{first}:{last}"
    lines = [f"q = Q[{rows}]", f"g = G[{rows}]", f"lse = L[{rows}]", f"delta = D[{rows}]"]
    lines += [f"p = {f'causal({product}, {first}, {key})' if causal else product}", "p = exp(p - lse)", "dv = dv + p.T @ g"]
    lines += [f"p = p * (g @ v.T - delta) * {d**-0.5!r}", "dk = dk + p.T @ q"]
    lines += [f"dq = DQ[{rows}]", "dq = dq + p @ k"] if key else ["dq = p @ k"]
    return [*lines, f"DQ[{rows}] = dq"]


def _forward(lines: list[str], q, k, v, sram_bytes: int, itemsize: int, **scratch: np.ndarray) -> Forward:
    """Run a forward program over fresh arrays."""
    n, d = q.shape
    hbm = {name: np.array(array, float) for name, array in {"Q": q, "K": k, "V": v}.items()}
    hbm |= {"O": np.zeros((n, d)), "L": np.zeros((n, 1)), **scratch}
    report = run(lines, hbm, sram_bytes, itemsize)
    return Forward(hbm["O"], hbm["L"][:, 0], report)
