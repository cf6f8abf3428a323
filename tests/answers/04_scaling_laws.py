# Alternatives and mistakes for lesson 2.4; see CONTRIBUTING.md for the form of the headers.

# %% robust-fit | right | curves through many triples of runs, the least median miss wins
def fit_power(sizes, losses):
    import itertools
    n, y = np.asarray(sizes, float), np.asarray(losses, float)
    order = np.argsort(n)
    n, y = n[order], y[order]
    best = (np.inf,)
    for i, j, k in itertools.combinations(range(len(n)), 3):
        if k - i < len(n) // 2 or y[i] <= y[j] or y[j] <= y[k]:
            continue
        want = (y[i] - y[j]) / (y[j] - y[k])
        low, high = 0.02, 1.2
        for _ in range(30):  # the ratio of the two drops grows with alpha
            alpha = (low + high) / 2
            got = (n[i] ** -alpha - n[j] ** -alpha) / (n[j] ** -alpha - n[k] ** -alpha)
            low, high = (alpha, high) if got < want else (low, alpha)
        scale = (y[i] - y[k]) / (n[i] ** -alpha - n[k] ** -alpha)
        floor = y[i] - scale * n[i] ** -alpha
        misses = np.sort(np.abs(np.log(np.maximum(floor + scale * n**-alpha, 1e-9) / y)))
        best = min(best, (misses[: int(0.8 * len(n))].sum(), floor, scale, alpha))
    return [np.float64(v) for v in best[1:]]

# %% robust-fit | right | drop what misses most, least squares, again
def fit_power(sizes, losses):
    n, y = np.asarray(sizes, float), np.asarray(losses, float)

    def squares(rows):
        best = (np.inf,)
        for alpha in np.linspace(0.1, 0.9, 81):
            x = np.stack([np.ones(len(n)), (n / n.min()) ** -alpha], axis=1)
            line = np.linalg.lstsq(x[rows], y[rows], rcond=None)[0]
            off = np.abs(x @ line - y)
            best = min(best, (float(np.sum(off[rows] ** 2)), alpha, tuple(line), tuple(off)))
        return best

    rows = list(range(len(n)))
    while len(rows) > len(n) - 3:  # leave out the run whose absence helps most
        drops = [(squares([r for r in rows if r != row])[0], row) for row in rows]
        rows.remove(min(drops)[1])
    _, alpha, (E, scale), _ = squares(rows)
    return float(E), float(scale * n.min() ** alpha), float(alpha)

# %% robust-fit | wrong | floor-forgotten
def fit_power(sizes, losses):
    slope, level = np.polyfit(np.log(sizes), np.log(losses), 1)
    return 0.0, float(np.exp(level)), float(-slope)

# %% robust-fit | wrong | floor-at-the-lowest-loss
def fit_power(sizes, losses):
    sizes, losses = np.asarray(sizes), np.asarray(losses)
    E = losses.min()
    above = losses > E
    slope, level = np.polyfit(np.log(sizes[above]), np.log(losses[above] - E), 1)
    return float(E), float(np.exp(level)), float(-slope)

# %% robust-fit | wrong | exponent-with-its-sign
def fit_power(sizes, losses):
    n, y, best = np.asarray(sizes, float), np.asarray(losses, float), (np.inf,)
    for alpha in np.linspace(-0.9, -0.1, 161):
        x = np.stack([np.ones_like(n), (n / n.min()) ** alpha], axis=1)
        line = np.linalg.lstsq(x, y, rcond=None)[0]
        best = min(best, (np.sum((y - x @ line) ** 2), line[0], line[1] * n.min() ** -alpha, alpha))
    return best[1:]

# %% robust-fit | wrong | exponent-taken-from-a-paper
def fit_power(sizes, losses):
    x = np.asarray(sizes, float) ** -0.34
    A, E = np.polyfit(x, losses, 1)
    return float(E), float(A), 0.34

# %% robust-fit | wrong | diverged-runs-squared
def fit_power(sizes, losses):
    n, y, best = np.asarray(sizes, float), np.asarray(losses, float), (np.inf,)
    for alpha in np.linspace(0.1, 0.9, 161):
        x = np.stack([np.ones_like(n), (n / n.min()) ** -alpha], axis=1)
        line = np.linalg.lstsq(x, y, rcond=None)[0]
        best = min(best, (np.sum((y - x @ line) ** 2), line[0], line[1] * n.min() ** alpha, alpha))
    return best[1:]

