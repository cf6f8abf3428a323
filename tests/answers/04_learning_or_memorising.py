# Alternatives and mistakes for lesson 1.4; see CONTRIBUTING.md for the form of the headers.

# %% group-split | right | groups one by one, plain Python
def split_by_group(groups, share, seed):
    import random
    rows_of = {}
    for row, group in enumerate(groups):
        rows_of.setdefault(str(group), []).append(row)
    names = sorted(rows_of)
    random.Random(seed).shuffle(names)
    held = []
    while len(held) < share * len(groups):
        held += rows_of[names.pop()]
    return [row for name in names for row in rows_of[name]], held

# %% group-split | right | a random key for each group, arrays
def split_by_group(groups, share, seed):
    groups = np.asarray(groups)
    _, number = np.unique(groups, return_inverse=True)
    key = np.random.default_rng([seed, 9]).random(number.max() + 1)
    order = np.argsort(key[number], kind="stable")
    wanted = next(n for n in range(len(groups) + 1) if n >= share * len(groups))
    last = key[number[order[wanted - 1]]]
    held = key[number] <= last
    return np.flatnonzero(~held), np.flatnonzero(held)

# %% group-split | right | the draw that comes closest from above
def split_by_group(groups, share, seed):
    rng = np.random.default_rng(seed)
    names, number = np.unique(np.asarray(groups), return_inverse=True)
    sizes = np.bincount(number)
    held, rows = set(), 0
    for group in rng.permutation(len(names)):
        if rows >= share * len(groups):
            break
        held.add(int(group))
        rows += sizes[group]
    for group in list(held):  # give back what is not needed
        if rows - sizes[group] >= share * len(groups):
            held.remove(group)
            rows -= sizes[group]
    inside = np.isin(number, list(held))
    return tuple(np.where(~inside)[0]), tuple(np.where(inside)[0])

# %% group-split | wrong | split-deals-rows
def split_by_group(groups, share, seed):
    order = np.random.default_rng(seed).permutation(len(groups))
    held = math.ceil(share * len(groups))
    return order[held:].tolist(), order[:held].tolist()

# %% group-split | wrong | split-cuts-a-group
def split_by_group(groups, share, seed):
    groups = np.asarray(groups)
    names = np.random.default_rng(seed).permutation(np.unique(groups))
    order = np.concatenate([np.flatnonzero(groups == name) for name in names])
    held = math.ceil(share * len(groups))
    return order[held:].tolist(), order[:held].tolist()

# %% group-split | wrong | split-loses-rows
def split_by_group(groups, share, seed):
    groups = np.asarray(groups)
    names = np.random.default_rng(seed).permutation(np.unique(groups))
    order = [np.flatnonzero(groups == name) for name in names]
    held, n = [], 0
    while sum(map(len, held)) < share * len(groups):
        held.append(order[n])
        n += 1
    surplus = math.ceil(share * len(groups))
    return np.concatenate(order[n:]).tolist() if order[n:] else [], np.concatenate(held)[:surplus].tolist()

# %% group-split | wrong | split-counts-groups
def split_by_group(groups, share, seed):
    groups = np.asarray(groups)
    names = np.random.default_rng(seed).permutation(np.unique(groups))
    held = np.isin(groups, names[: math.ceil(share * len(names))])
    return np.flatnonzero(~held).tolist(), np.flatnonzero(held).tolist()

# %% group-split | wrong | split-swaps-sides
def split_by_group(groups, share, seed):
    groups = np.asarray(groups)
    held = np.zeros(len(groups), bool)
    for name in np.random.default_rng(seed).permutation(np.unique(groups)):
        if held.sum() < share * len(groups):
            held |= groups == name
    return np.flatnonzero(held).tolist(), np.flatnonzero(~held).tolist()

# %% group-split | wrong | split-ignores-the-seed
def split_by_group(groups, share, seed):
    groups = np.asarray(groups)
    held = np.zeros(len(groups), bool)
    for name in np.random.default_rng().permutation(np.unique(groups)):
        if held.sum() < share * len(groups):
            held |= groups == name
    return np.flatnonzero(~held).tolist(), np.flatnonzero(held).tolist()

# %% group-split | wrong | split-never-shuffles | like split-ignores-the-seed
#-     for name in np.random.default_rng().permutation(np.unique(groups)):
#+     for name in np.unique(groups):

# %% chance-band | right | one answer after the other, NumPy scalars
def chance_band(n, classes, level):
    share = np.zeros(n + 1)
    share[0] = 1.0
    for _ in range(n):
        share[1:], share[0] = share[1:] * (1 - 1 / classes) + share[:-1] / classes, share[0] * (1 - 1 / classes)
    upto = share.cumsum()
    return np.searchsorted(upto, [(1 - level) / 2, (1 + level) / 2])

