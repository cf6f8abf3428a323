# Alternatives and mistakes for lesson 1.2; see CONTRIBUTING.md for the form of the headers.

# %% engine | right | a linear system for the adjoints, NumPy scalars
def gradients(graph, values, output):
    value = {name: np.float64(number) for name, number in values.items()}
    while len(value) < len(values) + len(graph):
        for name, (op, *inputs) in graph.items():
            if name not in value and all(i in value for i in inputs):
                value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
    names = list(value)
    slope = np.zeros((len(names), len(names)))  # slope[i, j]: of node j toward value i
    for name, (op, *inputs) in graph.items():
        partial = {"add": lambda a, b: (1, 1), "mul": lambda a, b: (b, a),
                   "exp": lambda a: (np.exp(a),), "tanh": lambda a: (1 / np.cosh(a) ** 2,)}[op](*(value[i] for i in inputs))
        for i, p in zip(inputs, partial):
            slope[names.index(i), names.index(name)] += p
    seed = np.array([name == output for name in names], float)
    adjoint = np.linalg.solve(np.eye(len(names)) - slope, seed)
    return {name: adjoint[names.index(name)] for name in values}

# %% engine | right | count the users that lead to the output, then a queue
def gradients(graph, values, output):
    used, stack = {output}, [output]
    while stack:
        for i in graph.get(stack.pop(), ("", ))[1:]:
            if i not in used:
                used.add(i)
                stack.append(i)
    waiting = {name: 0 for name in used}
    for name in used & graph.keys():
        for i in graph[name][1:]:
            waiting[i] += 1
    walk, queue, left = [], [output], dict(waiting)
    while queue:
        name = queue.pop()
        walk.append(name)
        for i in graph.get(name, ("", ))[1:]:
            left[i] -= 1
            if left[i] == 0:
                queue.append(i)
    value = dict(values)
    for name in reversed(walk):
        if name in graph:
            op, *inputs = graph[name]
            a, b = value[inputs[0]], value[inputs[-1]]
            value[name] = a + b if op == "add" else a * b if op == "mul" else np.exp(a) if op == "exp" else np.tanh(a)
    adjoint = {name: 0.0 for name in (*values, *used)}
    adjoint[output] = 1.0
    for name in walk:
        if name not in graph:
            continue
        op, *inputs = graph[name]
        d = adjoint[name]
        if op == "add":
            adjoint[inputs[0]] += d
            adjoint[inputs[1]] += d
        elif op == "mul":
            adjoint[inputs[0]] += d * value[inputs[1]]
            adjoint[inputs[1]] += d * value[inputs[0]]
        else:
            adjoint[inputs[0]] += d * (value[name] if op == "exp" else 1 - value[name] ** 2)
    return {name: adjoint[name] for name in values}

# %% engine | wrong | engine-overwrites
def gradients(graph, values, output):
    order, value = forward(graph, values, output)
    adjoint = dict.fromkeys(value, 0.0)
    adjoint[output] = 1.0
    for name in reversed(order):
        for i, slope in zip(graph[name][1:], slopes_of(graph[name], name, value)):
            adjoint[i] = adjoint[name] * slope
    return {name: adjoint[name] for name in values}

def forward(graph, values, output):
    order, value = [], dict(values)

    def visit(name):
        if name not in value:
            op, *inputs = graph[name]
            for i in inputs:
                visit(i)
            value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
            order.append(name)

    visit(output)
    for name in values:
        value.setdefault(name, values[name])
    return order, value

def slopes_of(node, name, value):
    op, *inputs = node
    numbers = [value[i] for i in inputs]
    return {"add": [1.0, 1.0], "mul": numbers[::-1], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]

# %% engine | wrong | engine-sends-early
def gradients(graph, values, output):
    order, value = forward(graph, values, output)
    adjoint, seen = dict.fromkeys(value, 0.0), set()
    adjoint[output] = 1.0

    def send(name):
        if name in graph and name not in seen:
            seen.add(name)
            for i, slope in zip(graph[name][1:], slopes_of(graph[name], name, value)):
                adjoint[i] += adjoint[name] * slope
            for i in graph[name][1:]:
                send(i)

    send(output)
    return {name: adjoint[name] for name in values}

