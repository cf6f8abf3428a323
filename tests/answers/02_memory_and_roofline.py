# Alternatives and mistakes for lesson 3.2; see CONTRIBUTING.md for the form of the headers.

# %% causes | right | stack distances, counted from the trace, no cache at all
def why_missed(addresses, sets, ways, line_bytes):
    lines = [int(a) // line_bytes for a in addresses]
    words = []
    for now, line in enumerate(lines):
        uses = [then for then in range(now) if lines[then] == line]
        if not uses:
            words.append("compulsory")
            continue
        between = set(lines[uses[-1] + 1 : now])
        rivals = [other for other in between if other % sets == line % sets]
        words.append("hit" if len(rivals) < ways else "conflict" if len(between) < sets * ways else "capacity")
    return words

# %% causes | right | ordered dictionaries, an array of NumPy text
def why_missed(addresses, sets, ways, line_bytes):
    from collections import OrderedDict

    def touch(cache, line, room):
        found = line in cache
        cache[line] = True
        cache.move_to_end(line)
        if len(cache) > room:
            cache.popitem(last=False)
        return found

    seen, full, parts, words = set(), OrderedDict(), [OrderedDict() for _ in range(sets)], []
    for line in np.asarray(addresses) // line_bytes:
        line = int(line)
        hit, in_full = touch(parts[line % sets], line, ways), touch(full, line, sets * ways)
        words.append("hit" if hit else "compulsory" if line not in seen else "conflict" if in_full else "capacity")
        seen.add(line)
    return np.array(words)

# %% causes | right | times of last use, a tuple
def why_missed(addresses, sets, ways, line_bytes):
    last, held, full, words = {}, {}, {}, []
    for now, address in enumerate(addresses):
        line = address // line_bytes
        place = held.setdefault(line % sets, {})
        words.append("hit" if line in place else "compulsory" if line not in last else "conflict" if line in full else "capacity")
        last[line] = now
        for cache, room in ((place, ways), (full, sets * ways)):
            if line not in cache and len(cache) == room:
                del cache[min(cache, key=cache.get)]
            cache[line] = now
    return tuple(words)

# %% causes | wrong | set-from-the-byte-address
def why_missed(addresses, sets, ways, line_bytes):
    stacks, recent, words = [[] for _ in range(sets)], [], []
    for address in addresses:
        line = int(address) // line_bytes
        mine = stacks[int(address) % sets]
        if line in mine:
            words.append("hit")
        elif line not in recent:
            words.append("compulsory")
        else:
            words.append("conflict" if recent.index(line) < sets * ways else "capacity")
        for stack in (mine, recent):
            if line in stack:
                stack.remove(line)
            stack.insert(0, line)
        del mine[ways:]
    return words

# %% causes | wrong | first-in-first-out
def why_missed(addresses, sets, ways, line_bytes):
    queues, recent, words = [[] for _ in range(sets)], [], []
    for address in addresses:
        line = int(address) // line_bytes
        mine = queues[line % sets]
        if line in mine:
            words.append("hit")
        elif line not in recent:
            words.append("compulsory")
        else:
            words.append("conflict" if recent.index(line) < sets * ways else "capacity")
        if line not in mine:
            mine.append(line)
            if len(mine) > ways:
                mine.pop(0)
        if line in recent:
            recent.remove(line)
        recent.insert(0, line)
    return words

# %% causes | wrong | one-big-set
def why_missed(addresses, sets, ways, line_bytes):
    recent, words = [], []
    for address in addresses:
        line = int(address) // line_bytes
        if line not in recent:
            words.append("compulsory")
        else:
            words.append("hit" if recent.index(line) < sets * ways else "capacity")
            recent.remove(line)
        recent.insert(0, line)
    return words

# %% causes | wrong | repeats-counted-as-lines | like stack distances, counted from the trace, no cache at all
#-         between = set(lines[uses[-1] + 1 : now])
#+         between = lines[uses[-1] + 1 : now]

# %% causes | wrong | one-line-too-many | like stack distances, counted from the trace, no cache at all
#-         words.append("hit" if len(rivals) < ways else "conflict" if len(between) < sets * ways else "capacity")
#+         words.append("hit" if len(rivals) <= ways else "conflict" if len(between) <= sets * ways else "capacity")

# %% causes | wrong | conflict-called-capacity
def why_missed(addresses, sets, ways, line_bytes):
    stacks, seen, words = [[] for _ in range(sets)], set(), []
    for address in addresses:
        line = int(address) // line_bytes
        mine = stacks[line % sets]
        words.append("hit" if line in mine else "capacity" if line in seen else "compulsory")
        seen.add(line)
        if line in mine:
            mine.remove(line)
        mine.insert(0, line)
        del mine[ways:]
    return words

# %% causes | wrong | every-return-called-conflict | like conflict-called-capacity
#-         words.append("hit" if line in mine else "capacity" if line in seen else "compulsory")
#+         words.append("hit" if line in mine else "conflict" if line in seen else "compulsory")

# %% causes | wrong | every-miss-called-compulsory
def why_missed(addresses, sets, ways, line_bytes):
    stacks, words = [[] for _ in range(sets)], []
    for address in addresses:
        line = int(address) // line_bytes
        mine = stacks[line % sets]
        words.append("hit" if line in mine else "compulsory")
        if line in mine:
            mine.remove(line)
        mine.insert(0, line)
        del mine[ways:]
    return words

# %% causes | wrong | full-cache-sees-the-misses-only
def why_missed(addresses, sets, ways, line_bytes):
    stacks, recent, words = [[] for _ in range(sets)], [], []
    for address in addresses:
        line = int(address) // line_bytes
        mine = stacks[line % sets]
        if line in mine:
            words.append("hit")
            mine.remove(line)
        else:
            known = line in recent
            words.append("compulsory" if not known else "conflict" if recent.index(line) < sets * ways else "capacity")
            if known:
                recent.remove(line)
            recent.insert(0, line)
        mine.insert(0, line)
        del mine[ways:]
    return words

# %% banks | right | NumPy, padding from the residues of the row length
def bank_load(addresses):
    words = np.unique(np.asarray(addresses) // 4)
    return np.bincount(words % 32, minlength=32)


def least_padding(row_words, rows, columns):
    good = [s for s in range(32) if len({(r * s + c) % 32 for r in range(rows) for c in range(columns)}) == 32]
    return np.int64(min((s - row_words) % 32 for s in good))

# %% banks | right | odd multiples of the number of columns
def bank_load(addresses):
    served = [set() for _ in range(32)]
    for address in addresses:
        served[(address >> 2) & 31].add(address)
    return tuple(float(len(bank)) for bank in served)


def least_padding(row_words, rows, columns):
    padding = 0
    while rows > 1 and ((row_words + padding) % columns or (row_words + padding) // columns % 2 == 0):
        padding += 1
    return padding

# %% banks | wrong | bank-is-byte-modulo-32
def bank_load(addresses):
    return [len({a for a in addresses if a % 32 == bank}) for bank in range(32)]


def least_padding(row_words, rows, columns):
    for padding in range(256):
        length = row_words + padding
        if max(bank_load([4 * (r * length + c) for r in range(rows) for c in range(columns)])) == 4:
            return padding

# %% banks | wrong | broadcast-counted-as-conflict
def bank_load(addresses):
    load = [0] * 32
    for address in addresses:
        load[address // 4 % 32] += 1
    return load


def least_padding(row_words, rows, columns):
    return 0

# %% banks | wrong | used-banks-only
def bank_load(addresses):
    used = {a // 4 % 32 for a in addresses}
    return [int(bank in used) for bank in range(32)]


def least_padding(row_words, rows, columns):
    return 0

# %% banks | wrong | passes-of-the-busiest-bank-alone
def bank_load(addresses):
    words = {a // 4 for a in addresses}
    return max(sum(w % 32 == bank for w in words) for bank in range(32))


def least_padding(row_words, rows, columns):
    return 0

# %% banks | wrong | neighbours-share-a-bank | like passes-of-the-busiest-bank-alone
#-     return max(sum(w % 32 == bank for w in words) for bank in range(32))
#+     return [sum(w // 32 % 32 == bank for w in words) for bank in range(32)]

# %% banks | wrong | always-one-word-of-padding
def bank_load(addresses):
    words = {a // 4 for a in addresses}
    return [sum(w % 32 == bank for w in words) for bank in range(32)]


def least_padding(row_words, rows, columns):
    return 1

# %% banks | wrong | padding-for-one-column | like always-one-word-of-padding
#-     return 1
#+     return 1 - row_words % 2

# %% banks | wrong | padding-counted-in-bytes
def bank_load(addresses):
    words = {a // 4 for a in addresses}
    return [sum(w % 32 == bank for w in words) for bank in range(32)]


def least_padding(row_words, rows, columns):
    for padding in range(32):
        length = row_words + padding
        if max(bank_load([4 * (r * length + c) for r in range(rows) for c in range(columns)])) == 1:
            return 4 * padding

# %% banks | wrong | padded-length-returned | like padding-counted-in-bytes
#-             return 4 * padding
#+             return length

# %% banks | wrong | columns-taken-for-the-padding | like always-one-word-of-padding
#-     return 1
#+     return columns

# %% ridge | right | in one chain, NumPy scalars
def ridge(sheet):
    prefix, binary = "kMGT".index(sheet["unit"][0]) + 1, "i" in sheet["unit"]
    bandwidth = np.float64(sheet["bandwidth"]) * (1024 if binary else 1000) ** prefix
    return np.float64(sheet["tflops"]) / (1 + sheet["with_sparsity"]) * 1e12 / bandwidth

# %% ridge | wrong | sparse-rate-as-dense
def ridge(sheet):
    units = {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2**30, "TiB/s": 2**40}
    return sheet["tflops"] * 1e12 / (sheet["bandwidth"] * units[sheet["unit"]])

# %% ridge | wrong | every-peak-halved
def ridge(sheet):
    units = {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2**30, "TiB/s": 2**40}
    return sheet["tflops"] / 2 * 1e12 / (sheet["bandwidth"] * units[sheet["unit"]])

# %% ridge | wrong | gib-per-second-taken-for-gb
def ridge(sheet):
    units = {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 1e9, "TiB/s": 1e12}
    return sheet["tflops"] / (1 + sheet["with_sparsity"]) * 1e12 / (sheet["bandwidth"] * units[sheet["unit"]])

# %% ridge | wrong | gb-per-second-taken-for-gib
def ridge(sheet):
    units = {"GB/s": 2**30, "TB/s": 2**40, "GiB/s": 2**30, "TiB/s": 2**40}
    return sheet["tflops"] / (1 + sheet["with_sparsity"]) * 1e12 / (sheet["bandwidth"] * units[sheet["unit"]])

# %% ridge | wrong | ridge-upside-down
def ridge(sheet):
    units = {"GB/s": 1e9, "TB/s": 1e12, "GiB/s": 2**30, "TiB/s": 2**40}
    return sheet["bandwidth"] * units[sheet["unit"]] / (sheet["tflops"] / (1 + sheet["with_sparsity"]) * 1e12)

# %% ridge | wrong | unit-of-bandwidth-ignored
def ridge(sheet):
    return sheet["tflops"] / (1 + sheet["with_sparsity"]) / sheet["bandwidth"]

# %% decode | right | tokens first, a list of NumPy scalars
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    gib = np.float64(weights_gib) + batch * context * cache_kib / 1024**2
    steps = bandwidth_tb * 1e12 / 1024**3 / gib
    return [1000 / steps, steps * batch]

# %% decode | wrong | binary-sizes-taken-for-decimal
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    step = (weights_gib * 1e9 + batch * context * cache_kib * 1e3) / (bandwidth_tb * 1e12)
    return step * 1e3, batch / step

# %% decode | wrong | bandwidth-taken-for-binary
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    step = (weights_gib * 2**30 + batch * context * cache_kib * 2**10) / (bandwidth_tb * 2**40)
    return step * 1e3, batch / step

# %% decode | wrong | weights-read-for-each-sequence
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    step = batch * (weights_gib * 2**30 + context * cache_kib * 2**10) / (bandwidth_tb * 1e12)
    return step * 1e3, batch / step

# %% decode | wrong | one-cache-for-all-sequences
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    step = (weights_gib * 2**30 + context * cache_kib * 2**10) / (bandwidth_tb * 1e12)
    return step * 1e3, batch / step

# %% decode | wrong | cache-left-out-of-the-step
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    step = weights_gib * 2**30 / (bandwidth_tb * 1e12)
    return step * 1e3, batch / step

# %% decode | wrong | one-token-for-the-whole-batch
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    step = (weights_gib * 2**30 + batch * context * cache_kib * 2**10) / (bandwidth_tb * 1e12)
    return step * 1e3, 1 / step

# %% decode | wrong | step-shared-out-among-sequences
def decode_floor(weights_gib, cache_kib, batch, context, bandwidth_tb):
    step = (weights_gib * 2**30 + batch * context * cache_kib * 2**10) / (bandwidth_tb * 1e12)
    return step / batch * 1e3, batch / step
