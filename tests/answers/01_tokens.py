# Alternatives and mistakes for lesson 2.1; see CONTRIBUTING.md for the form of the headers.

# %% learn-merges | right | one text with a wall between words, counts kept in arrays
def learn_merges(counts, merges):
    names = [bytes([i]) for i in range(256)] + [None]  # 256 is the wall
    ids, weight = [], []
    for word, n in counts.items():
        data = word.encode()
        ids += [*data, 256]
        weight += [n] * (len(data) + 1)
    ids, weight = np.array(ids), np.array(weight)
    learned = []
    while len(learned) < merges and len(ids) > 1:
        left, right = ids[:-1], ids[1:]
        inside = (left != 256) & (right != 256)
        key = left[inside].astype(np.int64) << 32 | right[inside]
        if not len(key):
            break
        found, where = np.unique(key, return_inverse=True)
        total = np.bincount(where, weights=weight[:-1][inside])
        best = [(int(k) >> 32, int(k) & 0xFFFFFFFF) for k in found[total == total.max()]]
        a, b = min(best, key=lambda pair: (names[pair[0]], names[pair[1]]))
        new, keep, i = [], [], 0
        spelled = names[a] + names[b]
        token = names.index(spelled) if spelled in names else len(names)
        while i < len(ids):
            if i + 1 < len(ids) and ids[i] == a and ids[i + 1] == b:
                new.append(token)
                keep.append(i)
                i += 2
            else:
                new.append(ids[i])
                keep.append(i)
                i += 1
        learned.append([names[a], names[b]])
        if names[a] + names[b] not in names:
            names.append(names[a] + names[b])
        ids, weight = np.array(new), weight[keep]
    return learned

# %% learn-merges | right | counts changed only where a word changed
def pairs_of(pieces):
    return list(zip(pieces, pieces[1:]))

def joined(pieces, pair):
    out, i = [], 0
    while i < len(pieces):
        step = 2 if tuple(pieces[i : i + 2]) == pair else 1
        out.append(b"".join(pieces[i : i + step]))
        i += step
    return out

def learn_merges(counts, merges):
    words = [([bytes([b]) for b in word.encode("utf-8")], n) for word, n in counts.items()]
    total = {}
    for pieces, n in words:
        for pair in pairs_of(pieces):
            total[pair] = total.get(pair, 0) + n
    learned = []
    for _ in range(merges):
        alive = [pair for pair in total if total[pair]]
        if not alive:
            break
        alive.sort()
        pair = max(alive, key=lambda p: total[p])  # the first, and so the smallest, of the largest
        learned.append(pair)
        for i, (pieces, n) in enumerate(words):
            if pair in pairs_of(pieces):
                for old in pairs_of(pieces):
                    total[old] -= n
                pieces = joined(pieces, pair)
                for new in pairs_of(pieces):
                    total[new] = total.get(new, 0) + n
                words[i] = pieces, n
    return tuple(learned)

# %% learn-merges | wrong | pairs-cross-words
def learn_merges(counts, merges):
    pieces = [bytes([b]) for word, n in counts.items() for b in word.encode() * n]
    learned = []
    for _ in range(merges):
        total = Counter(zip(pieces, pieces[1:]))
        if not total:
            break
        a, b = min(total, key=lambda pair: (-total[pair], pair))
        learned.append((a, b))
        new, i = [], 0
        while i < len(pieces):
            if pieces[i : i + 2] == [a, b]:
                new.append(a + b)
                i += 2
            else:
                new.append(pieces[i])
                i += 1
        pieces = new
    return learned

# %% learn-merges | wrong | pairs-ignore-word-counts
def merged(pieces, a, b):
    new, i = [], 0
    while i < len(pieces):
        if pieces[i : i + 2] == [a, b]:
            new.append(a + b)
            i += 2
        else:
            new.append(pieces[i])
            i += 1
    return new