def forward(graph, values, output):
    order, value = [], dict(values)

    def visit(name):
        if name not in value:
            op, *inputs = graph[name]
            for i in inputs:
                visit(i)
            value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
            order.append(name)

    visit(output)
    return order, value

def slopes_of(node, name, value):
    op, *inputs = node
    numbers = [value[i] for i in inputs]
    return {"add": [1.0, 1.0], "mul": numbers[::-1], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]

# %% engine | wrong | engine-sends-twice
def gradients(graph, values, output):
    order, value = forward(graph, values, output)
    adjoint = dict.fromkeys(value, 0.0)

    def receive(name, arrived):
        adjoint[name] += arrived
        if name in graph:
            for i, slope in zip(graph[name][1:], slopes_of(graph[name], name, value)):
                receive(i, adjoint[name] * slope)

    receive(output, 1.0)
    return {name: adjoint[name] for name in values}

def forward(graph, values, output):
    order, value = [], dict(values)

    def visit(name):
        if name not in value:
            op, *inputs = graph[name]
            for i in inputs:
                visit(i)
            value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
            order.append(name)

    visit(output)
    return order, value

def slopes_of(node, name, value):
    op, *inputs = node
    numbers = [value[i] for i in inputs]
    return {"add": [1.0, 1.0], "mul": numbers[::-1], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]

# %% engine | wrong | engine-own-factor
def gradients(graph, values, output):
    order, value = forward(graph, values, output)
    adjoint = dict.fromkeys(value, 0.0)
    adjoint[output] = 1.0
    for name in reversed(order):
        op, *inputs = graph[name]
        slopes = {"add": [1.0, 1.0], "mul": [value[i] for i in inputs], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]
        for i, slope in zip(inputs, slopes):
            adjoint[i] += adjoint[name] * slope
    return {name: adjoint[name] for name in values}

def forward(graph, values, output):
    order, value = [], dict(values)

    def visit(name):
        if name not in value:
            op, *inputs = graph[name]
            for i in inputs:
                visit(i)
            value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
            order.append(name)

    visit(output)
    return order, value

# %% engine | wrong | engine-operand-once | like engine-overwrites
#-         for i, slope in zip(graph[name][1:], slopes_of(graph[name], name, value)):
#-             adjoint[i] = adjoint[name] * slope
#+         for i, slope in dict(zip(graph[name][1:], slopes_of(graph[name], name, value))).items():
#+             adjoint[i] += adjoint[name] * slope
#-     visit(output)
#-     for name in values:
#-         value.setdefault(name, values[name])
#+     visit(output)

# %% engine | wrong | engine-trusts-the-order
def gradients(graph, values, output):
    value = dict(values)
    for name, (op, *inputs) in graph.items():
        numbers = [value[i] for i in inputs]
        value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*numbers)
    adjoint = dict.fromkeys(value, 0.0)
    adjoint[output] = 1.0
    for name, (op, *inputs) in reversed(graph.items()):
        numbers = [value[i] for i in inputs]
        slopes = {"add": [1.0, 1.0], "mul": numbers[::-1], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]
        for i, slope in zip(inputs, slopes):
            adjoint[i] += adjoint[name] * slope
    return {name: adjoint[name] for name in values}

# %% engine | wrong | engine-waits-for-the-dead
def gradients(graph, values, output):
    value = dict(values)
    while len(value) < len(values) + len(graph):
        for name, (op, *inputs) in graph.items():
            if name not in value and all(i in value for i in inputs):
                value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
    waiting = dict.fromkeys(value, 0)
    for _, *inputs in graph.values():
        for i in inputs:
            waiting[i] += 1
    adjoint, ready = dict.fromkeys(value, 0.0), [output]
    adjoint[output] = 1.0
    while ready:
        name = ready.pop()
        if name not in graph:
            continue
        op, *inputs = graph[name]
        numbers = [value[i] for i in inputs]
        slopes = {"add": [1.0, 1.0], "mul": numbers[::-1], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]
        for i, slope in zip(inputs, slopes):
            adjoint[i] += adjoint[name] * slope
            waiting[i] -= 1
            if waiting[i] == 0:
                ready.append(i)
    return {name: adjoint[name] for name in values}

