"""Random programs: the machine against the thread-by-thread interpreter, bit for bit and line by line."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest

from mlsys.gpu import simt
from tests.mlsys import gpu_simt_oracle as oracle

INTS, FLOATS = ("u", "v", "w"), ("f", "g")
LOOP = iter(range(10**9))


def define(source: str, name: str = "k"):
    """The kernel of a source text that no file holds, as a notebook cell would define it."""
    filename = f"<program {next(LOOP)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {word: getattr(simt, word) for word in simt.__all__}
    exec(compile(source, filename, "exec"), scope)
    return scope[name]


class Programs:
    """Writes kernels whose result does not depend on the order of the threads."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.loops = self.names = 0

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def integer(self, depth=2) -> str:
        if depth == 0 or self.rng.random() < 0.25:
            return self.pick(*INTS, "i", "t", str(self.rng.integers(-9, 10)), str(self.rng.integers(10**6, 2**31)))
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        return self.pick(
            f"({a} {self.pick(*'+-*&|^')} {b})", f"({a} // {self.pick(1, 2, 3, -5, 7)})", f"({a} % {self.pick(1, 4, 9, -3)})",
            f"({a} << {self.rng.integers(8)})", f"({a} >> {self.rng.integers(8)})", f"min({a}, {b})", f"max({a}, {b})",
            f"a[{a} % 50]", f"(-{a})", f"(~{a})", f"({a} if {self.condition(0)} else {b})", f"twist({a}, {b})",
        )  # fmt: skip

    def real(self, depth=2) -> str:
        if depth == 0 or self.rng.random() < 0.25:
            return self.pick(*FLOATS, "0.5", "-1.25", "3.0", f"float32({self.pick(*INTS)} % 100)")
        a, b = self.real(depth - 1), self.real(depth - 1)
        return self.pick(
            f"({a} {self.pick(*'+-*')} {b})", f"({a} * {self.pick(*INTS)})", f"x[{self.integer(0)} % 50]", f"max({a}, {b})"
        )  # fmt: skip

    def condition(self, depth=1) -> str:
        op = self.pick("<", "<=", ">", ">=", "==", "!=")
        if depth == 0:
            return self.pick(f"{self.integer(0)} % 3 {op} {self.rng.integers(3)}", f"{self.real(0)} {op} {self.real(0)}")
        a, b = self.condition(depth - 1), self.condition(depth - 1)
        return self.pick(
            f"({a} and {b})", f"({a} or {b})", f"not {a}", a, f"-3 <= {self.integer(1)} % 9 < {self.integer(0)}",
            f"(0 <= {self.integer(0)} < 50 and a[{self.integer(0)} % 50] {op} 3)",
        )  # fmt: skip

    def write(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, depth: int, in_loop: bool) -> None:
        for _ in range(self.rng.integers(1, 4)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent: int, depth: int, in_loop: bool) -> None:
        choice = self.rng.random()
        if depth == 0 or choice < 0.4:
            self.simple(indent)
        elif choice < 0.65:
            self.write(indent, f"if {self.condition()}:")
            self.block(indent + 1, depth - 1, in_loop)
            if self.rng.random() < 0.4:
                self.write(indent, f"elif {self.condition()}:")
                self.block(indent + 1, depth - 1, in_loop)
            if self.rng.random() < 0.5:
                self.write(indent, "else:")
                self.block(indent + 1, depth - 1, in_loop)
        elif choice < 0.9:
            self.loop(indent, depth)
        elif in_loop:
            self.write(indent, f"if {self.condition()}:")
            self.block(indent + 1, 0, False)
            self.write(indent + 1, self.pick("break", "continue", "continue", "return"))
        else:
            self.write(indent, f"if {self.condition(0)} and t % 5 == 1:")
            self.simple(indent + 1)
            self.write(indent + 1, "return")

    def loop(self, indent: int, depth: int) -> None:
        self.names += 1
        k = f"k{self.names}"
        if self.rng.random() < 0.6:
            bounds = self.pick(f"{self.integer(1)} % 5", "3", f"{self.integer(0)} % 3, 4", f"5, {self.integer(0)} % 4, -2")
            self.write(indent, f"for {k} in range({bounds}):")
            self.write(indent + 1, f"{self.pick(*INTS)} += {k}")
        else:
            self.write(indent, f"{k} = 0")
            self.write(indent, f"while {k} < {self.integer(0)} % 6 and {self.condition(0)}:")
            self.write(indent + 1, f"{k} += 1")
        self.block(indent + 1, depth - 1, True)

    def simple(self, indent: int) -> None:
        text = self.pick(
            lambda: f"{self.pick(*INTS)} = {self.integer()}", lambda: f"{self.pick(*INTS)} += {self.integer(1)}",
            lambda: f"{self.pick(*INTS)} {self.pick(*'-*^')}= {self.integer(1)}", lambda: f"u, v = v, {self.integer(1)}",
            lambda: f"{self.pick(*FLOATS)} = {self.real()}", lambda: f"{self.pick(*FLOATS)} += {self.real(1)}",
            lambda: f"own[i, {self.integer(0)} % 4] = {self.integer(1)}", lambda: f"own[i, {self.integer(0)} % 4] += u",
            lambda: f"mine[{self.integer(0)} % 3] += {self.pick(*INTS)}",
            lambda: f"atomic_add(count, {self.integer(1)} % 8, {self.pick(*INTS)})",
            lambda: f"atomic_{self.pick('max(top, ', 'min(top, 4 + ')}{self.integer(0)} % 4, {self.integer(1)})",
        )  # fmt: skip
        self.write(indent, text())

    def exchange(self) -> None:
        """A round through shared memory, or a shuffle; all threads take part."""
        if self.rng.random() < 0.6:
            self.write(1, f"stage[t] = {self.integer(1)}")
            self.write(1, "sync_threads()")
            self.write(1, f"{self.pick(*INTS)} = stage[(t * {self.pick(1, 3, 5)} + {self.rng.integers(99)}) % 64]")
            self.write(1, "sync_threads()")
        else:
            how, of = self.pick("down", "up", "xor"), self.pick(*INTS)
            self.write(1, f"{of} += shfl_{how}({of}, {self.pick(1, 2, 5, 16)}, {self.pick(32, 32, 8)})")

    def kernel(self) -> str:
        header = """\
        @device
        def twist(p, q):
            if p > q:
                return p - q
            while p % 8 < 5:
                p += 1
                if q % 8 == p % 4:
                    return 7
            return q ^ p

        @kernel
        def k(a, x, own, count, top, out, real):
            stage = shared((64,), int32)
            mine = local((3,), int32)
            t = thread_idx.y * block_dim.x + thread_idx.x
            i = block_idx.x * 64 + t
            u = i
            v = a[i % 50]
            w = 5 - t
            f = x[i % 50]
            g = 0.0
            mine[0] = t
            mine[1] = 1
            mine[2] = v
        """
        self.lines = re.sub(r"(?m)^        ", "", header).rstrip().splitlines()
        for _ in range(self.rng.integers(1, 4)):
            if self.rng.random() < 0.7:
                self.exchange()
            before = len(self.lines)
            self.statement(1, 2, False)
            if any("return" in line for line in self.lines[before:]):
                break  # a thread that has left comes to no barrier
        self.block(1, 3, False)
        self.write(1, "out[i] = (u ^ v) + w + mine[0] * 3 + mine[1] - mine[2]")
        self.write(1, "real[i] = f + g")
        return "\n".join(self.lines) + "\n"


