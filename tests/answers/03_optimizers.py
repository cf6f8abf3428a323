# Alternatives and mistakes for lesson 1.3; see CONTRIBUTING.md for the form of the headers.

# %% adamw | right | weighted means over the whole history
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    done = []
    for i, w in enumerate(params):
        history = []
        decay = lr * weight_decay * (np.ndim(w) >= 2)
        for grads in grads_per_step:
            if grads[i] is None:
                continue
            history.append(np.asarray(grads[i], float))
            age = np.arange(len(history))[::-1]
            mean = np.average(history, axis=0, weights=betas[0] ** age)
            square = np.average(np.square(history), axis=0, weights=betas[1] ** age)
            w = w - decay * w - lr * mean / (eps + square**0.5)
        done.append(w)
    return tuple(done)

# %% adamw | right | corrections moved into the rate, as old PyTorch did
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    from math import sqrt
    state = {i: [np.array(p, float), np.float64(0), np.float64(0), 0] for i, p in enumerate(params)}
    for grads in grads_per_step:
        for i, g in enumerate(grads):
            if g is not None:
                p, m, v, t = state[i]
                m, v, t = m + (g - m) * (1 - betas[0]), v + (g * g - v) * (1 - betas[1]), t + 1
                root = sqrt(1 - betas[1] ** t)
                step = lr * root / (1 - betas[0] ** t) * m / (np.sqrt(v) + eps * root)
                state[i] = [p - step - (lr * weight_decay * p if p.ndim > 1 else 0), m, v, t]
    return [state[i][0] for i in range(len(params))]

# %% adamw | wrong | adam-no-bias-correction
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    params = [np.array(p) for p in params]
    m, v = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    for grads in grads_per_step:
        for i, g in enumerate(grads):
            if g is None:
                continue
            if params[i].ndim > 1:
                params[i] *= 1 - lr * weight_decay
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            params[i] -= lr * m[i] / (np.sqrt(v[i]) + eps)
    return params

# %% adamw | wrong | adam-correction-frozen | like adam-no-bias-correction
#-             params[i] -= lr * m[i] / (np.sqrt(v[i]) + eps)
#+             params[i] -= lr * m[i] / (1 - betas[0]) / (np.sqrt(v[i] / (1 - betas[1])) + eps)

# %% adamw | wrong | adam-m-not-accumulated
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    params = [np.array(p) for p in params]
    v, steps = [np.zeros_like(p) for p in params], [0] * len(params)
    for grads in grads_per_step:
        for i, g in enumerate(grads):
            if g is None:
                continue
            steps[i] += 1
            if params[i].ndim > 1:
                params[i] *= 1 - lr * weight_decay
            m = (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            params[i] -= lr * m / (1 - betas[0] ** steps[i]) / (np.sqrt(v[i] / (1 - betas[1] ** steps[i])) + eps)
    return params

# %% adamw | wrong | adam-v-not-accumulated
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    params = [np.array(p) for p in params]
    m, steps = [np.zeros_like(p) for p in params], [0] * len(params)
    for grads in grads_per_step:
        for i, g in enumerate(grads):
            if g is None:
                continue
            steps[i] += 1
            if params[i].ndim > 1:
                params[i] *= 1 - lr * weight_decay
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v = (1 - betas[1]) * g**2
            params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / (np.sqrt(v / (1 - betas[1] ** steps[i])) + eps)
    return params

# %% adamw | wrong | adam-forgets-the-root | like adam-v-not-accumulated
#-     m, steps = [np.zeros_like(p) for p in params], [0] * len(params)
#+     m, v, steps = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params], [0] * len(params)
#-             v = (1 - betas[1]) * g**2
#-             params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / (np.sqrt(v / (1 - betas[1] ** steps[i])) + eps)
#+             v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
#+             params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / (v[i] / (1 - betas[1] ** steps[i]) + eps)

# %% adamw | wrong | eps-inside-the-root | like adam-v-not-accumulated
#-     m, steps = [np.zeros_like(p) for p in params], [0] * len(params)
#+     m, v, steps = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params], [0] * len(params)
#-             v = (1 - betas[1]) * g**2
#-             params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / (np.sqrt(v / (1 - betas[1] ** steps[i])) + eps)
#+             v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
#+             params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / np.sqrt(v[i] / (1 - betas[1] ** steps[i]) + eps)

# %% adamw | wrong | decay-in-the-gradient
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    params = [np.array(p) for p in params]
    m, v, steps = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params], [0] * len(params)
    for grads in grads_per_step:
        for i, g in enumerate(grads):
            if g is None:
                continue
            steps[i] += 1
            if params[i].ndim > 1:
                g = g + weight_decay * params[i]
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / (np.sqrt(v[i] / (1 - betas[1] ** steps[i])) + eps)
    return params