def learn_merges(counts, merges):
    words = [[bytes([b]) for b in word.encode()] for word in counts]
    learned = []
    for _ in range(merges):
        total = Counter(pair for pieces in words for pair in zip(pieces, pieces[1:]))
        if not total:
            break
        learned.append(min(total, key=lambda pair: (-total[pair], pair)))
        words = [merged(pieces, *learned[-1]) for pieces in words]
    return learned

# %% learn-merges | wrong | pairs-of-characters
def merged(pieces, a, b):
    new, i = [], 0
    while i < len(pieces):
        if pieces[i : i + 2] == [a, b]:
            new.append(a + b)
            i += 2
        else:
            new.append(pieces[i])
            i += 1
    return new

def learn_merges(counts, merges):
    words = [([c.encode() for c in word], n) for word, n in counts.items()]
    learned = []
    for _ in range(merges):
        total = Counter()
        for pieces, n in words:
            for pair in zip(pieces, pieces[1:]):
                total[pair] += n
        if not total:
            break
        learned.append(min(total, key=lambda pair: (-total[pair], pair)))
        words = [(merged(pieces, *learned[-1]), n) for pieces, n in words]
    return learned

# %% learn-merges | wrong | pairs-skip-overlaps | like pairs-of-characters
#-     words = [([c.encode() for c in word], n) for word, n in counts.items()]
#+     words = [([bytes([b]) for b in word.encode()], n) for word, n in counts.items()]
#-             for pair in zip(pieces, pieces[1:]):
#-                 total[pair] += n
#+             for a, b in set(zip(pieces, pieces[1:])):
#+                 total[a, b] += n * merged(pieces, a, b).count(a + b)

# %% learn-merges | wrong | pairs-tie-first-met | like pairs-of-characters
#-     words = [([c.encode() for c in word], n) for word, n in counts.items()]
#+     words = [([bytes([b]) for b in word.encode()], n) for word, n in counts.items()]
#-         learned.append(min(total, key=lambda pair: (-total[pair], pair)))
#+         learned.append(max(total, key=total.get))

# %% learn-merges | wrong | pairs-tie-largest | like pairs-of-characters
#-     words = [([c.encode() for c in word], n) for word, n in counts.items()]
#+     words = [([bytes([b]) for b in word.encode()], n) for word, n in counts.items()]
#-         learned.append(min(total, key=lambda pair: (-total[pair], pair)))
#+         learned.append(max(total, key=lambda pair: (total[pair], pair)))

# %% learn-merges | wrong | pairs-counted-once-only
def learn_merges(counts, merges):
    total = Counter()
    for word, n in counts.items():
        pieces = [bytes([b]) for b in word.encode()]
        for pair in zip(pieces, pieces[1:]):
            total[pair] += n
    return sorted(total, key=lambda pair: (-total[pair], pair))[:merges]

# %% merge-order | right | the merges one after the other, over byte strings
def encode(merges, data):
    pieces = [data[i : i + 1] for i in range(len(data))]
    for a, b in merges:
        i = 0
        while i < len(pieces) - 1:
            if pieces[i] == a and pieces[i + 1] == b:
                pieces[i : i + 2] = [a + b]
            i += 1
    number = {bytes([i]): np.int64(i) for i in range(256)}
    number |= {a + b: np.int64(256 + i) for i, (a, b) in enumerate(merges)}
    return np.array([number[piece] for piece in pieces], np.int64).tolist()

def decode(merges, ids):
    out = b""
    for i in ids:
        out += bytes([i]) if i < 256 else merges[i - 256][0] + merges[i - 256][1]
    return out

# %% merge-order | right | recursion, one merge at a time
def encode(merges, data):
    def pieces_of(pieces, rest):
        if not rest or len(pieces) < 2:
            return pieces
        (a, b), *later = rest
        out = []
        while pieces:
            two = pieces[:2] == [a, b]
            out.append(a + b if two else pieces[0])
            pieces = pieces[2 if two else 1 :]
        return pieces_of(out, later)

    names = [bytes([i]) for i in range(256)] + [a + b for a, b in merges]
    return [names.index(piece) for piece in pieces_of([bytes([b]) for b in data], list(merges))]

