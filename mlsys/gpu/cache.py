"""Caches: a set-associative cache that drops the least recently used line, and distances that give every size at once.

A line may lie in one set only; the set keeps as many lines as the cache has ways. With LRU, an access hits exactly if
fewer other lines of its set were used since its line's last use than there are ways. That number is the stack distance.
Left out: hashed sets, replacement that only resembles LRU, sectors within a line, prefetching, and the order in
which a real chip mixes the requests of its warps. For a regular trace with a power of two as its stride the misses
counted here are too many (hashing spreads such lines); for a mixed trace they are usually too few.
Lessons: memory hierarchy and roofline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LANES = 2048  # pieces of the trace that advance side by side
BY_DISTANCE = 32  # ways from which counting distances is faster than keeping tags


@dataclass(frozen=True)
class Cache:
    """sets x ways lines of line_bytes. One set: fully associative. One way: direct mapped.

    >>> Cache(sets=64, ways=4).size_bytes
    32768
    """

    sets: int
    ways: int
    line_bytes: int = 128

    def __post_init__(self):
        for name in ("sets", "ways", "line_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: a cache has at least one")

    @property
    def size_bytes(self) -> int:
        """Bytes of all lines."""
        return self.sets * self.ways * self.line_bytes


@dataclass(frozen=True)
class Misses:
    """Why accesses missed. compulsory: the line's first use. capacity: would miss in a fully associative cache of the
    same size too. conflict: the rest. That can be below 0 in total, since LRU over all lines is not the best choice."""

    accesses: int
    compulsory: int
    capacity: int
    conflict: int

    @property
    def total(self) -> int:
        """All misses."""
        return self.compulsory + self.capacity + self.conflict


def hits(cache: Cache, addresses: np.ndarray) -> np.ndarray:
    """Which accesses hit, starting with an empty cache; addresses in bytes, in order. Exact.

    >>> hits(Cache(sets=1, ways=2), np.array([0, 128, 4, 256, 128])).tolist()
    [False, False, True, False, False]
    """
    line = _lines(addresses, cache.line_bytes)
    hit = np.ones(line.size, bool)
    if not line.size:
        return hit
    place, order = _by_set(line, cache.sets)
    grouped = line[order]
    new = np.ones(line.size, bool)
    new[1:] = grouped[1:] != grouped[:-1]  # a repeat of the set's newest line hits and changes nothing
    order, grouped = order[new], grouped[new]
    if cache.ways == 1:
        hit[order] = False
    elif cache.ways >= BY_DISTANCE:
        distance = _distances(grouped)
        hit[order] = (distance >= 0) & (distance < cache.ways)
    else:
        hit[order] = _lru(grouped, np.bincount(place[order], minlength=cache.sets), cache.ways)
    return hit


def misses(cache: Cache, addresses: np.ndarray) -> Misses:
    """Misses of a trace by their cause.

    Two lines that share the only way of a set, used in turn: the first two misses are compulsory, the rest conflict.

    >>> misses(Cache(sets=4, ways=1), np.tile([0, 512], 10))
    Misses(accesses=20, compulsory=2, capacity=0, conflict=18)
    """
    distance = stack_distances(addresses, cache.line_bytes)
    first = int(np.count_nonzero(distance < 0))
    full = int(np.count_nonzero(distance >= cache.sets * cache.ways))
    return Misses(distance.size, first, full, int(np.count_nonzero(~hits(cache, addresses))) - first - full)


def stack_distances(addresses: np.ndarray, line_bytes: int = 128) -> np.ndarray:
    """Different lines used since the last use of each access's line; -1 at a line's first use.

    >>> stack_distances(np.array([0, 128, 256, 0, 0, 128])).tolist()
    [-1, -1, -1, 2, 0, 2]
    """
    return _distances(_lines(addresses, line_bytes))


def miss_curve(distances: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Misses in a fully associative LRU cache of each number of lines, all from one pass of `stack_distances`.

    >>> miss_curve(stack_distances(np.tile(np.arange(4) * 128, 5)), np.array([1, 3, 4, 8])).tolist()
    [20, 20, 4, 4]
    """
    distances = np.asarray(distances)
    known = np.sort(distances[distances >= 0])
    return distances.size - np.searchsorted(known, np.asarray(lines), side="left")


def _lines(addresses, line_bytes: int) -> np.ndarray:
    addresses = np.asarray(addresses).ravel()
    if addresses.size and addresses.dtype.kind not in "iu":
        raise ValueError(f"addresses are whole numbers of bytes, and these are {addresses.dtype}")
    if addresses.size and addresses.min() < 0:
        raise ValueError(f"address {addresses.min()} is below 0")
    if line_bytes & (line_bytes - 1):
        line = addresses // line_bytes
    else:
        line = addresses >> (line_bytes.bit_length() - 1)
    return line.astype(np.int32 if not line.size or line.max() < 2**31 else np.int64, copy=False)


def _by_set(line: np.ndarray, sets: int) -> tuple[np.ndarray, np.ndarray]:
    """Set of each access, and the order that groups accesses by set; 16-bit keys are sorted by radix, in linear time."""
    place = line & (sets - 1) if sets & (sets - 1) == 0 else line % sets
    place = place.astype(np.uint16 if sets <= 1 << 16 else np.int64)
    return place, np.argsort(place, kind="stable")


