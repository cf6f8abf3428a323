# Alternatives and mistakes for lesson 2.3; see CONTRIBUTING.md for the form of the headers.

# %% size | right | shapes of all arrays, NumPy integers
def model_size(shape):
    d, width, f = shape["width"], shape["head_width"], shape["mlp_width"]
    inside = [(d, shape["heads"] * width), (d, shape["kv_heads"] * width), (d, shape["kv_heads"] * width),
              (shape["heads"] * width, d), (d, f), (f, d)] + [(d, f)] * (shape["mlp"] == "gated")
    norm = [(d,)] * (2 if shape["norm"] == "layer" else 1)
    block = inside + 2 * norm + [(out,) for _, out in inside] * bool(shape["biases"])
    outside = norm + [(shape["vocab"], d)] * (2 - bool(shape["tied"]))
    if shape["positions"] == "learned":
        outside.append((shape["context"], d))
    size = lambda arrays: sum(np.prod(a, dtype=np.int64) for a in arrays)
    return size(outside) + np.int64(shape["layers"]) * size(block)

# %% size | right | polynomials in the width, floats below 2**53
def model_size(shape):
    d, f, w = float(shape["width"]), shape["mlp_width"], shape["head_width"]
    q, kv, bias = shape["heads"] * w, shape["kv_heads"] * w, 1 if shape["biases"] else 0
    inner = {"gelu": 1, "gated": 2}[shape["mlp"]]
    norm = {"layer": 2, "rms": 1}[shape["norm"]] * d
    qkv = (d + bias) * (q + 2 * kv)
    block = qkv + (q + bias) * d + inner * (d + bias) * f + (f + bias) * d + 2 * norm
    tables = shape["vocab"] * (1 if shape["tied"] else 2)
    tables += shape["context"] if shape["positions"] == "learned" else 0
    return block * shape["layers"] + d * tables + norm

# %% size | wrong | size-tied-twice
def model_size(shape):
    d, f = shape["width"], shape["mlp_width"]
    q, kv = shape["heads"] * shape["head_width"], shape["kv_heads"] * shape["head_width"]
    inner = 2 if shape["mlp"] == "gated" else 1
    norm = 2 * d if shape["norm"] == "layer" else d
    block = 2 * d * (q + kv) + (inner + 1) * d * f + 2 * norm
    if shape["biases"]:
        block += q + 2 * kv + d + inner * f + d
    total = shape["layers"] * block + norm + shape["vocab"] * d
    total += shape["vocab"] * d
    if shape["positions"] == "learned":
        total += shape["context"] * d
    return total

# %% size | wrong | size-output-layer | like size-tied-twice
#-     total = shape["layers"] * block + norm + shape["vocab"] * d
#-     total += shape["vocab"] * d
#+     total = shape["layers"] * block + norm + shape["vocab"] * d

# %% size | wrong | size-two-matrices | like size-tied-twice
#-     inner = 2 if shape["mlp"] == "gated" else 1
#+     inner = 1
#-     total += shape["vocab"] * d
#+     if not shape["tied"]:
#+         total += shape["vocab"] * d

# %% size | wrong | size-kv-as-heads | like size-tied-twice
#-     q, kv = shape["heads"] * shape["head_width"], shape["kv_heads"] * shape["head_width"]
#+     q, kv = shape["heads"] * shape["head_width"], shape["heads"] * shape["head_width"]
#-     total += shape["vocab"] * d
#+     if not shape["tied"]:
#+         total += shape["vocab"] * d

# %% size | wrong | size-heads-again | like size-tied-twice
#-     block = 2 * d * (q + kv) + (inner + 1) * d * f + 2 * norm
#+     block = shape["heads"] * 3 * d * d + d * d + (inner + 1) * d * f + 2 * norm
#-     total += shape["vocab"] * d
#+     if not shape["tied"]:
#+         total += shape["vocab"] * d

# %% size | wrong | size-head-width | like size-tied-twice
#-     q, kv = shape["heads"] * shape["head_width"], shape["kv_heads"] * shape["head_width"]
#+     q, kv = d, d * shape["kv_heads"] // shape["heads"]
#-     total += shape["vocab"] * d
#+     if not shape["tied"]:
#+         total += shape["vocab"] * d

# %% size | wrong | size-no-biases
def model_size(shape):
    d, f = shape["width"], shape["mlp_width"]
    q, kv = shape["heads"] * shape["head_width"], shape["kv_heads"] * shape["head_width"]
    inner = 2 if shape["mlp"] == "gated" else 1
    norm = 2 * d if shape["norm"] == "layer" else d
    block = 2 * d * (q + kv) + (inner + 1) * d * f + 2 * norm
    total = shape["layers"] * block + norm + shape["vocab"] * d
    if not shape["tied"]:
        total += shape["vocab"] * d
    if shape["positions"] == "learned":
        total += shape["context"] * d
    return total

