"""Byte-level byte-pair encoding (BPE): text to whole numbers and back, nothing lost.

Tokens 0 to 255 are the bytes, so that every text, and every file, can be written. Training starts
from them, and again and again makes the pair of neighbours that occurs most often one new token.
Encoding replays the merges in the order in which they were learned: not the longest piece first.
Before that the text is cut into words (a space goes with the word after it), and no merge crosses
a cut; otherwise "of the" would become one token.

Details in which libraries differ. Counted is every pair of neighbours, overlapping ones too ("aaa" has
two). Of equally frequent pairs the one with the older tokens wins, bytes in GPT-2's order (printable
ones first); this is the rule of the `tokenizers` library, and the merges are the same as there.
Simplification: a letter is what Python's `re` calls one, and so are ² and Ⅷ, which GPT-2's pattern
counts as digits. Left out: byte fallback, unigram models, normalising the text first.
Lessons: tokens and embeddings.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

Pair = tuple[int, int]

# Contractions; letters; digits; other signs, each with a space before it; spaces but the last one.
WORD = re.compile(r"'(?:[stmd]|re|ve|ll)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
AGE = {byte: age for age, byte in enumerate(dict.fromkeys([*PRINTABLE, *range(256)]))}  # breaks ties


@dataclass(frozen=True)
class Fertility:
    """How many tokens a text becomes. Words are what white space separates: a whole line in Chinese."""

    tokens: int
    bytes: int
    chars: int
    words: int

    @property
    def per_byte(self) -> float:
        return self.tokens / self.bytes

    @property
    def per_char(self) -> float:
        return self.tokens / self.chars

    @property
    def per_word(self) -> float:
        return self.tokens / self.words


class Tokenizer:
    """Merges in the order in which they were learned, and special tokens after them.

    merges: pairs of token numbers; merge i makes token 256 + i. specials: texts that always become one
    token of their own, numbered after the merges.

    >>> tokenizer = Tokenizer.train("low low low lower lowest", merges=3)
    >>> tokenizer.pieces("lowest low")
    [b'low', b'e', b's', b't', b' low']
    >>> tokenizer.decode(tokenizer.encode("naïve 🙂")), len(tokenizer)
    ('naïve 🙂', 259)
    """

    def __init__(self, merges: Sequence[Pair] = (), specials: Sequence[str] = ()):
        self.merges = [(int(a), int(b)) for a, b in merges]
        self.tokens = [bytes([byte]) for byte in range(256)]
        for a, b in self.merges:
            if max(a, b) >= len(self.tokens) or min(a, b) < 0:
                raise ValueError(f"merge {len(self.tokens) - 256} joins {a} and {b}, but only {len(self.tokens)} tokens exist")
            self.tokens.append(self.tokens[a] + self.tokens[b])
        self.rank = {pair: i for i, pair in reversed(list(enumerate(self.merges)))}
        if len(set(specials)) < len(specials) or "" in specials:
            raise ValueError(f"special tokens have to be different and not empty: {list(specials)}")
        self.specials = {text: len(self.tokens) + i for i, text in enumerate(specials)}
        self.tokens += [text.encode() for text in specials]
        longest_first = sorted(map(re.escape, specials), key=len, reverse=True)
        self._special = re.compile("|".join(longest_first) or r"(?!)")
        self._known: dict[str, list[int]] = {}  # words that were encoded before

    def __len__(self) -> int:
        """Size of the vocabulary."""
        return len(self.tokens)

    @classmethod
    def train(cls, text: str | bytes | Iterable[str | bytes], merges: int, specials: Sequence[str] = ()) -> Tokenizer:
        """Learn up to `merges` merges from one text or several; fewer if no pair is left.

        >>> [a + b for a, b in Tokenizer.train("aab aab ab", merges=2).merge_bytes()]
        [b'ab', b'aab']
        """
        texts = [text] if isinstance(text, (str, bytes)) else text
        cut = cls(specials=specials)
        counts: Counter[bytes] = Counter()
        for one in texts:
            for part, special in cut._parts(_as_text(one)):
                if not special:
                    counts.update(word.encode("utf-8", "surrogateescape") for word in WORD.findall(part))
        return cls(_learn(counts, merges), specials)

    def encode(self, text: str | bytes, specials: bool = True) -> list[int]:
        """Token numbers. specials=False: treat special texts like any other (they may come from a user).

        >>> Tokenizer(specials=["<end>"]).encode("hi<end>")
        [104, 105, 256]
        """
        ids: list[int] = []
        for part, special in self._parts(_as_text(text)) if specials else [(_as_text(text), False)]:
            if special:
                ids.append(self.specials[part])
                continue
            for word in WORD.findall(part):
                known = self._known.get(word)
                if known is None:
                    known = self._merge(word.encode("utf-8", "surrogateescape"))
                    if len(word) < 32:
                        self._known[word] = known
                ids.extend(known)
        return ids

    def _merge(self, word: bytes) -> list[int]:
        """All places of the earliest merge at once, until none is left."""
        ids = list(word)
        never = len(self.merges)
        while len(ids) > 1:
            first = min(zip(ids, ids[1:]), key=lambda pair: self.rank.get(pair, never))
            if first not in self.rank:
                break
            ids = _replace(ids, first, 256 + self.rank[first])
        return ids

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Exactly the bytes that were encoded."""
        return b"".join(self.tokens[i] for i in ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text; bytes that are no UTF-8, such as half a character, become U+FFFD.

        >>> Tokenizer().decode([0xC3])
        '�'
        """
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def pieces(self, text: str | bytes) -> list[bytes]:
        """The text cut into its tokens."""
        return [self.tokens[i] for i in self.encode(text)]

    def merge_bytes(self) -> list[tuple[bytes, bytes]]:
        """The merges as bytes instead of numbers."""
        return [(self.tokens[a], self.tokens[b]) for a, b in self.merges]

    def first(self, merges: int) -> Tokenizer:
        """The tokenizer that stopped after so many merges: training is greedy, so it is a prefix."""
        return Tokenizer(self.merges[:merges], list(self.specials))

    def fertility(self, text: str) -> Fertility:
        """Tokens against bytes, characters and words of a text.

        >>> Tokenizer().fertility("ça va").per_char
        1.2
        """
        return Fertility(len(self.encode(text)), len(text.encode()), len(text), len(text.split()))

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """(part, whether it is a special token), in order."""
        start = 0
        for found in self._special.finditer(text):
            if found.start() > start:
                yield text[start : found.start()], False
            yield found.group(), True
            start = found.end()
        if start < len(text):
            yield text[start:], False


def _as_text(text: str | bytes) -> str:
    """Bytes that are no UTF-8 become lone surrogates, from which they can be told again."""
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text


def _replace(ids: list[int], pair: Pair, token: int) -> list[int]:
    """Every occurrence of the pair, from the left, as one token."""
    out, i, last = [], 0, len(ids) - 1
    a, b = pair
    while i <= last:
        if i < last and ids[i] == a and ids[i + 1] == b:
            out.append(token)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


def _learn(counts: Counter[bytes], merges: int) -> list[Pair]:
    """The most frequent pair, again and again.

    Counts are kept up to date: a merge changes the words that contain its pair, and no others. A heap
    finds the largest; an entry whose count is out of date is put back with the true one.
    """
    words = [(list(word), n) for word, n in counts.items()]
    total: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)  # words in which a pair occurs, or did
    for i, (ids, n) in enumerate(words):
        for pair in zip(ids, ids[1:]):
            total[pair] += n
            places[pair].add(i)

    def entry(pair: Pair):
        return -total[pair], *(AGE.get(token, token) for token in pair), pair

    heap = [entry(pair) for pair in total]
    heapify(heap)
    learned: list[Pair] = []
    while heap and len(learned) < merges:
        count, _, _, pair = heappop(heap)
        if -count != total[pair]:
            if total[pair] > 0:
                heappush(heap, entry(pair))
            continue
        token = 256 + len(learned)
        learned.append(pair)
        changed: Counter[Pair] = Counter()
        for i in places.pop(pair):
            ids, n = words[i]
            new = _replace(ids, pair, token)
            for old in zip(ids, ids[1:]):
                changed[old] -= n
            for fresh in zip(new, new[1:]):
                changed[fresh] += n
                places[fresh].add(i)
            words[i] = new, n
        for other, change in changed.items():
            total[other] += change
            if change > 0:
                heappush(heap, entry(other))
        del total[pair]
    return learned