def _lru(line: np.ndarray, count: np.ndarray, ways: int) -> np.ndarray:
    """Hits of accesses that lie grouped by set, `count` in each, no two equal ones in a row within a set.

    All sets advance together, and each is cut into pieces that advance together too. A piece starts with an empty set,
    so only its first `ways` misses are in doubt. What the set really held when a piece began is put together from what
    the pieces before it left behind; then the misses in doubt are tried again.
    """
    count = count[count > 0]
    start = np.cumsum(count) - count
    length = max(16 * ways, -(-line.size // LANES))
    pieces = -(-np.maximum(count - length // 2, 1) // length)
    number = np.arange(pieces.sum()) - (np.cumsum(pieces) - pieces).repeat(pieces)
    begin = start.repeat(pieces) + number * length
    hit = np.empty(line.size, bool)
    left = _advance(line, begin, np.diff(begin, append=line.size), np.full((ways, begin.size), -1, line.dtype), hit)
    missed = np.flatnonzero(~hit)
    each = np.searchsorted(missed, begin)
    doubtful = np.minimum(np.diff(each, append=missed.size), ways)
    nth = np.arange(doubtful.sum()) - (np.cumsum(doubtful) - doubtful).repeat(doubtful)
    where = missed[each.repeat(doubtful) + nth]
    again = np.empty(where.size, bool)
    _advance(line[where], np.cumsum(doubtful) - doubtful, doubtful, _found_on_entry(left, number), again)
    hit[where] = again
    return hit


def _found_on_entry(left: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Lines in the set when each piece begins; left: what it leaves if the set was empty; number: its place in its set.

    Two neighbours make one longer piece that leaves what the later one left, then what the earlier one left. Doubling
    the stretch each time reaches every beginning in a few rounds.
    """
    stretch = 1
    while stretch <= number.max():
        short = np.flatnonzero((number >= stretch) & (left[-1] < 0))
        if not short.size:
            break
        joined = left.copy()
        joined[:, short] = _joined(left[:, short], left[:, short - stretch])
        left = joined
        stretch *= 2
    entry = np.full_like(left, -1)
    later = np.flatnonzero(number > 0)
    entry[:, later] = left[:, later - 1]
    return entry


def _joined(newer: np.ndarray, older: np.ndarray) -> np.ndarray:
    """Columns of lines, most recent first: those of newer, then those of older that are not among them, as many as fit."""
    ways = len(newer)
    joined, filled = newer.copy(), (newer >= 0).sum(0)
    for row in older:
        added = np.flatnonzero((row >= 0) & (filled < ways) & ~(newer == row).any(0))
        joined[filled[added], added] = row[added]
        filled[added] += 1
    return joined


def _advance(line: np.ndarray, begin: np.ndarray, lengths: np.ndarray, tags: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """Run pieces of a trace, each through its column of tags (most recent first). Fills hit, returns the tags after."""
    longest_first = np.argsort(-lengths, kind="stable")
    begin, lengths, tags = begin[longest_first], lengths[longest_first], tags[:, longest_first]
    running = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")  # how many pieces are that long
    for step, n in enumerate(running.tolist()):
        here = begin[:n] + step
        carry = x = line[here]
        found = np.zeros(n, bool)
        for row in tags[:, :n]:  # push x in at the top, and the others down, until x meets itself
            old = row.copy()
            np.copyto(row, carry, where=~found)
            found |= old == x
            carry = old
        hit[here] = found
    after = np.empty_like(tags)
    after[:, longest_first] = tags
    return after


def _distances(line: np.ndarray) -> np.ndarray:
    """Stack distances of lines.

    Between two uses of a line lie t - previous(t) - 1 accesses. Of these, the ones that are used again before t are
    counted twice or more; each such repeat j has previous(j) > previous(t). So the repeats are inversions of `previous`.
    """
    n = line.size
    order = np.argsort(line, kind="stable")
    previous = np.full(n, -1, np.int64)
    again = np.flatnonzero(line[order][1:] == line[order][:-1])
    previous[order[again + 1]] = order[again]
    distance = np.arange(n) - previous - 1 - _larger_before(previous)
    distance[previous < 0] = -1
    return distance


def _larger_before(values: np.ndarray, block: int = 64) -> np.ndarray:
    """For each place, how many earlier values are larger: blocks by all pairs, then merged two by two."""
    n = values.size
    if n < 2:
        return np.zeros(n, np.int64)
    size = max(block, 1 << (n - 1).bit_length())
    rank = np.arange(size)
    rank[np.argsort(values, kind="stable")] = np.arange(n)  # equal values rank by place, so they never count
    count = np.empty(size, np.int64)
    rows = rank.reshape(-1, block)
    earlier = np.tri(block, block, -1, dtype=bool)
    for start in range(0, len(rows), 512):
        part = rows[start : start + 512]
        count[start * block : (start + len(part)) * block] = ((part[:, None] > part[..., None]) & earlier).sum(2).ravel()
    order = (np.argsort(rows, 1) + np.arange(len(rows))[:, None] * block).ravel()
    half = block
    while half < size:
        pairs = order.reshape(-1, 2 * half)
        merged = np.argsort(rank[pairs], 1, kind="stable")
        right = merged >= half
        left_seen = np.cumsum(~right, 1)
        order = np.take_along_axis(pairs, merged, 1)
        count[order[right]] += (half - left_seen)[right]
        order = order.ravel()
        half *= 2
    return count[:n]