# %% adamw | wrong | decay-after-the-step
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    params = [np.array(p) for p in params]
    m, v, steps = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params], [0] * len(params)
    for grads in grads_per_step:
        for i, g in enumerate(grads):
            if g is None:
                continue
            steps[i] += 1
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / (np.sqrt(v[i] / (1 - betas[1] ** steps[i])) + eps)
            if params[i].ndim > 1:
                params[i] *= 1 - lr * weight_decay
    return params

# %% adamw | wrong | decay-without-the-rate | like decay-in-the-gradient
#-                 g = g + weight_decay * params[i]
#+                 params[i] *= 1 - weight_decay

# %% adamw | wrong | none-counts-as-a-step | like adam-no-bias-correction
#-     for grads in grads_per_step:
#+     for t, grads in enumerate(grads_per_step, 1):
#-             params[i] -= lr * m[i] / (np.sqrt(v[i]) + eps)
#+             params[i] -= lr * m[i] / (1 - betas[0] ** t) / (np.sqrt(v[i] / (1 - betas[1] ** t)) + eps)

# %% adamw | wrong | none-is-not-zero
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    params = [np.array(p) for p in params]
    m, v = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params]
    for t, grads in enumerate(grads_per_step, 1):
        for i, g in enumerate(grads):
            g = np.zeros_like(params[i]) if g is None else g
            if params[i].ndim > 1:
                params[i] *= 1 - lr * weight_decay
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            params[i] -= lr * m[i] / (1 - betas[0] ** t) / (np.sqrt(v[i] / (1 - betas[1] ** t)) + eps)
    return params

# %% adamw | wrong | none-still-decays
def adamw(params, grads_per_step, lr, betas, eps, weight_decay):
    params = [np.array(p) for p in params]
    m, v, steps = [np.zeros_like(p) for p in params], [np.zeros_like(p) for p in params], [0] * len(params)
    for grads in grads_per_step:
        for i, g in enumerate(grads):
            if params[i].ndim > 1:
                params[i] *= 1 - lr * weight_decay
            if g is None:
                continue
            steps[i] += 1
            m[i] = betas[0] * m[i] + (1 - betas[0]) * g
            v[i] = betas[1] * v[i] + (1 - betas[1]) * g**2
            params[i] -= lr * m[i] / (1 - betas[0] ** steps[i]) / (np.sqrt(v[i] / (1 - betas[1] ** steps[i])) + eps)
    return params

# %% adamw | wrong | decay-on-biases | like decay-in-the-gradient
#-             if params[i].ndim > 1:
#-                 g = g + weight_decay * params[i]
#+             params[i] *= 1 - lr * weight_decay

# %% ball-limit | right | halving an interval on the eigenvalues
def largest_rate(curvatures, beta):
    def grows(lr):
        return max(np.abs(np.linalg.eigvals([[1 - lr * h, -lr * beta], [h, beta]])).max() for h in curvatures) >= 1 + 1e-12
    low, high = 0.0, 1.0
    while not grows(high):
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if grows(middle) else (middle, high)
    return np.float64(low)