# %% engine | wrong | engine-remembers
def gradients(graph, values, output, adjoint={}):
    order, value = forward(graph, values, output)
    adjoint[output] = 1.0
    for name in reversed(order):
        for i, slope in zip(graph[name][1:], slopes_of(graph[name], name, value)):
            adjoint[i] = adjoint.get(i, 0.0) + adjoint[name] * slope
    return {name: adjoint.get(name, 0.0) for name in values}

def forward(graph, values, output):
    order, value = [], dict(values)

    def visit(name):
        if name not in value:
            op, *inputs = graph[name]
            for i in inputs:
                visit(i)
            value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
            order.append(name)

    visit(output)
    return order, value

def slopes_of(node, name, value):
    op, *inputs = node
    numbers = [value[i] for i in inputs]
    return {"add": [1.0, 1.0], "mul": numbers[::-1], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]

# %% engine | wrong | engine-slope-at-the-input | like engine-own-factor
#-         slopes = {"add": [1.0, 1.0], "mul": [value[i] for i in inputs], "exp": [value[name]], "tanh": [1 - value[name] ** 2]}[op]
#+         numbers = [value[i] for i in inputs]
#+         slopes = {"add": [1.0, 1.0], "mul": numbers[::-1], "exp": [numbers[0]], "tanh": [1 - numbers[0] ** 2]}[op]

# %% engine | wrong | engine-nudges
def gradients(graph, values, output):
    def run(values):
        value = dict(values)
        while output not in value:
            for name, (op, *inputs) in graph.items():
                if name not in value and all(i in value for i in inputs):
                    value[name] = {"add": np.add, "mul": np.multiply, "exp": np.exp, "tanh": np.tanh}[op](*(value[i] for i in inputs))
        return value[output]

    h = 1e-5
    return {name: (run({**values, name: at + h}) - run({**values, name: at - h})) / (2 * h) for name, at in values.items()}

# %% rules | right | Jacobians in full, one-hot matrices, NumPy loops
def cross_entropy_vjp(logits, labels):
    rows, classes = logits.shape
    out = []
    for z, label in zip(logits, labels):
        p = np.exp(z - np.logaddexp.reduce(z))
        toward_p = np.zeros(classes)
        jacobian = np.diag(p) - np.outer(p, p)
        toward_p[label] = -1.0
        out.append(jacobian[label] * toward_p[label] / p[label] if p[label] > 0 else p - np.eye(classes)[label])
    return (np.array(out) / rows).tolist()

def rms_norm_vjp(x, gain, dy, eps):
    dx, width = np.empty_like(x), x.shape[1]
    for row in range(len(x)):
        rms = np.sqrt(np.mean(x[row] ** 2) + eps)
        jacobian = np.eye(width) / rms - np.outer(x[row], x[row]) / (width * rms**3)
        dx[row] = (gain * dy[row]) @ jacobian
    return [dx, np.einsum("rw,rw,r->w", dy, x, 1 / np.sqrt(np.mean(x**2, axis=1) + eps))]

def matmul_vjp(a, b, dy):
    if b.ndim == 2:
        return np.einsum("bmn,kn->bmk", dy, b), np.einsum("bmk,bmn->kn", a, dy)
    return np.einsum("bmn,bkn->bmk", dy, b), np.einsum("bmk,bmn->bkn", a, dy)

def gather_vjp(ids, dy, rows):
    one_hot = np.eye(rows)[np.reshape(ids, -1)]
    return one_hot.T @ np.reshape(dy, (-1, np.shape(dy)[-1]))

# %% rules | right | through logarithms, normalised rows, and a sort
def cross_entropy_vjp(logits, labels):
    log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    return np.where(np.arange(logits.shape[1]) == labels[:, None], np.expm1(log_p), np.exp(log_p)) / np.float64(logits.shape[0])