def decode(merges, ids):
    def spell(i):
        return bytes([i]) if i < 256 else b"".join(merges[i - 256])

    return b"".join(map(spell, ids))

# %% merge-order | wrong | encode-longest-piece
def encode(merges, data):
    number = {bytes([i]): i for i in range(256)} | {a + b: 256 + i for i, (a, b) in enumerate(merges)}
    out, i = [], 0
    while i < len(data):
        j = max(j for j in range(i + 1, len(data) + 1) if data[i:j] in number)
        out.append(number[data[i:j]])
        i = j
    return out

def decode(merges, ids):
    raise NotImplementedError

# %% merge-order | wrong | encode-from-the-left
def encode(merges, data):
    number = {bytes([i]): i for i in range(256)} | {a + b: 256 + i for i, (a, b) in enumerate(merges)}
    known = set(merges)
    pieces = [bytes([b]) for b in data]
    while True:
        at = next((i for i, pair in enumerate(zip(pieces, pieces[1:])) if pair in known), None)
        if at is None:
            return [number[piece] for piece in pieces]
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]

def decode(merges, ids):
    raise NotImplementedError

# %% merge-order | wrong | encode-one-pass
def encode(merges, data):
    rank = {pair: i for i, pair in enumerate(merges)}
    out, i = [], 0
    while i < len(data):
        pair = data[i : i + 1], data[i + 1 : i + 2]
        if pair in rank:
            out.append(256 + rank[pair])
            i += 2
        else:
            out.append(data[i])
            i += 1
    return out

def decode(merges, ids):
    raise NotImplementedError

# %% merge-order | wrong | encode-first-place-only
def encode(merges, data):
    number = {bytes([i]): i for i in range(256)} | {a + b: 256 + i for i, (a, b) in enumerate(merges)}
    pieces = [bytes([b]) for b in data]
    for a, b in merges:
        for i in range(len(pieces) - 1):
            if (pieces[i], pieces[i + 1]) == (a, b):
                pieces[i : i + 2] = [a + b]
                break
    return [number[piece] for piece in pieces]

def decode(merges, ids):
    raise NotImplementedError

# %% merge-order | wrong | encode-merge-numbers
def encode(merges, data):
    pieces = [bytes([b]) for b in data]
    for a, b in merges:
        i = 0
        while i < len(pieces) - 1:
            if pieces[i] == a and pieces[i + 1] == b:
                pieces[i : i + 2] = [a + b]
            i += 1
    number = {a + b: i for i, (a, b) in enumerate(merges)}
    return [piece[0] if len(piece) == 1 else number[piece] for piece in pieces]

def decode(merges, ids):
    raise NotImplementedError

# %% merge-order | wrong | decode-through-text
def encode(merges, data):
    raise NotImplementedError

def decode(merges, ids):
    names = [bytes([i]) for i in range(256)] + [a + b for a, b in merges]
    return "".join(names[i].decode("utf-8", "replace") for i in ids).encode()

# %% merge-order | wrong | decode-needs-valid-text | like decode-through-text
#-     return "".join(names[i].decode("utf-8", "replace") for i in ids).encode()
#+     return b"".join(names[i] for i in ids).decode().encode()

# %% merge-order | wrong | decode-merges-unseen
def encode(merges, data):
    raise NotImplementedError

def decode(merges, ids):
    out = []
    for i in ids:
        out += [bytes([i])] if i < 256 else [merges[i - 256][0][:1], merges[i - 256][1][:1]]
    return b"".join(out)

# %% table-gradient | right | a product with one-hot rows
def lookup_gradient(ids, grad, vocab):
    hot = np.eye(vocab)[np.ravel(ids)]  # (tokens, vocab)
    return hot.T @ np.reshape(grad, (-1, np.shape(grad)[-1]))

def tied_gradient(ids, grad, hidden, grad_logits):
    vocab = grad_logits.shape[-1]
    return lookup_gradient(ids, grad, vocab) + np.tensordot(grad_logits, hidden, (range(hidden.ndim - 1), range(hidden.ndim - 1)))