# %% ball-limit | right | the limit of each direction, then the least
def largest_rate(curvatures, beta):
    return min((1 + beta) / (np.float64(h) / 2) for h in curvatures)

# %% ball-limit | wrong | limit-of-gradient-descent
def largest_rate(curvatures, beta):
    return 2 / max(curvatures)

# %% ball-limit | wrong | limit-from-effective-rate
def largest_rate(curvatures, beta):
    return 2 / ((1 - beta) * max(curvatures))

# %% ball-limit | wrong | limit-from-the-flattest
def largest_rate(curvatures, beta):
    return 2 * (1 + beta) / min(curvatures)

# %% ball-limit | wrong | limit-from-the-mean
def largest_rate(curvatures, beta):
    return 2 * (1 + beta) / np.mean(curvatures)

# %% ball-limit | wrong | limit-half
def largest_rate(curvatures, beta):
    return (1 + beta) / max(curvatures)

# %% ball-limit | wrong | momentum-as-a-mean
def largest_rate(curvatures, beta):
    return 2 * (1 + beta) / ((1 - beta) * max(curvatures))

# %% state-bytes | right | bytes a parameter, NumPy scalars
def training_state(n_params, low_bytes, high_bytes, moments):
    each = np.array([low_bytes, low_bytes, high_bytes if high_bytes > low_bytes else 0, moments * high_bytes], float)
    gb = each * n_params / 1e9
    return [*gb, gb.sum()]

# %% state-bytes | wrong | master-copy-forgotten
def training_state(n_params, low_bytes, high_bytes, moments):
    n = n_params / 1e9
    parts = (n * low_bytes, n * low_bytes, 0, n * moments * high_bytes)
    return *parts, sum(parts)

# %% state-bytes | wrong | master-copy-not-needed
def training_state(n_params, low_bytes, high_bytes, moments):
    n = n_params / 1e9
    parts = (n * low_bytes, n * low_bytes, n * high_bytes, n * moments * high_bytes)
    return *parts, sum(parts)

# %% state-bytes | wrong | moments-in-the-narrow-type
def training_state(n_params, low_bytes, high_bytes, moments):
    n = n_params / 1e9
    master = n * high_bytes if high_bytes > low_bytes else 0
    parts = (n * low_bytes, n * low_bytes, master, n * moments * low_bytes)
    return *parts, sum(parts)

# %% state-bytes | wrong | gradients-forgotten | like moments-in-the-narrow-type
#-     parts = (n * low_bytes, n * low_bytes, master, n * moments * low_bytes)
#+     parts = (n * low_bytes, 0, master, n * moments * high_bytes)

# %% state-bytes | wrong | gradients-in-the-wide-type | like moments-in-the-narrow-type
#-     parts = (n * low_bytes, n * low_bytes, master, n * moments * low_bytes)
#+     parts = (n * low_bytes, n * high_bytes, master, n * moments * high_bytes)

# %% state-bytes | wrong | state-in-gib
def training_state(n_params, low_bytes, high_bytes, moments):
    n = n_params / 2**30
    master = n * high_bytes if high_bytes > low_bytes else 0
    parts = (n * low_bytes, n * low_bytes, master, n * moments * high_bytes)
    return *parts, sum(parts)

# %% rate-and-clip | right | squared cosine, one long vector
def lr_at(step, batch_tokens, peak, warmup_tokens, decay_tokens, floor_share):
    seen = batch_tokens + step * batch_tokens
    rising = np.minimum(seen / warmup_tokens, 1.0)
    passed = np.clip((seen - warmup_tokens) / (decay_tokens - warmup_tokens), 0, 1)
    height = floor_share + (1 - floor_share) * np.cos(passed * np.pi / 2) ** 2
    return peak * rising * height

def clip(grads, max_norm):
    long = np.concatenate([np.ravel(g) for g in grads])
    length = np.linalg.norm(long)
    if length > max_norm:
        long = long / length * max_norm
    ends = np.cumsum([np.size(g) for g in grads])[:-1]
    return tuple(part.reshape(np.shape(g)) for part, g in zip(np.split(long, ends), grads))