# %% robust-fit | wrong | fit-through-few-runs
def fit_power(sizes, losses):
    order = np.argsort(sizes)
    n, y = np.asarray(sizes)[order], np.asarray(losses)[order]
    middle = len(n) // 2
    first, second = y[0] - y[middle], y[middle] - y[-1]
    alpha = np.log(max(first / second, 1.01)) / np.log(n[middle] / n[0])
    A = (y[0] - y[-1]) / (n[0] ** -alpha - n[-1] ** -alpha)
    return float(y[0] - A * n[0] ** -alpha), float(A), float(alpha)

# %% best-use | right | search along the budget, NumPy scalars
def best_use(A, B, E, alpha, beta, flops):
    low, high = 0.0, np.log(flops / 6)
    for _ in range(60):
        third = (high - low) / 3
        values = []
        for u in (low + third, high - third):
            values.append(A * np.exp(-alpha * u) + B * (flops / 6 / np.exp(u)) ** -beta)
        low, high = (low, high - third) if values[0] < values[1] else (low + third, high)
    n = np.exp((low + high) / 2)
    return np.array([n, flops / (6 * n)])

# %% best-use | right | tokens first, in logs
def best_use(A, B, E, alpha, beta, flops):
    import math
    product = math.log(flops) - math.log(6)
    log_d = (math.log(beta) + math.log(B) - math.log(alpha) - math.log(A) + alpha * product) / (alpha + beta)
    return [math.exp(product - log_d), math.exp(log_d)]

# %% best-use | wrong | six-flops-forgotten
def best_use(A, B, E, alpha, beta, flops):
    n = (alpha * A / (beta * B) * flops**beta) ** (1 / (alpha + beta))
    return n, flops / n

# %% best-use | wrong | exponents-of-size-and-data-swapped
def best_use(A, B, E, alpha, beta, flops):
    n = (alpha * A / (beta * B) * (flops / 6) ** alpha) ** (1 / (alpha + beta))
    return n, flops / 6 / n

# %% best-use | wrong | size-and-data-swapped
def best_use(A, B, E, alpha, beta, flops):
    n = (alpha * A / (beta * B) * (flops / 6) ** beta) ** (1 / (alpha + beta))
    return flops / 6 / n, n

# %% best-use | wrong | root-turned-into-power
def best_use(A, B, E, alpha, beta, flops):
    n = (alpha * A / (beta * B) * (flops / 6) ** beta) ** (alpha + beta)
    return n, flops / 6 / n

# %% best-use | wrong | terms-made-equal
def best_use(A, B, E, alpha, beta, flops):
    n = (A / B * (flops / 6) ** beta) ** (1 / (alpha + beta))
    return n, flops / 6 / n

# %% best-use | wrong | twenty-tokens-for-every-law
def best_use(A, B, E, alpha, beta, flops):
    n = (flops / 120) ** 0.5
    return n, 20 * n

# %% valley | right | normal equations, base 10
def best_size(sizes, losses):
    u = np.log10(np.asarray(sizes))
    shift = u.mean()
    x = np.vander(u - shift, 3)
    c2, c1, _ = np.linalg.solve(x.T @ x, x.T @ np.asarray(losses))
    if c2 <= 0:
        return None
    bottom = shift - c1 / (2 * c2)
    return np.float64(10**bottom) if min(u) <= bottom <= max(u) else None

# %% valley | right | Polynomial, its derivative's root
def best_size(sizes, losses):
    import math
    curve = np.polynomial.Polynomial.fit([math.log2(n) for n in sizes], losses, 2)
    root = float(curve.deriv().roots()[0].real)
    n = 2.0**root if root < 1000 else math.inf
    if curve.deriv(2)(root) > 0 and min(sizes) <= n <= max(sizes):
        return n

# %% valley | wrong | parabola-over-n
def best_size(sizes, losses):
    n = np.asarray(sizes) / 1e6
    c2, c1, _ = np.polyfit(n, losses, 2)
    bottom = -c1 / (2 * c2)
    return float(bottom * 1e6) if c2 > 0 and n.min() <= bottom <= n.max() else None

# %% valley | wrong | loss-in-logs-too
def best_size(sizes, losses):
    u = np.log(sizes)
    c2, c1, _ = np.polyfit(u, np.log(losses), 2)
    bottom = -c1 / (2 * c2)
    return float(np.exp(bottom)) if c2 > 0 and u.min() <= bottom <= u.max() else None

# %% valley | wrong | takes-the-best-run
def best_size(sizes, losses):
    return float(sizes[int(np.argmin(losses))])