def shuffled_verdict(run, level):
    low, high = chance_band(run["val_n"], run["classes"], level)
    return "chance" if low <= run["val_correct"] <= high else ("below", "above")[int(run["val_correct"] > high)]

# %% chance-band | right | logarithms of factorials, downward from the top
def chance_band(n, classes, level):
    def at_least(k):
        return sum(
            math.exp(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1)
                     - i * math.log(classes) + (n - i) * math.log(1 - 1 / classes)) for i in range(k, n + 1))
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        k = n
        while k > 0 and 1 - at_least(k) >= share:
            k -= 1
        ends.append(k)
    return ends

def shuffled_verdict(run, level):
    low, high = chance_band(run["val_n"], run["classes"], level)
    if run["val_correct"] in range(low, high + 1):
        return "chance"
    return "above" if run["val_correct"] > run["val_n"] / run["classes"] else "below"

# %% chance-band | wrong | chance-taken-as-half
def chance_band(n, classes, level):
    upto = np.cumsum([math.comb(n, k) * 0.5**n for k in range(n + 1)])
    return int(np.argmax(upto >= (1 - level) / 2)), int(np.argmax(upto >= (1 + level) / 2))

def shuffled_verdict(run, level):
    raise NotImplementedError

# %% chance-band | wrong | band-one-sided
def chance_band(n, classes, level):
    p = 1 / classes
    upto = np.cumsum([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    return int(np.argmax(upto >= 1 - level)), int(np.argmax(upto >= level))

def shuffled_verdict(run, level):
    raise NotImplementedError

# %% chance-band | wrong | band-without-the-root
def chance_band(n, classes, level):
    z, mean = statistics.NormalDist().inv_cdf((1 + level) / 2), n / classes
    return round(mean - z * mean * (1 - 1 / classes)), round(mean + z * mean * (1 - 1 / classes))

def shuffled_verdict(run, level):
    raise NotImplementedError

# %% chance-band | wrong | band-from-a-normal-curve | like band-without-the-root
#-     return round(mean - z * mean * (1 - 1 / classes)), round(mean + z * mean * (1 - 1 / classes))
#+     error = (mean * (1 - 1 / classes)) ** 0.5
#+     return round(mean - z * error), round(mean + z * error)

# %% chance-band | wrong | band-stops-one-early | like band-one-sided
#-     return int(np.argmax(upto >= 1 - level)), int(np.argmax(upto >= level))
#+     return int(np.argmax(upto >= (1 - level) / 2)), int(np.argmax(upto >= (1 + level) / 2)) - 1

# %% chance-band | wrong | verdict-from-training-size
def chance_band(n, classes, level):
    p = 1 / classes
    upto = np.cumsum([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    return int(np.argmax(upto >= (1 - level) / 2)), int(np.argmax(upto >= (1 + level) / 2))

def shuffled_verdict(run, level):
    low, high = chance_band(run["train_n"], run["classes"], level)
    return "below" if run["val_correct"] < low else "above" if run["val_correct"] > high else "chance"

# %% chance-band | wrong | verdict-on-training-accuracy
def chance_band(n, classes, level):
    p = 1 / classes
    upto = np.cumsum([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    return int(np.argmax(upto >= (1 - level) / 2)), int(np.argmax(upto >= (1 + level) / 2))

def shuffled_verdict(run, level):
    low, high = chance_band(run["val_n"], run["classes"], level)
    return "below" if run["train_correct"] < low else "above" if run["train_correct"] > high else "chance"

# %% chance-band | wrong | verdict-leaves-out-the-ends | like verdict-on-training-accuracy
#-     return "below" if run["train_correct"] < low else "above" if run["train_correct"] > high else "chance"
#+     return "below" if run["val_correct"] <= low else "above" if run["val_correct"] >= high else "chance"

# %% chance-band | wrong | verdict-one-way-only
def chance_band(n, classes, level):
    p = 1 / classes
    upto = np.cumsum([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    return int(np.argmax(upto >= (1 - level) / 2)), int(np.argmax(upto >= (1 + level) / 2))

def shuffled_verdict(run, level):
    _, high = chance_band(run["val_n"], run["classes"], level)
    return "above" if run["val_correct"] > high else "chance"

# %% labels-needed | right | search by halves, quantile by bisection
def labels_needed(accuracy, half_width, confidence):
    low_z, high_z = 0.0, 10.0
    for _ in range(200):
        z = (low_z + high_z) / 2
        low_z, high_z = (z, high_z) if math.erf(z / 2**0.5) < confidence else (low_z, z)
    low, high = 0, 10**9
    while high - low > 1:
        n = (low + high) // 2
        wide = z * np.sqrt(accuracy * (1 - accuracy) / n) > half_width
        low, high = (n, high) if wide else (low, n)
    return np.int64(high)

# %% labels-needed | wrong | width-taken-whole
def labels_needed(accuracy, half_width, confidence):
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    return math.ceil(accuracy * (1 - accuracy) * (2 * z / half_width) ** 2)

# %% labels-needed | wrong | error-without-the-root
def labels_needed(accuracy, half_width, confidence):
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    return math.ceil(z * accuracy * (1 - accuracy) / half_width)

# %% labels-needed | wrong | interval-one-sided
def labels_needed(accuracy, half_width, confidence):
    z = statistics.NormalDist().inv_cdf(confidence)
    return math.ceil(accuracy * (1 - accuracy) * (z / half_width) ** 2)

# %% labels-needed | wrong | two-instead-of-quantile
def labels_needed(accuracy, half_width, confidence):
    return round(accuracy * (1 - accuracy) * (2 / half_width) ** 2)

# %% labels-needed | wrong | worst-case-accuracy
def labels_needed(accuracy, half_width, confidence):
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    return math.ceil(0.25 * (z / half_width) ** 2)

# %% labels-needed | wrong | labels-rounded-down
def labels_needed(accuracy, half_width, confidence):
    z = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    return int(accuracy * (1 - accuracy) * (z / half_width) ** 2)

# %% early-stop | right | the state of the wait, NumPy scalars
def early_stop(losses, patience, min_delta):
    best, best_epoch, waited, epoch = np.inf, 0, 0, -1
    for loss in np.asarray(losses, float):
        epoch += 1
        if best - loss > min_delta:
            best, best_epoch, waited = loss, epoch, 0
        else:
            waited += 1
            if waited == patience:
                break
    return np.array([epoch, best_epoch])

# %% early-stop | right | from improvement to improvement
def early_stop(losses, patience, min_delta):
    def run(best):
        window = range(best + 1, min(best + patience, len(losses) - 1) + 1)
        later = next((i for i in window if losses[i] < losses[best] - min_delta), None)
        return (window[-1] if window else best, best) if later is None else run(later)
    return run(0)

# %% early-stop | wrong | stops-at-first-uptick
def early_stop(losses, patience, min_delta):
    for epoch in range(1, len(losses)):
        if losses[epoch] > losses[epoch - 1]:
            break
    return epoch, int(np.argmin(losses[: epoch + 1]))

# %% early-stop | wrong | patience-never-resets
def early_stop(losses, patience, min_delta):
    best_epoch, bad = 0, 0
    for epoch in range(1, len(losses)):
        if losses[epoch] < losses[best_epoch] - min_delta:
            best_epoch = epoch
        else:
            bad += 1
            if bad == patience:
                return epoch, best_epoch
    return len(losses) - 1, best_epoch

# %% early-stop | wrong | equal-counts-as-better
def early_stop(losses, patience, min_delta):
    best_epoch = 0
    for epoch, loss in enumerate(losses):
        if loss <= losses[best_epoch] - min_delta:
            best_epoch = epoch
        elif epoch - best_epoch >= patience:
            return epoch, best_epoch
    return len(losses) - 1, best_epoch

# %% early-stop | wrong | keeps-the-last-epoch
def early_stop(losses, patience, min_delta):
    best_epoch = 0
    for epoch, loss in enumerate(losses):
        if loss < losses[best_epoch] - min_delta:
            best_epoch = epoch
        elif epoch - best_epoch >= patience:
            return epoch, epoch
    return len(losses) - 1, len(losses) - 1

# %% early-stop | wrong | patience-one-too-long
def early_stop(losses, patience, min_delta):
    best_epoch = 0
    for epoch, loss in enumerate(losses):
        if loss < losses[best_epoch] - min_delta:
            best_epoch = epoch
        elif epoch - best_epoch > patience:
            return epoch, best_epoch
    return len(losses) - 1, best_epoch

# %% early-stop | wrong | margin-has-the-wrong-sign | like equal-counts-as-better
#-         if loss <= losses[best_epoch] - min_delta:
#+         if epoch and loss < losses[best_epoch] + min_delta:

# %% early-stop | wrong | margin-ignored | like equal-counts-as-better
#-         if loss <= losses[best_epoch] - min_delta:
#+         if loss < losses[best_epoch]:

# %% early-stop | wrong | margin-from-the-lowest
def early_stop(losses, patience, min_delta):
    best_epoch, lowest = 0, losses[0]
    for epoch, loss in enumerate(losses):
        if loss < lowest - min_delta:
            best_epoch = epoch
        elif epoch - best_epoch >= patience:
            return epoch, best_epoch
        lowest = min(lowest, loss)
    return len(losses) - 1, best_epoch