# %% size | wrong | size-bias-of-inputs | like size-no-biases
#-     block = 2 * d * (q + kv) + (inner + 1) * d * f + 2 * norm
#+     block = 2 * d * (q + kv) + (inner + 1) * d * f + 2 * norm
#+     if shape["biases"]:
#+         block += 3 * d + q + inner * d + f

# %% size | wrong | size-no-positions | like size-tied-twice
#-     total += shape["vocab"] * d
#-     if shape["positions"] == "learned":
#-         total += shape["context"] * d
#+     if not shape["tied"]:
#+         total += shape["vocab"] * d

# %% size | wrong | size-rotary-table
def model_size(shape):
    d, f = shape["width"], shape["mlp_width"]
    q, kv = shape["heads"] * shape["head_width"], shape["kv_heads"] * shape["head_width"]
    inner = 2 if shape["mlp"] == "gated" else 1
    norm = 2 * d if shape["norm"] == "layer" else d
    block = 2 * d * (q + kv) + (inner + 1) * d * f + 2 * norm
    if shape["biases"]:
        block += q + 2 * kv + d + inner * f + d
    total = shape["layers"] * block + norm + shape["vocab"] * d
    if not shape["tied"]:
        total += shape["vocab"] * d
    total += shape["context"] * d
    return total

# %% size | wrong | size-norm-gain-only | like size-rotary-table
#-     norm = 2 * d if shape["norm"] == "layer" else d
#+     norm = d
#-     total += shape["context"] * d
#+     if shape["positions"] == "learned":
#+         total += shape["context"] * d

# %% size | wrong | size-last-norm | like size-no-biases
#-     total = shape["layers"] * block + norm + shape["vocab"] * d
#+     if shape["biases"]:
#+         block += q + 2 * kv + d + inner * f + d
#+     total = shape["layers"] * block + shape["vocab"] * d

# %% size | wrong | size-one-norm | like size-no-biases
#-     block = 2 * d * (q + kv) + (inner + 1) * d * f + 2 * norm
#+     block = 2 * d * (q + kv) + (inner + 1) * d * f + norm
#+     if shape["biases"]:
#+         block += q + 2 * kv + d + inner * f + d

# %% size | wrong | size-output-bias | like size-rotary-table
#-     total += shape["context"] * d
#-     return total
#+     if shape["positions"] == "learned":
#+         total += shape["context"] * d
#+     return total + shape["vocab"] * shape["biases"]

# %% utilisation | right | rate of multiply-adds, NumPy floats
def utilisation(run):
    matrices = np.float64(run["parameters"]) - run["looked_up"]
    pairs = run["layers"] * run["heads"] * run["head_width"] * run["seq"]
    multiply_adds = matrices + 2 * pairs
    forward = 2 * multiply_adds * run["tokens_per_s"]
    peak = np.float64(run["chips"]) * run["peak_flops"]
    return [3 * forward / peak, (3 + run["forward_again"]) * forward / peak]

# %% utilisation | right | seconds a token on one chip at its peak
def utilisation(run):
    flops = 6 * (run["parameters"] - run["looked_up"])
    for _ in range(run["layers"]):
        for product in ("queries by keys", "weights by values"):
            flops += 3 * 2 * run["seq"] * run["heads"] * run["head_width"]
    ideal_s = flops / run["peak_flops"]
    actual_s = run["chips"] / run["tokens_per_s"]
    mfu = ideal_s / actual_s
    return mfu, mfu + mfu / 3 * run["forward_again"]

# %% utilisation | wrong | util-forward-only
def utilisation(run):
    scores = 12 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]
    flops = 2 * (run["parameters"] - run["looked_up"]) + scores / 3
    mfu = run["tokens_per_s"] * flops / (run["chips"] * run["peak_flops"])
    return mfu, mfu * (1 + run["forward_again"] / 3)

# %% utilisation | wrong | util-looked-up | like util-forward-only
#-     flops = 2 * (run["parameters"] - run["looked_up"]) + scores / 3
#+     flops = 6 * (run["parameters"]) + scores

# %% utilisation | wrong | util-no-scores | like util-forward-only
#-     flops = 2 * (run["parameters"] - run["looked_up"]) + scores / 3
#+     flops = 6 * (run["parameters"] - run["looked_up"])

# %% utilisation | wrong | util-scores-forward
def utilisation(run):
    scores = 4 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]
    flops = 6 * (run["parameters"] - run["looked_up"]) + scores
    mfu = run["tokens_per_s"] * flops / (run["chips"] * run["peak_flops"])
    return mfu, mfu * (1 + run["forward_again"] / 3)