# %% table-gradient | right | loops and lists
def lookup_gradient(ids, grad, vocab):
    out = [[0.0] * grad.shape[-1] for _ in range(vocab)]
    for i, row in zip(ids.reshape(-1).tolist(), grad.reshape(-1, grad.shape[-1]).tolist()):
        out[i] = [a + b for a, b in zip(out[i], row)]
    return out

def tied_gradient(ids, grad, hidden, grad_logits):
    d, vocab = hidden.shape[-1], grad_logits.shape[-1]
    total = np.array(lookup_gradient(ids, grad, vocab))
    for h, g in zip(hidden.reshape(-1, d), grad_logits.reshape(-1, vocab)):
        total += np.outer(g, h)
    return total

# %% table-gradient | wrong | lookup-overwrites
def lookup_gradient(ids, grad, vocab):
    out = np.zeros((vocab, grad.shape[-1]))
    out[ids] += grad
    return out

def tied_gradient(ids, grad, hidden, grad_logits):
    raise NotImplementedError

# %% table-gradient | wrong | lookup-averages
def lookup_gradient(ids, grad, vocab):
    out = np.zeros((vocab, grad.shape[-1]))
    np.add.at(out, ids, grad)
    return out / np.maximum(np.bincount(np.ravel(ids), minlength=vocab), 1)[:, None]

def tied_gradient(ids, grad, hidden, grad_logits):
    raise NotImplementedError

# %% table-gradient | wrong | lookup-transposed | like lookup-averages
#-     return out / np.maximum(np.bincount(np.ravel(ids), minlength=vocab), 1)[:, None]
#+     return out.T

# %% table-gradient | wrong | lookup-rows-of-seen-ids
def lookup_gradient(ids, grad, vocab):
    out = np.zeros((ids.max() + 1, grad.shape[-1]))
    np.add.at(out, ids, grad)
    return out

def tied_gradient(ids, grad, hidden, grad_logits):
    raise NotImplementedError

# %% table-gradient | wrong | tied-without-output
def lookup_gradient(ids, grad, vocab):
    out = np.zeros((vocab, grad.shape[-1]))
    np.add.at(out, ids, grad)
    return out

def tied_gradient(ids, grad, hidden, grad_logits):
    return lookup_gradient(ids, grad, grad_logits.shape[-1])

# %% table-gradient | wrong | tied-without-input | like tied-without-output
#-     return lookup_gradient(ids, grad, grad_logits.shape[-1])
#+     return np.tensordot(grad_logits, hidden, (range(hidden.ndim - 1), range(hidden.ndim - 1)))

# %% table-gradient | wrong | tied-takes-the-mean | like tied-without-output
#-     return lookup_gradient(ids, grad, grad_logits.shape[-1])
#+     output = np.tensordot(grad_logits, hidden, (range(hidden.ndim - 1), range(hidden.ndim - 1)))
#+     return (lookup_gradient(ids, grad, grad_logits.shape[-1]) + output) / 2

# %% vocabulary-share | right | what is left over, NumPy scalars
def vocabulary_share(model):
    tables = np.float64(model["vocab"]) * model["d_model"] * (2 - bool(model["tied"]))
    return 1 - (model["parameters"] - tables) / np.float64(model["parameters"])

# %% vocabulary-share | wrong | share-counts-tied-twice
def vocabulary_share(model):
    return 2 * model["vocab"] * model["d_model"] / model["parameters"]

# %% vocabulary-share | wrong | share-forgets-the-output
def vocabulary_share(model):
    return model["vocab"] * model["d_model"] / model["parameters"]

# %% vocabulary-share | wrong | share-counts-positions
def vocabulary_share(model):
    rows = model["vocab"] * (1 if model["tied"] else 2)
    rows += model["context"] if model["positions"] == "learned" else 0
    return rows * model["d_model"] / model["parameters"]

# %% vocabulary-share | wrong | share-of-the-rest
def vocabulary_share(model):
    tables = model["vocab"] * model["d_model"] * (1 if model["tied"] else 2)
    return tables / (model["parameters"] - tables)
