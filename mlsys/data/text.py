"""Texts: one short story in twelve languages, and some chapters of a novel to train on.

The story was written for this course, and the translations say the same sentence by sentence, so
that a difference in tokens is a difference between languages, not between stories. They are no
translator's work: read them as data. One or two kilobytes a language are enough to learn merges
from, and far too few to say how a language behaves at large.
The novel is Herman Melville's Moby-Dick (1851): 25 chapters, 125 kB of 74 different characters. A
model that sees it a few times over learns it by heart, so keep the end for testing.
Lessons: tokens and embeddings, the block and its counts, scaling laws.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np


def languages() -> dict[str, str]:
    """{language: text}, twelve languages in six scripts and Python; read anew at each call (0.1 ms).

    >>> texts = languages()
    >>> len(texts), texts["English"][:33], round(len(texts["Korean"].encode()) / len(texts["Korean"]), 1)
    (13, 'The harbour wakes before the town', 2.4)
    """
    parts = (part.split("\n", 1) for part in _read("languages.txt").removeprefix("== ").split("\n== "))
    return {name: text.rstrip("\n") + "\n" for name, text in parts}


def moby_dick() -> str:
    """25 chapters in ASCII, one line a paragraph; read anew at each call (0.2 ms).

    >>> text = moby_dick()
    >>> len(text), len(set(text)), text.split(maxsplit=2)[:2]
    (125486, 74, ['CHAPTER', '8.'])
    """
    return _read("moby_dick.txt")


def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def windows(ids: np.ndarray, batch: int, context: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(inputs, targets), each (batch, context): pieces of `ids` from random places; targets are one further on.

    >>> inputs, targets = windows(np.arange(100), batch=4, context=8, rng=np.random.default_rng(0))
    >>> inputs.shape, (targets == inputs + 1).all()
    ((4, 8), np.True_)
    """
    ids = np.asarray(ids)
    if len(ids) <= context:
        raise ValueError(f"{len(ids)} tokens hold no window of {context} and the token after it")
    starts = rng.integers(0, len(ids) - context, batch)
    places = starts[:, None] + np.arange(context)
    return ids[places], ids[places + 1]
