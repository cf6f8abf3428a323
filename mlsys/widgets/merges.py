"""The merges explorer: one story in many languages, cut into tokens by the first k merges.

All merges are learned once, and each word of a text is encoded once with all of them; what it
looked like on the way is kept. Merges apply in the order in which they were learned, so the first
k of them leave every word as it stood after the last of its steps below k: moving the slider is a
look-up, and the whole curve over k comes with it.
The merges of "every language" were learned from the very texts that are shown, which flatters them:
on a new text such a tokenizer needs more tokens.
Lessons: tokens and embeddings.
"""

from __future__ import annotations

import unicodedata
import warnings
from bisect import bisect_left
from functools import cache

import numpy as np

from ..data.text import languages, moby_dick
from ..tokenizer import WORD, Tokenizer
from ..viz.picture import INK, Axes, Picture, bars
from ..viz.style import COLOUR, blend
from .base import Explorer, choice, slider

MERGES = 2000
SHOWN = 150  # bytes of the text that are drawn as boxes, at least; up to the end of a word
FROM = {"an English novel": lambda: moby_dick(), "every language": lambda: languages().values()}
TINTS = [blend(COLOUR["compute"], 0.12), blend(COLOUR["compute"], 0.4), blend(COLOUR["compute"], 0.25)]

Steps = list[tuple[int, list[bytes]]]  # (number of the merge that was applied, pieces after it)


@cache
def tokenizer_of(source: str) -> Tokenizer:
    return Tokenizer.train(FROM[source](), MERGES)


def steps(word: str, tokenizer: Tokenizer) -> Steps:
    """How a word is merged: the pieces after each merge that applies, beginning with bytes (merge -1).

    >>> steps("aab", Tokenizer([(97, 98), (97, 256)]))
    [(-1, [b'a', b'a', b'b']), (0, [b'a', b'ab']), (1, [b'aab'])]
    """
    ids = list(word.encode())
    history = [(-1, [tokenizer.tokens[i] for i in ids])]
    while True:
        found = [tokenizer.rank[pair] for pair in zip(ids, ids[1:]) if pair in tokenizer.rank]
        if not found:
            return history
        merge = min(found)
        a, b = tokenizer.merges[merge]
        joined: list[int] = []
        for i in ids:
            if joined and (joined[-1], i) == (a, b):
                joined[-1] = 256 + merge
            else:
                joined.append(i)
        ids = joined
        history.append((merge, [tokenizer.tokens[i] for i in ids]))


def pieces_after(history: Steps, merges: int) -> list[bytes]:
    """The pieces of a word when only the first `merges` merges are known."""
    return history[bisect_left(history, merges, key=lambda step: step[0]) - 1][1]


@cache
def story(source: str, language: str) -> tuple[list[Steps], np.ndarray]:
    """The steps of every word of a text, and its number of tokens after 0, 1, ..., MERGES merges."""
    tokenizer, text = tokenizer_of(source), languages()[language]
    known = {word: steps(word, tokenizer) for word in set(WORD.findall(text))}
    words = [known[word] for word in WORD.findall(text)]
    fewer = np.zeros(MERGES + 1, int)
    for history in words:
        for (_, before), (merge, after) in zip(history, history[1:]):
            fewer[merge + 1] += len(before) - len(after)
    return words, len(text.encode()) - fewer.cumsum()


def shown(piece: bytes) -> str:
    """A token as text; the bytes of part of a character in hexadecimal.

    >>> shown(b' the'), shown('é'.encode()), shown('é'.encode()[:1])
    ('␣the', 'é', 'c3')
    """
    try:
        return piece.decode().replace(" ", "␣").replace("\n", "↵")
    except UnicodeDecodeError:
        return piece.hex(" ")


def width(text: str) -> float:
    """Pixels that a text of 13 px needs, roughly: wide letters of East Asia, marks that sit on others, the rest."""
    wide = {"W": 13.5, "F": 13.5}
    return sum(0 if unicodedata.category(c) == "Mn" else wide.get(unicodedata.east_asian_width(c), 8.4) for c in text)