def rms_norm_vjp(x, gain, dy, eps):
    rms = np.sqrt(np.square(x).mean(-1, keepdims=True) + eps)
    hat = x / rms
    dgain = np.sum(dy * hat, 0)
    dhat = dy * gain
    drms = -(dhat * hat).sum(-1, keepdims=True) / rms
    return dhat / rms + drms * x / (x.shape[-1] * rms), dgain

def matmul_vjp(a, b, dy):
    batch = len(a)
    da = np.stack([dy[i] @ (b if b.ndim == 2 else b[i]).T for i in range(batch)])
    parts = [a[i].T @ dy[i] for i in range(batch)]
    return da, sum(parts) if b.ndim == 2 else np.stack(parts)

def gather_vjp(ids, dy, rows):
    flat, d = ids.ravel(), dy.reshape(ids.size, -1)
    return np.stack([d[flat == row].sum(axis=0) for row in range(rows)])

# %% rules | wrong | rule-mean-forgotten
def cross_entropy_vjp(logits, labels):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    d = e / e.sum(axis=1, keepdims=True)
    d[np.arange(len(labels)), labels] -= 1
    return d

def rms_norm_vjp(x, gain, dy, eps):
    raise NotImplementedError

def matmul_vjp(a, b, dy):
    raise NotImplementedError

def gather_vjp(ids, dy, rows):
    raise NotImplementedError

# %% rules | wrong | rule-mean-over-entries | like rule-mean-forgotten
#-     return d
#+     return d / d.size

# %% rules | wrong | rule-softmax-sign | like rule-mean-forgotten
#-     d = e / e.sum(axis=1, keepdims=True)
#-     d[np.arange(len(labels)), labels] -= 1
#-     return d
#+     d = -e / e.sum(axis=1, keepdims=True)
#+     d[np.arange(len(labels)), labels] += 1
#+     return d / len(labels)

# %% rules | wrong | rule-softmax-skipped
def cross_entropy_vjp(logits, labels):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    d = np.zeros_like(p)
    row = np.arange(len(labels))
    with np.errstate(divide="ignore"):
        d[row, labels] = -1 / p[row, labels]
    return d / len(labels)

def rms_norm_vjp(x, gain, dy, eps):
    raise NotImplementedError

def matmul_vjp(a, b, dy):
    raise NotImplementedError

def gather_vjp(ids, dy, rows):
    raise NotImplementedError

# %% rules | wrong | rule-softmax-overflows
def cross_entropy_vjp(logits, labels):
    with np.errstate(all="ignore"):
        e = np.exp(logits)
        d = e / e.sum(axis=1, keepdims=True)
    d[np.arange(len(labels)), labels] -= 1
    return d / len(labels)

def rms_norm_vjp(x, gain, dy, eps):
    raise NotImplementedError

def matmul_vjp(a, b, dy):
    raise NotImplementedError

def gather_vjp(ids, dy, rows):
    raise NotImplementedError

# %% rules | wrong | rule-rms-constant
def cross_entropy_vjp(logits, labels):
    raise NotImplementedError

def rms_norm_vjp(x, gain, dy, eps):
    r = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps)
    return r * dy * gain, (dy * x * r).sum(axis=0)

def matmul_vjp(a, b, dy):
    raise NotImplementedError

def gather_vjp(ids, dy, rows):
    raise NotImplementedError

# %% rules | wrong | rule-gain-left-out | like rule-rms-constant
#-     return r * dy * gain, (dy * x * r).sum(axis=0)
#+     return r * dy - r**3 * x * (dy * x).mean(axis=1, keepdims=True), (dy * x * r).sum(axis=0)

# %% rules | wrong | rule-gain-per-row | like rule-rms-constant
#-     return r * dy * gain, (dy * x * r).sum(axis=0)
#+     g = dy * gain
#+     return r * g - r**3 * x * (g * x).mean(axis=1, keepdims=True), dy * x * r

# %% rules | wrong | rule-operand-not-transposed
def cross_entropy_vjp(logits, labels):
    raise NotImplementedError

def rms_norm_vjp(x, gain, dy, eps):
    raise NotImplementedError