# %% utilisation | wrong | util-causal-half | like util-scores-forward
#-     scores = 4 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]
#+     scores = 6 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]

# %% utilisation | wrong | util-sparse-peak
def utilisation(run):
    scores = 12 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]
    flops = 6 * (run["parameters"] - run["looked_up"]) + scores
    mfu = run["tokens_per_s"] * flops / (run["chips"] * run["sparse_peak_flops"])
    return mfu, mfu * (1 + run["forward_again"] / 3)

# %% utilisation | wrong | util-one-chip | like util-sparse-peak
#-     mfu = run["tokens_per_s"] * flops / (run["chips"] * run["sparse_peak_flops"])
#+     mfu = run["tokens_per_s"] * flops / run["peak_flops"]

# %% utilisation | wrong | util-again-in-mfu
def utilisation(run):
    scores = 12 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]
    flops = 6 * (run["parameters"] - run["looked_up"]) + scores
    mfu = run["tokens_per_s"] * flops / (run["chips"] * run["peak_flops"])
    mfu *= 1 + run["forward_again"] / 3
    return mfu, mfu  # mfu * (1 + run["forward_again"] / 3)

# %% utilisation | wrong | util-again-whole-step
def utilisation(run):
    scores = 12 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]
    flops = 6 * (run["parameters"] - run["looked_up"]) + scores
    mfu = run["tokens_per_s"] * flops / (run["chips"] * run["peak_flops"])
    return mfu, mfu * (1 + run["forward_again"] )

# %% utilisation | wrong | util-per-cent
def utilisation(run):
    scores = 12 * run["layers"] * run["heads"] * run["head_width"] * run["seq"]
    flops = 6 * (run["parameters"] - run["looked_up"]) + scores
    mfu = run["tokens_per_s"] * flops / (run["chips"] * run["peak_flops"])
    mfu *= 100
    return mfu, mfu * (1 + run["forward_again"] / 3)

# %% kept | right | shapes of all kept tensors
def kept_bytes(block, batch, seq, number_bytes, drop_scores):
    d, f, w = block["width"], block["mlp_width"], block["head_width"]
    row, head, kv, inner = (batch, seq, d), (batch, seq, block["heads"], w), (batch, seq, block["kv_heads"], w), (batch, seq, f)
    weights = (batch, block["heads"], seq, seq)
    numbers = [row, row, head, kv, kv, head, row, row, inner, inner] + [inner] * 2 * (block["mlp"] == "gated")
    masks = [row, row] if block["dropout"] else []
    if not drop_scores:
        numbers += [weights] * (2 if block["dropout"] else 1)
        masks += [weights] if block["dropout"] else []
    size = lambda shapes: sum(int(np.prod(s)) for s in shapes)
    return number_bytes * size(numbers) + size(masks)

# %% kept | right | bytes a token, NumPy integers
def kept_bytes(block, batch, seq, number_bytes, drop_scores):
    d, f, w = (np.int64(block[key]) for key in ("width", "mlp_width", "head_width"))
    a, g = block["heads"], block["kv_heads"]
    token = number_bytes * (4 * d + 2 * w * (a + g) + f * {"gelu": 2, "gated": 4}[block["mlp"]])
    if block["dropout"]:
        token += 2 * d
    if not drop_scores:
        token += a * seq * (1 + 2 * number_bytes if block["dropout"] else number_bytes)
    return token * batch * seq

# %% kept | wrong | kept-head-width
def kept_bytes(block, batch, seq, number_bytes, drop_scores):
    d, f, n, mask = block["width"], block["mlp_width"], number_bytes, 1
    q, kv = block["heads"] * block["head_width"], block["kv_heads"] * block["head_width"]
    inner = 4 if block["mlp"] == "gated" else 2
    token = n * (2 * d + d + q + 2 * kv + q + d + inner * f)
    weights = n
    if block["dropout"]:
        token += 2 * mask * d
        weights += mask + n
    if drop_scores:
        weights = 0
    return batch * seq * token + weights * batch * block["head_width"] * seq * seq

# %% kept | wrong | kept-scores-one-sequence | like kept-head-width
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * block["heads"] * seq * seq

# %% kept | wrong | kept-scores-one-head | like kept-head-width
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * seq * seq

# %% kept | wrong | kept-wide-masks | like kept-head-width
#-     d, f, n, mask = block["width"], block["mlp_width"], number_bytes, 1
#+     d, f, n, mask = block["width"], block["mlp_width"], number_bytes, number_bytes
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-narrow | like kept-head-width
#-     d, f, n, mask = block["width"], block["mlp_width"], number_bytes, 1
#+     d, f, n, mask = block["width"], block["mlp_width"], 2, 1
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-seq-width-swapped | like kept-head-width
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * d * d

