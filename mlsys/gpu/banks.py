"""Bank conflicts: shared memory has 32 banks, four bytes wide; a bank serves one word at a time.

Word w lies in bank w mod 32. A request takes as many passes as its busiest bank has *different* words to serve; lanes
that want the same word share it. With stride s between lanes that is gcd(s, 32), so odd strides cost nothing,
and one word of padding a row turns the worst case, a column of a 32-wide tile, into the best.
Simplified: requests of 8 and 16 bytes a lane are served in two halves and four quarters of the warp, each on
its own. Hardware may join parts that want the same words, so for these the count can be too high, never too low.
Lessons: memory hierarchy and roofline, coalescing and occupancy, tiling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .coalescing import ROWS, _rows

BANKS, WORD = 32, 4


@dataclass(frozen=True)
class SharedTraffic:
    """Passes that requests to shared memory took. `least` is what they would take without conflicts."""

    requests: int
    passes: int
    least: int
    bytes_asked: int

    @property
    def conflicts(self) -> int:
        """Passes beyond the least."""
        return self.passes - self.least


def conflicts(addresses: np.ndarray, itemsize: int = 4, active: np.ndarray | None = None) -> SharedTraffic:
    """Passes of many requests. addresses (..., warps, lanes) in bytes from the start of shared memory.

    >>> lanes = np.arange(32).reshape(1, 32)
    >>> column, padded = lanes * 32 * 4, lanes * 33 * 4
    >>> conflicts(column).passes, conflicts(padded).passes, conflicts(lanes * 0).passes
    (32, 1, 1)
    """
    passes = passes_per_request(addresses, itemsize, active)
    lanes = np.size(addresses) if active is None else int(np.count_nonzero(np.broadcast_to(active, np.shape(addresses))))
    requests = int(np.count_nonzero(passes))
    least = requests
    if itemsize > WORD:
        ways = itemsize // WORD
        parts = _parts(np.ones(np.shape(addresses), bool) if active is None else np.broadcast_to(active, np.shape(addresses)), ways)
        least = int(np.count_nonzero(parts.any(-1)))
    return SharedTraffic(requests, int(passes.sum()), least, lanes * itemsize)


def passes_per_request(addresses: np.ndarray, itemsize: int = 4, active: np.ndarray | None = None) -> np.ndarray:
    """Passes of each request: (..., warps), uint8. 0 where no lane is active.

    Raises ValueError for addresses that are not aligned to itemsize, which the hardware refuses too, and for itemsize
    other than 1, 2, 4, 8 and 16.

    >>> lanes = np.arange(32).reshape(1, 32)
    >>> [passes_per_request(lanes * 4 * stride).item() for stride in (1, 2, 3, 4, 32)]
    [1, 2, 1, 4, 32]
    >>> passes_per_request(lanes * 8, 8).item(), passes_per_request(lanes * 16, 16).item()
    (2, 4)
    """
    addresses, active = _rows(addresses, active)
    if itemsize not in (1, 2, 4, 8, 16):
        raise ValueError(f"itemsize={itemsize}: a lane reads 1, 2, 4, 8 or 16 bytes at once")
    if itemsize > 1 and addresses.size and int(np.bitwise_or.reduce(addresses, None)) & (itemsize - 1):
        raise ValueError(f"an address is not a multiple of itemsize={itemsize}")
    shape, lanes = addresses.shape[:-1], addresses.shape[-1]
    if active is None and itemsize > WORD and lanes < BANKS:
        active = np.ones(addresses.shape, bool)  # the lanes that are missing are not to count
    rows = addresses.reshape(-1, lanes)
    mask = None if active is None else active.reshape(-1, lanes)
    passes = np.empty(len(rows), np.uint8)
    for start in range(0, len(rows), ROWS):
        part = slice(start, start + ROWS)
        words, here = rows[part] >> 2, None if mask is None else mask[part]
        if itemsize <= WORD:
            passes[part] = _passes(words, here)
            continue
        ways = itemsize // WORD
        each = (_parts(words, ways)[..., None] + np.arange(ways, dtype=words.dtype)).reshape(len(words) * ways, -1)
        wanted = None if here is None else np.repeat(_parts(here, ways), ways, axis=-1).reshape(len(words) * ways, -1)
        passes[part] = _passes(each, wanted).reshape(len(words), ways).sum(1)
    return passes.reshape(shape)


def _parts(rows: np.ndarray, ways: int) -> np.ndarray:
    """Rows cut into 2 halves or 4 quarters of a full warp: (..., ways, 32 / ways); missing lanes repeat the last."""
    missing = 32 - rows.shape[-1]
    if missing:
        filler = np.zeros_like(rows[..., :1]) if rows.dtype == bool else rows[..., -1:]
        rows = np.concatenate([rows, np.repeat(filler, missing, -1)], -1)
    return rows.reshape(*rows.shape[:-1], ways, 32 // ways)


def _passes(words: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Most different words in one bank, for each row."""
    alive = None
    if mask is not None and not mask.all():
        alive = mask.any(1)
        first = words[np.arange(len(words)), mask.argmax(1)]
        words = np.where(mask, words, first[:, None])
    steps = words - words[:, :1]
    if (steps == steps[0]).all():  # moving a whole request by some words turns the banks round and changes nothing
        found = np.full(len(words), _busiest(steps[:1] - steps[:1].min())[0])
    else:
        found = _busiest(words - min(0, int(words.min())))
    return found if alive is None else found * alive


def _busiest(words: np.ndarray) -> np.ndarray:
    """The same for words >= 0, by sorting: words of one bank come to lie side by side, equal ones next to each other."""
    top = int(words.max())
    if top >= 1 << 32:
        raise ValueError(f"word {top} of shared memory: an SM has less than 256 KiB of it")
    words = words.astype(np.uint32)
    key = np.sort((words << 27) | (words >> 5), 1)
    bank = key >> 27
    new = key[:, 1:] != key[:, :-1]
    most = np.ones(len(words), np.int64)
    if not new.all():  # repeated words: each is counted once
        place = np.arange(len(words))[:, None] * BANKS + bank
        first = np.ones(key.shape, bool)
        first[:, 1:] = new
        return np.bincount(place[first], minlength=len(words) * BANKS).reshape(-1, BANKS).max(1)
    for apart in range(1, words.shape[1]):  # all words differ: a bank has more than `apart` if one that far on is its own
        more = (bank[:, apart:] == bank[:, :-apart]).any(1)
        if not more.any():
            break
        most[more] = apart + 1
    return most