def memory(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.integers(-20, 20, 50).astype(np.int32)
    x = rng.integers(-8, 8, 50).astype(np.float32) / 4
    zeros = [np.zeros(s, np.int32) for s in ((128, 4), (8,), (8,), (128,))]
    return [a, x, *zeros, np.zeros(128, np.float32)]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_agree_with_the_interpreter(seed):
    source = Programs(seed).kernel()
    ours, theirs = memory(seed), memory(seed)
    kernel = define(source)
    report = kernel.launch((2,), (16, 4), ours, trace=True)
    slow = oracle.run(source, (2, 1, 1), (16, 4, 1), theirs, name="k")
    for name, got, want in zip(kernel.parameters, ours, theirs):
        np.testing.assert_array_equal(got, want, err_msg=f"{name}\n{source}")
    lanes = {r.line: r.active_lanes for r in report.lines if r.issue_slots}
    assert lanes == dict(slow.executed), source
    assert all(r.active_lanes <= 32 * r.issue_slots for r in report.lines)
    assert report.races == (), source
    again = memory(seed)
    kernel.launch((2,), (16, 4), again)
    for got, want in zip(again, theirs):
        np.testing.assert_array_equal(got, want)


class Racy(Programs):
    """Writes straight-line kernels that race, or do not."""

    def kernel(self) -> str:
        self.lines = ["@kernel", "def k(p, q):", "    s = shared((40,), int32)", "    t = thread_idx.x"]
        self.lines += ["    i = block_idx.x * block_dim.x + t", "    s[t] = 0"]
        for _ in range(self.rng.integers(2, 7)):
            array = self.pick("p", "q", "s")
            where = self.pick("t", "i % 40", "(t + 1) % 40", "t // 2", "3", "39 - t", "t % 7", "block_idx.x")
            text = self.pick(
                "sync_threads()", "sync_threads()", "if block_idx.x == 1:\n        sync_threads()",
                f"{array}[{where}] = t", f"u = {array}[{where}]",
                f"{array}[{where}] += 1", f"atomic_add({array}, {where}, 1)",
            )  # fmt: skip
            if "sync" in text or self.rng.random() < 0.6:
                self.write(1, text)
            else:
                self.write(1, f"if {self.pick('t % 2 == 0', 't < 3', 'block_idx.x == 1', 'i == 30')}:")
                self.write(2, text)
        return "\n".join(self.lines) + "\n"


@pytest.mark.parametrize("budget", [1 << 23, 100], ids=["kept", "condensed"])
@pytest.mark.parametrize("seed", range(30))
def test_races_are_those_that_trying_all_pairs_finds(seed, budget, monkeypatch):
    monkeypatch.setattr("mlsys.gpu.simt.races.BUDGET", budget)
    source = Racy(seed).kernel().replace("s[t] = 0", "s[t] = 0\n    if t < 16:\n        s[t + 24] = 0\n    sync_threads()")
    report = define(source).launch(2, 24, [np.zeros(80, np.int32), np.zeros(80, np.int32)], trace=True)
    want = oracle.races(
        oracle.run(source, (2, 1, 1), (24, 1, 1), [np.zeros(80, np.int32), np.zeros(80, np.int32)])
    )
    got = {(r.array, frozenset((r.first.line, r.second.line))) for r in report.races}
    assert got <= want, source
    assert {array for array, _ in got} == {array for array, _ in want}, source
