"""The tensor: an array, its gradient, and a link to the operation that made it.

    >>> w = Tensor([[2.0, -1.0]], requires_grad=True, name="w")
    >>> x = Tensor([[3.0], [4.0]])
    >>> loss = (w @ x - 1.0) ** 2
    >>> loss.backward()
    >>> loss.item(), w.grad
    (1.0, array([[6., 8.]], dtype=float32))

The link (`_node`) is a `Leaf` for a tensor that was made by hand and wants a gradient, a `Node`
for one that was computed from such tensors, and None for a constant. A tensor does not hold its
inputs: an activation lives as long as you, or some operation's backward rule, need it.

Types: numbers, lists and integer arrays become float32; float arrays keep their type. An array
is kept, not copied, as `np.asarray` does.
Left out: devices, higher derivatives, in-place operations.
Lessons: backpropagation, optimizers.
"""

from __future__ import annotations

import numpy as np

from mlsys.autograd.arithmetic import Arithmetic
from mlsys.autograd.elementwise import Elementwise
from mlsys.autograd.engine import Leaf, Node, mode, next_number, ones, walk_back
from mlsys.autograd.reductions import Reductions
from mlsys.autograd.shapes import Shapes

_new = object.__new__


class Tensor(Arithmetic, Elementwise, Reductions, Shapes):
    """An array that can be differentiated.

    data: numbers, lists or an array; requires_grad: backward() shall fill `grad`;
    name: shown by `repr` and `graph`.
    """

    __slots__ = ("data", "name", "_node", "__weakref__")

    def __init__(self, data, requires_grad: bool = False, name: str | None = None):
        if isinstance(data, Tensor):
            raise TypeError("the data is a Tensor already; use its .data to make a new leaf")
        if not isinstance(data, np.ndarray) or data.dtype.kind != "f":
            data = np.asarray(data, np.float32)
        self.data = data
        self.name = name
        self._node = Leaf(self) if requires_grad else None

    @staticmethod
    def _record(op: str, data: np.ndarray, vjp, *inputs) -> Tensor:
        """The output of an operation.

        vjp: maps the gradient of the output to one gradient for each input (anything for an
        input that is a constant); inputs: the `_node` of each input.
        """
        out = _new(Tensor)
        out.data = data if type(data) is np.ndarray else np.asarray(data)
        out.name = out._node = None
        if any(inputs) and mode.recording:
            out._node = node = _new(Node)  # a constructor call would cost half as much again
            node.number = next_number()
            node.op = op
            node.vjp = vjp
            node.inputs = inputs
            node.shape = out.data.shape
            node.grad = None
        return out

    def backward(self, grad=None) -> None:
        """Add d(self)/d(leaf) to the `grad` of every leaf that this tensor depends on.

        grad: gradient of some later loss with respect to this tensor, in its shape; may be left
        out for a single number. Frees the graph: one backward for each forward.
        """
        if self._node is None:
            raise RuntimeError("backward() on a tensor that depends on no tensor with requires_grad=True")
        if grad is None:
            if self.data.size != 1:
                raise ValueError(f"backward() of a tensor of shape {self.shape} needs a gradient of that shape")
            grad = ones(1, self.data.dtype).reshape(self.data.shape)
        else:
            grad = np.array(grad.data if isinstance(grad, Tensor) else grad, self.data.dtype)
            if grad.shape != self.data.shape:
                raise ValueError(f"gradient of shape {grad.shape} for a tensor of shape {self.shape}")
        walk_back(self._node, grad)

    @property
    def grad(self) -> np.ndarray | None:
        """The gradient of a leaf, summed over all backward() calls since `zero_grad`; else None.

        After an optimizer was made for it, this is a part of the optimizer's flat array: the
        next step's gradient is written over it. Copy it to keep it.
        """
        return self._node.grad if type(self._node) is Leaf else None

    @grad.setter
    def grad(self, value: np.ndarray | None) -> None:
        if type(self._node) is not Leaf:
            raise ValueError("only a leaf with requires_grad=True has a gradient")
        self._node.grad = None if value is None else np.asarray(value, self.data.dtype)

    def zero_grad(self) -> None:
        """Forget the gradient (None, not zeros: the next one is stored, not added)."""
        if type(self._node) is Leaf:
            self._node.grad = None

    @property
    def requires_grad(self) -> bool:
        """Whether backward() passes through here. Set it to False to freeze a leaf."""
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if type(self._node) is Node:
            raise ValueError("requires_grad of a computed tensor follows from its inputs")
        if value != self.requires_grad:
            self._node = Leaf(self) if value else None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def size(self) -> int:
        return self.data.size

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    def item(self) -> float:
        """The only element, as a Python number."""
        return self.data.item()

    def numpy(self) -> np.ndarray:
        """The array itself, not a copy; its use leaves no trace in the graph."""
        return self.data

    def detach(self) -> Tensor:
        """The same array without its history: a constant."""
        return Tensor(self.data)

    def __float__(self) -> float:
        return float(self.data.item())

    def __bool__(self) -> bool:
        return bool(self.data)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if self.requires_grad:
            raise TypeError("NumPy would compute outside the graph; write .data if that is what you want")
        return np.array(self.data, dtype, copy=copy)

    def __repr__(self) -> str:
        name = f", name={self.name!r}" if self.name else ""
        made = f", op={self._node.op!r}" if type(self._node) is Node else ", requires_grad=True" * self.requires_grad
        return f"Tensor({np.array2string(self.data, separator=', ', prefix='Tensor(')}{made}{name})"

    def __reduce__(self):
        return type(self), (self.data, self.requires_grad, self.name)  # copies and pickles leave the graph