# %% rate-and-clip | wrong | first-update-at-zero
def lr_at(step, batch_tokens, peak, warmup_tokens, decay_tokens, floor_share):
    tokens = step * batch_tokens
    floor = floor_share * peak
    if tokens <= warmup_tokens:
        return peak * tokens / warmup_tokens
    progress = min(1, (tokens - warmup_tokens) / (decay_tokens - warmup_tokens))
    return floor + (peak - floor) * (1 + np.cos(np.pi * progress)) / 2

def clip(grads, max_norm):
    raise NotImplementedError

# %% rate-and-clip | wrong | cosine-over-the-whole-run
def lr_at(step, batch_tokens, peak, warmup_tokens, decay_tokens, floor_share):
    tokens = (step + 1) * batch_tokens
    floor = floor_share * peak
    if tokens < warmup_tokens:
        return peak * tokens / warmup_tokens
    progress = min(1, tokens / decay_tokens)
    return floor + (peak - floor) * (1 + np.cos(np.pi * progress)) / 2

def clip(grads, max_norm):
    raise NotImplementedError

# %% rate-and-clip | wrong | floor-ignored
def lr_at(step, batch_tokens, peak, warmup_tokens, decay_tokens, floor_share):
    tokens = (step + 1) * batch_tokens
    if tokens <= warmup_tokens:
        return peak * tokens / warmup_tokens
    progress = min(1, (tokens - warmup_tokens) / (decay_tokens - warmup_tokens))
    return peak * (1 + np.cos(np.pi * progress)) / 2

def clip(grads, max_norm):
    raise NotImplementedError

# %% rate-and-clip | wrong | floor-is-a-share | like floor-ignored
#-     return peak * (1 + np.cos(np.pi * progress)) / 2
#+     return floor_share + (peak - floor_share) * (1 + np.cos(np.pi * progress)) / 2

# %% rate-and-clip | wrong | schedule-rises-again | like first-update-at-zero
#-     tokens = step * batch_tokens
#+     tokens = (step + 1) * batch_tokens
#-     progress = min(1, (tokens - warmup_tokens) / (decay_tokens - warmup_tokens))
#+     progress = (tokens - warmup_tokens) / (decay_tokens - warmup_tokens)

# %% rate-and-clip | wrong | clip-each-tensor
def lr_at(step, batch_tokens, peak, warmup_tokens, decay_tokens, floor_share):
    raise NotImplementedError

def clip(grads, max_norm):
    return [g * min(1, max_norm / max(np.linalg.norm(g), 1e-300)) for g in grads]

# %% rate-and-clip | wrong | clip-each-number | like clip-each-tensor
#-     return [g * min(1, max_norm / max(np.linalg.norm(g), 1e-300)) for g in grads]
#+     return [np.clip(g, -max_norm, max_norm) for g in grads]

# %% rate-and-clip | wrong | clip-sum-of-norms
def lr_at(step, batch_tokens, peak, warmup_tokens, decay_tokens, floor_share):
    raise NotImplementedError

def clip(grads, max_norm):
    norm = sum(np.linalg.norm(g) for g in grads)
    return [g * max_norm / norm if norm > max_norm else g for g in grads]

# %% rate-and-clip | wrong | clip-norm-of-sums | like clip-sum-of-norms
#-     norm = sum(np.linalg.norm(g) for g in grads)
#+     norm = abs(sum(g.sum() for g in grads))

# %% rate-and-clip | wrong | clip-without-the-root | like clip-sum-of-norms
#-     norm = sum(np.linalg.norm(g) for g in grads)
#+     norm = sum((g * g).sum() for g in grads)

# %% rate-and-clip | wrong | clip-stretches
def lr_at(step, batch_tokens, peak, warmup_tokens, decay_tokens, floor_share):
    raise NotImplementedError

def clip(grads, max_norm):
    norm = np.sqrt(sum((g * g).sum() for g in grads))
    return [g * max_norm / norm for g in grads]
