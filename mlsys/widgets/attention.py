"""The attention explorer: three heads read a line of letters, under any mask.

Each head has simple vectors, so that it is known what it looks for. "random" has random queries
and keys. "own letter" has the letter itself as query and as key. "one back" asks for one fixed vector
and has it, turned back by one position, as every key: without RoPE all its scores are equal.
Simplification: these heads are made by hand; a trained head mixes such patterns, as the lesson shows.
Lessons: attention and masks.
"""

from __future__ import annotations

import functools

import numpy as np

from ..transformer.masks import causal_mask, prefix_mask, sliding_mask
from ..transformer.rope import rope_table, turn
from ..units import percent
from ..viz.picture import INK, Picture, bars
from ..viz.runs import runs
from ..viz.style import COLOUR, blend
from .base import Explorer, choice, float_slider, slider, stops

LINE = "the whale, the sea, the "  # 24 letters
MOST = len(LINE)
OWN, BACK, RANDOM = "own letter", "one back", "random"
MASKS = {  # name: (t, reach) -> booleans (queries, keys)
    "none": lambda t, reach: np.ones((t, t), bool),
    "causal": lambda t, reach: causal_mask(t),
    "sliding window": lambda t, reach: sliding_mask(t, reach),
    "prefix": lambda t, reach: prefix_mask(t, reach),
    "padding": lambda t, reach: np.broadcast_to(np.arange(t) < reach, (t, t)),
}
REACHES = {"sliding window": "tokens a row", "prefix": "tokens in the prefix", "padding": "tokens before the padding"}