class MergesExplorer(Explorer):
    """Boxes are tokens; below, tokens per byte over the number of merges, for the chosen text and for English."""

    def __init__(self):
        self.language = choice("text", list(languages()), "Russian")
        self.source = choice("merges learned from", list(FROM))
        self.merges = slider("merges", 300, 0, MERGES, 10)
        self.d_model = choice("d_model", [768, 4096, 8192])
        super().__init__([self.language, self.source, self.merges, self.d_model])

    def tokens(self, language: str) -> int:
        return int(story(self.source.value, language)[1][self.merges.value])

    def sentence(self) -> str:
        name, k = self.language.value, self.merges.value
        n, size = self.tokens(name), len(languages()[name].encode())
        more = "" if name in ("English", "Python") else f", {n / self.tokens('English'):.2f} times as many as the same story in English"
        return (f"{name}, {k:,} merges: {n:,} tokens for {size:,} bytes, {n / size:.2f} a byte{more}. "
                f"Vocabulary {256 + k:,}; embedding table {table_mb(k, self.d_model.value):.2f} MB in bf16.")

    def draw(self) -> Picture:
        name, k = self.language.value, self.merges.value
        words, curve = story(self.source.value, name)
        picture = Picture(640, 488, f"A text cut into tokens. {self.sentence()}")
        n, size = int(curve[k]), int(curve[0])
        picture.text(20, 20, f"{n / size:.2f} tokens a byte: {finding(n / size, k)}", 14, bold=True)
        self._boxes(picture, words, k)
        axes = Axes(picture, (56, 232, 440, 120), (0, MERGES), (0, 1.05), "merges", "tokens a byte", yticks=[0, 0.5, 1])
        every = np.arange(0, MERGES + 1, 20)
        ends = [(curve, name, COLOUR["compute"], "")]
        if name != "English":
            ends.append((story(self.source.value, "English")[1], "English", INK, "--"))
        places = apart([axes.y(line[-1] / line[0]) for line, *_ in ends])
        for (line, label, colour, dash), y in zip(ends, places):
            axes.plot(every, line[every] / line[0], colour, 2, dash)
            picture.text(506, y + 4, label, 12)
        axes.dot(k, n / size, COLOUR["compute"], 6, INK)
        english = self.tokens("English")
        rows = [(f"{name}, tokens", n, f"{n:,}")] + [("English, tokens", english, f"{english:,}")] * (name != "English")
        bars(picture, (20, 398, 600, 26 * len(rows)), rows, 2100, lambda _: COLOUR["compute"],
             lambda row: "" if row.startswith(name) else "/")
        mb = table_mb(k, self.d_model.value)
        bars(picture, (20, 456, 600, 26), [("embedding table", mb, f"{mb:.2f} MB")], table_mb(MERGES, 8192),
             lambda _: COLOUR["memory"], lambda _: "x")
        return picture

    def _boxes(self, picture: Picture, words: list[Steps], merges: int) -> None:
        """The beginning of the text, one box a token, in the order of its bytes."""
        x, y, used, turn = 20.0, 34.0, 0, 0
        for history in words:
            if used > SHOWN:
                break
            for piece in pieces_after(history, merges):
                text = shown(piece)
                broken = not _whole(piece)
                wide = max(6.6 * len(text) if broken else width(text), 9) + 5
                if x + wide > 624:
                    x, y = 20.0, y + 24
                if y > 190:
                    return
                picture.rect(x, y, wide, 21, "none" if broken else TINTS[turn % 3], INK)
                picture.text(x + wide / 2, y + 15, text, 10 if broken else 13, "middle", INK if broken else "#000000")
                x, used, turn = x + wide, used + len(piece), turn + 1

    def _repr_mimebundle_(self, **kwargs):
        """Paper has no letters for some scripts; the warning about it says nothing to a reader."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from")
            return super()._repr_mimebundle_(**kwargs)


def _whole(piece: bytes) -> bool:
    """Whether a token is whole characters."""
    return shown(piece) != piece.hex(" ") or piece.isascii()


def apart(places: list[float], least: float = 15) -> list[float]:
    """Two heights moved to a distance at which both labels can be read."""
    if len(places) < 2 or abs(places[0] - places[1]) >= least:
        return places
    middle, up = sum(places) / 2, 1 if places[0] >= places[1] else -1
    return [middle + up * least / 2, middle - up * least / 2]


def table_mb(merges: int, d_model: int) -> float:
    """Megabytes of an embedding table in bf16.

    >>> table_mb(2000, 4096)
    18.481152
    """
    return 2 * (256 + merges) * d_model / 1e6


def finding(per_byte: float, merges: int) -> str:
    """The title's second half."""
    if not merges:
        return "every byte is a token"
    if per_byte > 0.99:
        return "no merge fits this text"
    if per_byte > 0.6:
        return "few merges fit this text"
    return f"a token is {1 / per_byte:.1f} bytes long on average"
