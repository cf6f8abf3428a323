"""What the forward pass keeps for the backward pass, and how to keep less.

The arrays that an operation's backward rule reads are kept from the forward pass until that
rule has run. They are what limits the batch size in training: a network of n layers keeps n
activations, one that only predicts keeps one. Checkpointing keeps a block's input alone and
computes the block again on the way back: less memory for one more forward of the block.

Counted are the arrays that the rules captured, each buffer once however many rules share it.
Parameters (leaves that want a gradient) are left out: they stay anyway. The input batch is
counted. Not counted, so that the true peak is higher: gradients on their way, temporary
arrays inside an operation, and Python objects (some 500 bytes a node).
Lessons: backpropagation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlsys.autograd.engine import Leaf, Node, next_number, walk_back
from mlsys.autograd.tensor import Tensor


@dataclass(frozen=True)
class NodeRecord:
    """One node of the graph, for reading.

    op: name of the operation, or "leaf"; shape: of the output; inputs: indices of the records
    of its inputs (constants have none); saved_bytes: bytes that this node is the first to keep,
    so that a prefix sum is the memory held after that many operations; name: of a leaf.
    """

    op: str
    shape: tuple[int, ...]
    inputs: tuple[int, ...]
    saved_bytes: int
    name: str | None = None


def graph(loss: Tensor) -> list[NodeRecord]:
    """The graph behind `loss` in a topological order: leaves, then operations as they were made.

    >>> w = Tensor([1.0, 2.0], requires_grad=True, name="w")
    >>> for record in graph((w * w).sum()):
    ...     print(record.op, record.shape, record.inputs, record.saved_bytes)
    leaf (2,) () 0
    mul (2,) (0, 0) 0
    sum () (1,) 0
    """
    nodes = _nodes(loss)
    index = {node: i for i, node in enumerate(nodes)}
    counted = {id(buffer) for buffer in _parameter_buffers(nodes)}
    records = []
    for node in nodes:
        if type(node) is Leaf:
            owner = node.owner()
            records.append(NodeRecord("leaf", node.shape, (), 0, None if owner is None else owner.name))
        else:
            inputs = tuple(index[i] for i in node.inputs if i is not None)
            records.append(NodeRecord(node.op, node.shape, inputs, _new_bytes(node, counted)))
    return records


def saved_bytes(loss: Tensor) -> int:
    """Bytes that are kept until `loss.backward()`; see the top of this file for what counts.

    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> saved_bytes((x + 1.0).sum()), saved_bytes((x + 1.0).exp().sum())
    (0, 12)
    """
    return sum(record.saved_bytes for record in graph(loss))


def _nodes(loss: Tensor) -> list[Node | Leaf]:
    """All nodes that `loss` depends on, leaves first, then in order of creation."""
    found, stack = {}, [loss._node]
    while stack:
        node = stack.pop()
        if node is None or node in found:
            continue
        found[node] = node.number if type(node) is Node else 0
        if type(node) is Node:
            if node.vjp is None:
                raise RuntimeError(f"the graph was already walked: what {node.op!r} had saved is freed")
            stack.extend(reversed(node.inputs))
    return sorted(found, key=found.get)


def _buffer(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _parameter_buffers(nodes) -> list[np.ndarray]:
    owners = (node.owner() for node in nodes if type(node) is Leaf)
    return [_buffer(owner.data) for owner in owners if owner is not None]


def _new_bytes(node: Node, counted: set[int]) -> int:
    """Bytes of the buffers that `node` keeps and nobody before it; they join `counted`."""
    total = 0
    for array in _captured(node.vjp):
        buffer = _buffer(array)
        if id(buffer) not in counted:
            counted.add(id(buffer))
            total += buffer.nbytes
    return total


def _captured(vjp) -> list[np.ndarray]:
    """The arrays in a function's closure: the variables of the enclosing function that it reads."""
    values = []
    for cell in vjp.__closure__ or ():
        value = cell.cell_contents
        values.extend(value if isinstance(value, (list, tuple)) else [value])
    arrays = (v.data if isinstance(v, Tensor) else v for v in values)
    return [a for a in arrays if isinstance(a, np.ndarray)]


def checkpoint(fn, *inputs) -> Tensor:
    """fn(*inputs), keeping the inputs only; the backward pass computes fn again.

    inputs: tensors, and anything else that fn takes; fn gives a tensor. Every computed tensor that
    fn uses has to be among its inputs (parameters need not be), and it has to give the same result
    twice: draw dropout masks outside. Gradients are those of fn(*inputs) itself.

    >>> x = Tensor([1.0, 2.0], requires_grad=True)
    >>> block = lambda x: (x.exp().tanh() * x).exp()
    >>> saved_bytes(block(x * 1.0)), saved_bytes(checkpoint(block, x * 1.0))
    (32, 8)
    """
    nodes = tuple(x._node if isinstance(x, Tensor) else None for x in inputs)
    kept = [x.detach() if isinstance(x, Tensor) else x for x in inputs]

    def vjp(g):
        leaves, again = _rerun(fn, kept, nodes)
        walk_back(again._node, g)  # parameters inside fn get their gradients here
        return [x.grad if isinstance(x, Tensor) else None for x in leaves]

    start = next_number()
    leaves, out = _rerun(fn, kept, nodes)  # for the result: the graph is dropped on return
    own = {x._node for x in leaves if isinstance(x, Tensor)}
    parameters = []
    for node in _nodes(out):
        if type(node) is Node and node.number < start:
            raise ValueError(
                f"checkpoint: the function uses a computed tensor (the output of {node.op!r}) "
                "that is not among its inputs; pass it as an input"
            )
        if type(node) is Leaf and node not in own:
            parameters.append(node)
    return Tensor._record("checkpoint", out.data, vjp, *nodes, *parameters)


def _rerun(fn, kept: list, nodes: tuple) -> tuple[list, Tensor]:
    """(new leaves, fn of them): a graph of its own."""
    leaves = [
        Tensor(x.data, requires_grad=node is not None) if isinstance(x, Tensor) else x
        for x, node in zip(kept, nodes, strict=True)
    ]
    return leaves, fn(*leaves)