class AttentionExplorer(Explorer):
    """An attention map: who reads whom, how sharply, and what mask, scale and positions do to it."""

    def __init__(self):
        self.head = choice("head", [OWN, BACK, RANDOM])
        self.mask = choice("mask", list(MASKS), "causal")
        self.reach = slider("reach of the mask", 6, 1, MOST)
        self.scale = choice("scores", ["divided by √d", "as they are"])
        self.width = stops("d, numbers a head", [(str(d), d) for d in (16, 64, 256)], 64)
        self.temperature = float_slider("temperature", 1.0, 0.1, 4.0, 0.1, ".1f")
        self.rope = choice("RoPE", ["off", "on"])
        self.tokens = slider("tokens", 16, 2, MOST)
        self.query = slider("query", 12, 1, MOST)
        super().__init__([self.head, self.mask, self.reach, self.scale, self.width, self.temperature,
                          self.rope, self.tokens, self.query])

    def update(self, _change=None) -> None:
        self.reach.disabled = self.mask.value not in REACHES
        super().update()

    def model(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Weights and mask, (tokens, tokens) each, and the row that is described."""
        t, d = self.tokens.value, self.width.value
        q, k = vectors(self.head.value, d)
        q, k = q[:t], k[:t]
        if self.rope.value == "on":
            table = rope_table(t, d, dtype="float64")
            q, k = (turn(x[:, None], *table)[:, 0] for x in (q, k))
        allowed = MASKS[self.mask.value](t, min(self.reach.value, t))
        divisor = self.temperature.value * (d**0.5 if self.scale.value == "divided by √d" else 1.0)
        return weights(q @ k.T / divisor, allowed), allowed, min(self.query.value, t) - 1

    def finding(self) -> str:
        p, allowed, _ = self.model()
        read, may = 2 ** entropy(p).mean(), 2 ** np.log2(allowed.sum(1)).mean()
        return f"A query reads as if it had {read:.1f} keys; it may read {may:.1f}"

    def sentence(self) -> str:
        p, allowed, row = self.model()
        keys = [f"{percent(p[row, j])} of {shown(j)}" for j in top_keys(p[row], 3)]
        bits, most = entropy(p)[row], np.log2(allowed[row].sum())
        return (f"Query {shown(row)} may read {allowed[row].sum()} of {len(p)} keys and takes {', '.join(keys)}. "
                f"Entropy of its weights: {bits:.2f} bits of at most {most:.2f}; mean over all queries {entropy(p).mean():.2f}.")

    def draw(self) -> Picture:
        p, allowed, row = self.model()
        t = len(p)
        cell = min(24.0, 336 / t)
        left, top = 62.0, 84.0
        picture = Picture(700, 440, f"Attention map, queries down, keys across. {self.finding()}. {self.sentence()}")
        picture.text(20, 20, self.finding(), 14, bold=True)
        picture.text(20, 40, "a row = a query, a column = a key; the darker, the larger the weight; hatched = hidden by the mask", 12)
        for i in range(t):
            y = top + i * cell
            for may_read, start, stop in runs(allowed[i]):
                if not may_read:
                    picture.rect(left + start * cell, y, (stop - start) * cell, cell, blend(COLOUR["idle"], 0.25), "none", "/")
            for j in np.flatnonzero(allowed[i]):
                picture.rect(left + j * cell, y, cell - 1, cell - 1, blend(COLOUR["activations"], float(p[i, j])), COLOUR["idle"])
            picture.text(left - 8, y + cell / 2 + 4, letter(i), 11, "end")
            picture.text(left + (i + 0.5) * cell, top - 6, letter(i), 11, "middle")
        picture.line([(left - 26, top + (row + 0.5) * cell), (left - 18, top + (row + 0.5) * cell)], INK, 3)
        picture.rect(left - 1, top + row * cell - 1, t * cell + 1, cell + 1, "none", INK)
        self.draw_row(picture, p, allowed, row)
        return picture

    def draw_row(self, picture: Picture, p: np.ndarray, allowed: np.ndarray, row: int) -> None:
        """Right: what the chosen query reads, and the entropy of its weights."""
        picture.text(430, 74, f"query {shown(row)} reads", 12, bold=True)
        rows = [(f"{shown(j)}", float(p[row, j]), percent(p[row, j], ".1f")) for j in top_keys(p[row], 6)]
        bars(picture, (430, 80, 260, 26 * len(rows)), rows, 1.0, lambda _: COLOUR["activations"], name_width=64)
        picture.text(430, 290, "entropy of its weights", 12, bold=True)
        bits, most = float(entropy(p)[row]), float(np.log2(allowed[row].sum()))
        rows = [("here", bits, f"{bits:.2f} bits"), ("evenly spread", most, f"{most:.2f} bits")]
        bars(picture, (430, 296, 260, 56), rows, np.log2(MOST), lambda name: COLOUR["activations" if name == "here" else "idle"],
             lambda name: "" if name == "here" else "/", name_width=90)


@functools.lru_cache(maxsize=16)
def vectors(head: str, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of a head for all letters of the line, (24, d) each, before RoPE."""
    rng = np.random.default_rng(4)
    letters = sorted(set(LINE))
    if head == OWN:
        x = rng.standard_normal((len(letters), d))[[letters.index(c) for c in LINE]]
        return x, x
    if head == RANDOM:
        q, k = rng.standard_normal((2, MOST, d))
        return q, k
    wanted = np.zeros((1, d))
    wanted[0, : d // 4] = 2.0  # in the fast half of the pairs, so that one position is a large turn
    back = rope_table(1, d, start=-1, dtype="float64")
    return np.repeat(wanted, MOST, 0), np.repeat(turn(wanted[:, None], back[0], -back[1])[:, 0], MOST, 0)


def weights(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Softmax over the allowed keys of each row; every row has one.

    >>> weights(np.zeros((1, 3)), np.array([[True, True, False]]))
    array([[0.5, 0.5, 0. ]])
    """
    scores = np.where(allowed, scores, -np.inf)
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def entropy(p: np.ndarray) -> np.ndarray:
    """Bits of each row: 0 for one key, log2(n) for n keys alike.

    >>> entropy(np.array([[1.0, 0.0], [0.5, 0.5]]))
    array([0., 1.])
    """
    return -(p * np.log2(np.where(p > 0, p, 1.0))).sum(1) + 0.0


def top_keys(row: np.ndarray, most: int) -> list[int]:
    """The keys with the largest weights, those of at least 0.5 % only.

    >>> top_keys(np.array([0.1, 0.899, 0.001]), most=3)
    [1, 0]
    """
    return [int(j) for j in np.argsort(-row, kind="stable")[:most] if row[j] >= 0.005]


def letter(i: int) -> str:
    """The letter at a place of the line, a space made visible."""
    return LINE[i].replace(" ", "␣")


def shown(i: int) -> str:
    """A token's letter and its number, from 1."""
    return f"{letter(i)} ({i + 1})"
