"""Operators: + - * / ** @ and comparisons, each with its rule for gradients.

The gradient g that arrives has the shape of the output; g times a local derivative goes to
each input. An operator keeps only what its own rule reads: `+` keeps nothing, `*` keeps an
input only if the other one wants a gradient.
A constant (number, list, array) takes the float type of the tensor that it meets, so a float64
array of labels does not turn a float32 model into a float64 one. Two tensors of different
types give the wider one, as in NumPy.
Lessons: backpropagation.
"""

from __future__ import annotations

import numpy as np

from mlsys.autograd.engine import Leaf, claim


def operand(value, dtype: np.dtype):
    """(array or number, node) of an operand; the node of a constant is None."""
    if isinstance(value, Arithmetic):
        return value.data, value._node
    if type(value) is float or type(value) is int:  # np.float64 is a float too, but would widen
        return value, None
    return np.asarray(value, dtype), None


def int_power(x: np.ndarray, n: int) -> np.ndarray:
    """x**n for n >= 1 by multiplications: float32 `**3` is hundreds of times slower than x*x*x."""
    result = None
    while n:
        if n & 1:
            result = x if result is None else result * x
        n >>= 1
        if n:
            x = x * x
    return result


class Arithmetic:
    """The operators of a tensor."""

    __slots__ = ()
    __array_ufunc__ = None  # array * tensor asks the tensor instead of looping over its elements

    def __add__(self, other):
        """d(a + b) = da + db."""
        y, b = operand(other, self.data.dtype)
        return self._record("add", self.data + y, lambda g: (g, g), self._node, b)

    def __sub__(self, other):
        """d(a - b) = da - db."""
        y, b = operand(other, self.data.dtype)

        def vjp(g):
            return g, (None if b is None else -g)

        return self._record("sub", self.data - y, vjp, self._node, b)

    def __rsub__(self, other):
        y, _ = operand(other, self.data.dtype)
        return self._record("sub", y - self.data, lambda g: (-g,), self._node)

    def __neg__(self):
        return self._record("neg", -self.data, lambda g: (-g,), self._node)

    def __mul__(self, other):
        """d(ab) = b da + a db."""
        a = self._node
        x, (y, b) = self.data, operand(other, self.data.dtype)
        data = x * y
        if a is None:
            y = None
        if b is None:
            x = None

        def vjp(g):
            return (None if y is None else g * y), (None if x is None else g * x)

        return self._record("mul", data, vjp, a, b)

    def __truediv__(self, other):
        """q = a/b: da gets g/b, db gets -q g/b."""
        a = self._node
        y, b = operand(other, self.data.dtype)
        q = data = self.data / y
        if b is None:
            q = None

        def vjp(g):
            g = g / y
            return g, (None if q is None else -(g * q))

        return self._record("div", data, vjp, a, b)

    def __rtruediv__(self, other):
        y, _ = operand(other, self.data.dtype)
        x = self.data
        q = y / x
        return self._record("div", q, lambda g: (-(g / x) * q,), self._node)

    def __pow__(self, n: float):
        """d(x**n) = n x**(n-1) dx, for a constant n; small whole powers are products.

        >>> from mlsys.autograd import Tensor
        >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x ** 3).sum().backward()
        >>> x.grad
        array([ 3., 12., 27.], dtype=float32)
        """
        if not isinstance(n, (int, float, np.number)):
            raise TypeError(f"a tensor's exponent must be a number, not {type(n).__name__}")
        x, n = self.data, float(n)
        if n == 0.5:
            return self.sqrt()
        if n in range(9):
            n = int(n)
            low = int_power(x, n - 1) if n > 1 else np.ones_like(x)
            if n == 0:
                return self._record("pow", low, lambda g: (g * 0,), self._node)
            return self._record("pow", low * x, lambda g: (g * (low * n),), self._node)
        return self._record("pow", x**n, lambda g: (g * (n * x ** (n - 1)),), self._node)

    def __matmul__(self, other):
        """y = a @ b: da gets g @ b.T, db gets a.T @ g, each summed over repeated batch axes.

        (..., m, k) @ (..., k, n) -> (..., m, n); a vector counts as one row on the left and
        one column on the right.
        """
        return self._record("matmul", *_product(self.data, self._node, *operand(other, self.data.dtype)))

    def __rmatmul__(self, other):
        return self._record("matmul", *_product(*operand(other, self.data.dtype), self.data, self._node))

    __radd__ = __add__
    __rmul__ = __mul__

    # `x += y` makes a new tensor, which is fine for a computed x and a mistake for a parameter.

    def __iadd__(self, other):
        return self._computed("+=") + other

    def __isub__(self, other):
        return self._computed("-=") - other

    def __imul__(self, other):
        return self._computed("*=") * other

    def __itruediv__(self, other):
        return self._computed("/=") / other

    def _computed(self, operator: str):
        """Itself, unless it is a leaf that wants a gradient."""
        if type(self._node) is Leaf:
            name = self.name or "w"
            raise TypeError(
                f"{name} {operator} ... would put a computed tensor in the place of a leaf; "
                f"write {name}.data {operator} ... to change its numbers"
            )
        return self

    # Comparisons give plain boolean arrays: they have no gradient.

    def __lt__(self, other):
        return self.data < operand(other, self.data.dtype)[0]

    def __le__(self, other):
        return self.data <= operand(other, self.data.dtype)[0]

    def __gt__(self, other):
        return self.data > operand(other, self.data.dtype)[0]

    def __ge__(self, other):
        return self.data >= operand(other, self.data.dtype)[0]

    def __eq__(self, other):
        return self.data == operand(other, self.data.dtype)[0]

    def __ne__(self, other):
        return self.data != operand(other, self.data.dtype)[0]

    __hash__ = object.__hash__  # two tensors are the same key only if they are the same object


def _product(x: np.ndarray, a, y: np.ndarray, b):
    """(x @ y, its vjp, the two nodes)."""
    data = _matmul(x, y)
    row, column = x.ndim == 1, y.ndim == 1
    if a is None:
        y = None
    if b is None:
        x = None

    def vjp(g):
        dx = dy = None
        if column:
            g = g[..., None]
        if row:
            g = g[..., None, :]
        if y is not None:
            dx = _matmul(g, y[None] if column else y.swapaxes(-1, -2))
            dx = dx[..., 0, :] if row else dx
        if x is not None:
            dy = _transposed_matmul(x[None] if row else x, g, b)
            dy = dy[..., 0] if column else dy
        return dx, dy

    return data, vjp, a, b


def _matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x @ y, where a matrix on the right meets all batches of the left in one product.

    For small matrices `dot` starts in half the time of `@`.
    """
    if y.ndim != 2 or x.ndim < 2:
        return x @ y
    if x.ndim == 2:
        return x.dot(y)
    return x.reshape(-1, x.shape[-1]).dot(y).reshape(*x.shape[:-1], y.shape[-1])


def _transposed_matmul(x: np.ndarray, g: np.ndarray, node) -> np.ndarray:
    """x.T @ g; for a matrix that met many batches, one product sums over the batches too."""
    if len(node.shape) != 2:
        return x.swapaxes(-1, -2) @ g
    rows, g = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    return rows.T.dot(g, claim(node, np.result_type(rows, g)))