# %% valley | wrong | log-not-undone
def best_size(sizes, losses):
    u = np.log(sizes)
    c2, c1, _ = np.polyfit(u, losses, 2)
    bottom = -c1 / (2 * c2)
    return float(bottom) if c2 > 0 and u.min() <= bottom <= u.max() else None

# %% valley | wrong | bottom-outside-the-runs
def best_size(sizes, losses):
    c2, c1, _ = np.polyfit(np.log(sizes), losses, 2)
    return float(np.exp(-c1 / (2 * c2))) if c2 > 0 else None

# %% valley | wrong | hill-taken-for-a-valley | like log-not-undone
#-     return float(bottom) if c2 > 0 and u.min() <= bottom <= u.max() else None
#+     return float(np.exp(bottom)) if u.min() <= bottom <= u.max() else None

# %% whole-life | right | arrays, NumPy scalars
def cheapest_model(law, loss, served, sizes, tokens_available):
    n = np.asarray(sizes, float)
    left = loss - law["E"] - law["A"] * n ** -law["alpha"]
    d = np.full(len(n), np.inf)
    d[left > 0] = (law["B"] / left[left > 0]) ** (1 / law["beta"])
    cost = np.where(d <= tokens_available, 6 * n * d + 2 * n * served, np.inf)
    best = int(np.argmin(cost))
    return np.array([n[best], d[best]]) if np.isfinite(cost[best]) else None

# %% whole-life | right | tokens by bisection
def cheapest_model(law, loss, served, sizes, tokens_available):
    def lost(n, d):
        return law["E"] + law["A"] / n ** law["alpha"] + law["B"] / d ** law["beta"]

    answer, least = None, None
    for n in sizes:
        low, high = 1.0, float(tokens_available)
        if lost(n, high) > loss:
            continue
        for _ in range(200):
            middle = (low * high) ** 0.5
            low, high = (middle, high) if lost(n, middle) > loss else (low, middle)
        cost = n * (3 * high + served)
        if least is None or cost < least:
            answer, least = [n, high], cost
    return answer

# %% whole-life | wrong | serving-forgotten
def cheapest_model(law, loss, served, sizes, tokens_available):
    lives = []
    for n in sizes:
        left = loss - law["E"] - law["A"] / n ** law["alpha"]
        if left > 0 and (law["B"] / left) ** (1 / law["beta"]) <= tokens_available:
            d = (law["B"] / left) ** (1 / law["beta"])
            lives.append((6 * n * d, n, d))
    return min(lives)[1:] if lives else None

# %% whole-life | wrong | serving-priced-like-training | like serving-forgotten
#-             lives.append((6 * n * d, n, d))
#+             lives.append((6 * n * (d + served), n, d))

# %% whole-life | wrong | floor-left-in-the-loss
def cheapest_model(law, loss, served, sizes, tokens_available):
    lives = []
    for n in sizes:
        d = (law["B"] / (loss - law["A"] / n ** law["alpha"])) ** (1 / law["beta"])
        if d <= tokens_available:
            lives.append((6 * n * d + 2 * n * served, n, d))
    return min(lives)[1:] if lives else None

# %% whole-life | wrong | least-loss-instead-of-least-cost
def cheapest_model(law, loss, served, sizes, tokens_available):
    n = min(sizes, key=lambda n: law["E"] + law["A"] / n ** law["alpha"] + law["B"] / tokens_available ** law["beta"])
    return n, tokens_available

# %% whole-life | wrong | twenty-tokens-instead-of-the-loss
def cheapest_model(law, loss, served, sizes, tokens_available):
    for n in sorted(sizes):
        if law["E"] + law["A"] / n ** law["alpha"] + law["B"] / (20 * n) ** law["beta"] <= loss:
            return n, 20 * n

# %% whole-life | wrong | smallest-size-that-reaches-it
def cheapest_model(law, loss, served, sizes, tokens_available):
    for n in sorted(sizes):
        left = loss - law["E"] - law["A"] / n ** law["alpha"]
        if left > 0 and (law["B"] / left) ** (1 / law["beta"]) <= tokens_available:
            return n, (law["B"] / left) ** (1 / law["beta"])

# %% whole-life | wrong | data-limit-ignored
def cheapest_model(law, loss, served, sizes, tokens_available):
    lives = []
    for n in sizes:
        left = loss - law["E"] - law["A"] / n ** law["alpha"]
        if left > 0:
            d = (law["B"] / left) ** (1 / law["beta"])
            lives.append((6 * n * d + 2 * n * served, n, d))
    return min(lives)[1:] if lives else None