def matmul_vjp(a, b, dy):
    db = a @ dy
    return dy @ b, db if b.ndim == 3 else db.sum(axis=0)

def gather_vjp(ids, dy, rows):
    raise NotImplementedError

# %% rules | wrong | rule-all-axes-reversed | like rule-operand-not-transposed
#-     db = a @ dy
#-     return dy @ b, db if b.ndim == 3 else db.sum(axis=0)
#+     db = a.T @ dy
#+     return dy @ b.T, db if b.ndim == 3 else db.sum(axis=0)

# %% rules | wrong | rule-shared-not-summed | like rule-operand-not-transposed
#-     db = a @ dy
#-     return dy @ b, db if b.ndim == 3 else db.sum(axis=0)
#+     return dy @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ dy

# %% rules | wrong | rule-gather-overwrites
def cross_entropy_vjp(logits, labels):
    raise NotImplementedError

def rms_norm_vjp(x, gain, dy, eps):
    raise NotImplementedError

def matmul_vjp(a, b, dy):
    raise NotImplementedError

def gather_vjp(ids, dy, rows):
    table = np.zeros((rows, dy.shape[-1]))
    table[ids] += dy
    return table

# %% rules | wrong | rule-gather-short-table | like rule-gather-overwrites
#-     table = np.zeros((rows, dy.shape[-1]))
#-     table[ids] += dy
#+     table = np.zeros((ids.max() + 1, dy.shape[-1]))
#+     np.add.at(table, ids, dy)

# %% rules | wrong | rule-gather-mean | like rule-gather-overwrites
#-     table[ids] += dy
#-     return table
#+     np.add.at(table, ids, dy)
#+     return table / np.maximum(np.bincount(ids.ravel(), minlength=rows), 1)[:, None]

# %% step-cost | right | a list of products by shape, NumPy integers
def step_flops(widths, batch, recompute):
    pairs = np.stack([widths[:-1], widths[1:]], axis=1).astype(np.int64)
    forward = [(batch, i, o) for i, o in pairs]
    backward = [(i, batch, o) for i, o in pairs] + [(batch, o, i) for i, o in pairs[1:]]
    cost = [np.int64(sum(2 * m * k * n for m, k, n in products)) for products in (forward, backward)]
    return [*cost, (1 + int(recompute)) * cost[0] + cost[1]]

# %% step-cost | wrong | step-first-dx-counted
def step_flops(widths, batch, recompute):
    forward = sum(2 * batch * i * o for i, o in zip(widths, widths[1:]))
    return forward, 2 * forward, 3 * forward + (forward if recompute else 0)

# %% step-cost | wrong | step-last-dx-dropped
def step_flops(widths, batch, recompute):
    forward = sum(2 * batch * i * o for i, o in zip(widths, widths[1:]))
    backward = 2 * forward - 2 * batch * widths[-2] * widths[-1]
    return forward, backward, forward + backward + (forward if recompute else 0)

# %% step-cost | wrong | step-without-the-two
def step_flops(widths, batch, recompute):
    forward = sum(batch * i * o for i, o in zip(widths, widths[1:]))
    backward = 2 * forward - batch * widths[0] * widths[1]
    return forward, backward, forward + backward + (forward if recompute else 0)

# %% step-cost | wrong | step-backward-as-forward
def step_flops(widths, batch, recompute):
    forward = sum(2 * batch * i * o for i, o in zip(widths, widths[1:]))
    return forward, forward, 2 * forward + (forward if recompute else 0)

# %% step-cost | wrong | step-per-example
def step_flops(widths, batch, recompute):
    forward = sum(2 * i * o for i, o in zip(widths, widths[1:]))
    backward = 2 * forward - 2 * widths[0] * widths[1]
    return forward, backward, forward + backward + (forward if recompute else 0)

# %% step-cost | wrong | step-recomputed-whole
def step_flops(widths, batch, recompute):
    forward = sum(2 * batch * i * o for i, o in zip(widths, widths[1:]))
    backward = 2 * forward - 2 * batch * widths[0] * widths[1]
    return forward, backward, (forward + backward) * (2 if recompute else 1)