# %% kept | wrong | kept-dropout-anyway
def kept_bytes(block, batch, seq, number_bytes, drop_scores):
    d, f, n, mask = block["width"], block["mlp_width"], number_bytes, 1
    q, kv = block["heads"] * block["head_width"], block["kv_heads"] * block["head_width"]
    inner = 4 if block["mlp"] == "gated" else 2
    token = n * (2 * d + d + q + 2 * kv + q + d + inner * f)
    weights = n
    token += 2 * mask * d
    weights += mask + n
    if drop_scores:
        weights = 0
    return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-no-masks | like kept-head-width
#-     d, f, n, mask = block["width"], block["mlp_width"], number_bytes, 1
#+     d, f, n, mask = block["width"], block["mlp_width"], number_bytes, 0
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-kv-as-heads | like kept-head-width
#-     q, kv = block["heads"] * block["head_width"], block["kv_heads"] * block["head_width"]
#+     q, kv = block["heads"] * block["head_width"], block["heads"] * block["head_width"]
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-two-inner | like kept-head-width
#-     inner = 4 if block["mlp"] == "gated" else 2
#+     inner = 2
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-inner-as-width | like kept-head-width
#-     token = n * (2 * d + d + q + 2 * kv + q + d + inner * f)
#+     token = n * (2 * d + d + q + 2 * kv + q + d + inner * d)
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-input-thrice | like kept-head-width
#-     token = n * (2 * d + d + q + 2 * kv + q + d + inner * f)
#+     token = n * (2 * d + 3 * d + q + 2 * kv + q + d + inner * f)
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-scores-anyway | like kept-head-width
#-     if drop_scores:
#-         weights = 0
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% kept | wrong | kept-drops-q-and-k | like kept-head-width
#-         weights = 0
#-     return batch * seq * token + weights * batch * block["head_width"] * seq * seq
#+         weights, token = 0, token - n * (q + kv)
#+     return batch * seq * token + weights * batch * block["heads"] * seq * seq

# %% cache | right | arrays that are never filled, and subtraction
def kv_cache(model, bits, tokens, free_bytes):
    shape = (2, model["layers"], model["kv_heads"], model["width"] // model["heads"])
    per_token = int(np.prod(shape)) * bits // 8
    fit, left = 0, free_bytes
    while left >= per_token * tokens:
        left -= per_token * tokens
        fit += 1
    return [per_token, fit]

# %% cache | right | NumPy floats, divmod
def kv_cache(model, bits, tokens, free_bytes):
    share = np.float64(model["kv_heads"]) / model["heads"]
    per_token = 2 * share * model["width"] * model["layers"] * bits / 8
    return per_token, np.floor_divide(free_bytes, per_token * tokens)

# %% cache | wrong | cache-keys-only
def kv_cache(model, bits, tokens, free_bytes):
    head_width = model["width"] // model["heads"]
    per_token = model["layers"] * model["kv_heads"] * head_width * bits / 8
    return per_token, int(free_bytes // (per_token * tokens))

# %% cache | wrong | cache-all-heads
def kv_cache(model, bits, tokens, free_bytes):
    head_width = model["width"] // model["heads"]
    per_token = 2 * model["layers"] * model["heads"] * head_width * bits / 8
    return per_token, int(free_bytes // (per_token * tokens))

# %% cache | wrong | cache-one-layer
def kv_cache(model, bits, tokens, free_bytes):
    head_width = model["width"] // model["heads"]
    per_token = 2 * model["kv_heads"] * head_width * bits / 8
    return per_token, int(free_bytes // (per_token * tokens))

# %% cache | wrong | cache-bits-as-bytes
def kv_cache(model, bits, tokens, free_bytes):
    head_width = model["width"] // model["heads"]
    per_token = 2 * model["layers"] * model["kv_heads"] * head_width * bits
    return per_token, int(free_bytes // (per_token * tokens))

# %% cache | wrong | cache-half-a-sequence
def kv_cache(model, bits, tokens, free_bytes):
    head_width = model["width"] // model["heads"]
    per_token = 2 * model["layers"] * model["kv_heads"] * head_width * bits / 8
    return per_token, free_bytes / (per_token * tokens)

# %% cache | wrong | cache-rounded-up
def kv_cache(model, bits, tokens, free_bytes):
    head_width = model["width"] // model["heads"]
    per_token = 2 * model["layers"] * model["kv_heads"] * head_width * bits / 8
    return per_token, -int(-free_bytes // (per_token * tokens))

# %% cache | wrong | cache-gib
def kv_cache(model, bits, tokens, free_bytes):
    head_width = model["width"] // model["heads"]
    per_token = 2 * model["layers"] * model["kv_heads"] * head_width * bits / 8
    return per_token, int(free_bytes / 1e9 * 2**30 // (per_token * tokens))
