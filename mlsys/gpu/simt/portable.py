"""A kernel as plain data, and back: how a kernel that somebody else wrote runs here without being trusted.

`portable` takes a kernel apart into its text and the numbers it uses from outside; `from_portable` reads such a
text, allows nothing in it but the kernel language, and gives a kernel that runs on this side's simulator. A check
runs a student's kernel in this way: the traffic, races and results that it sees are its own.
Left out: arrays from outside (a kernel takes these as arguments anyway) and names of other modules.
Lessons: CUDA programming model.
"""

from __future__ import annotations

import ast
import linecache
from types import ModuleType

import numpy as np

from mlsys.gpu.simt import language
from mlsys.gpu.simt.errors import KernelSyntaxError
from mlsys.gpu.simt.language import CALLS, Index, Word
from mlsys.gpu.simt.launch import Device, Function, Kernel
from mlsys.gpu.simt.rewrite import is_stub, text_of

MAX_TEXT, MAX_DEVICES, MAX_INT = 20_000, 20, 2**63
TYPES = (np.bool_, np.float16, np.float32, np.float64, np.int8, np.int32, np.int64, np.uint8, np.uint32)
MATHS = {("math." if getattr(f, "__module__", "") == "math" else "") + f.__name__: f for f in CALLS}
WORDS = {  # everything that a kernel may name, by one name each
    **{name: word for name, word in vars(language).items() if isinstance(word, Word | Index)},
    **MATHS, **{f"np.{t.__name__}": t for t in TYPES}, "len": len, "range": range,
}  # fmt: skip
NAMES = {id(thing): name for name, thing in WORDS.items()}
FIELDS = {"name": str, "text": str, "line": int, "numbers": dict, "words": dict, "devices": dict}
ATTRIBUTES = {"x", "y", "z", "shape", "size", "dtype"}
REFUSED = "a kernel that is handed in uses its parameters, numbers, words of the kernel language and device functions only"


def portable(function: Function) -> dict:
    """Text, outside numbers, outside words and device functions of a kernel, as plain data.

    Raises TypeError if the kernel uses anything else from outside, NotImplementedError if it is not written yet.

    >>> from mlsys.gpu.simt import kernel, thread_idx
    >>> K = 3
    >>> @kernel
    ... def scale(a):
    ...     a[thread_idx.x] *= K
    >>> taken = portable(scale)
    >>> taken["numbers"], taken["words"]
    ({'K': 3}, {'thread_idx': 'thread_idx'})
    """
    if any(is_stub(node) for node in ast.walk(function.tree)):
        raise NotImplementedError(f"{function.name} is not written yet")
    out = {"name": function.name, "text": text_of(function.function), "line": function.tree.lineno,
           "numbers": {}, "words": {}, "devices": {}}  # fmt: skip
    modules = {n.value.id for n in ast.walk(function.tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
    for name, found in zip(function.free, function.outside()):
        if isinstance(found, Device):
            out["devices"][name] = portable(found)
        elif isinstance(found, bool | int | float):
            out["numbers"][name] = found
        elif isinstance(found, np.ndarray | np.generic) and np.ndim(found) <= 2 and np.size(found) == 1:
            out["numbers"][name] = np.asarray(found).item()
        elif id(found) in NAMES:
            out["words"][name] = NAMES[id(found)]
        elif isinstance(found, ModuleType) and name in modules:
            for node in ast.walk(function.tree):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
                    thing = getattr(found, node.attr, None)
                    if id(thing) not in NAMES:
                        raise TypeError(f"{function.name} uses {name}.{node.attr}; {REFUSED}.")
                    out["words"][f"{name}.{node.attr}"] = NAMES[id(thing)]
        else:
            raise TypeError(f"{function.name} uses {name}, a {type(found).__name__}; {REFUSED}.")
    return out


def from_portable(taken: dict) -> Kernel:
    """The kernel that `portable` took apart. Whatever is not the kernel language is refused.

    taken: plain data from another process, not trusted. Raises KernelSyntaxError with a sentence.

    >>> parts = {"name": "f", "line": 1, "numbers": {}, "words": {}, "devices": {}}
    >>> from_portable(parts | {"text": "def f(a): open('x')"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    mlsys.gpu.simt.errors.KernelSyntaxError: f uses open; a kernel ... words of the kernel language and device functions only.
    """
    return rebuild(taken, Kernel, 0)


def rebuild(taken: dict, kind: type, depth: int) -> Function:
    """A kernel or device function from its parts."""
    require_form(taken, depth)
    name, tree = taken["name"], tree_of(taken)
    outside = {n: rebuild(part, Device, depth + 1) for n, part in taken["devices"].items()} | taken["numbers"]
    outside |= {n.replace(".", "__"): WORDS[word] for n, word in taken["words"].items()}
    tree = Undotted({n for n in taken["words"] if "." in n}).visit(tree)
    require_language(tree, name, outside)
    tree.decorator_list, tree.returns = [], None
    for argument in tree.args.args:
        argument.annotation = None
    filename = f"<{name}, handed in>"
    start = tree.lineno
    ast.increment_lineno(tree, taken["line"] - start)
    lines = [""] * (taken["line"] - start) + taken["text"].splitlines()
    linecache.cache[filename] = (1, None, [line + "\n" for line in lines], filename)
    space = {"__builtins__": {}, **outside}
    exec(compile(ast.Module([tree], []), filename, "exec"), space)  # a `def` without decorators and defaults: nothing of it runs here
    return kind(space.pop(name), (tree, filename))


def require_form(taken: dict, depth: int) -> None:
    """The right fields with the right types, and no more of anything than a kernel needs."""
    if type(taken) is not dict or {k: type(v) for k, v in taken.items()} != FIELDS:
        raise KernelSyntaxError("this is no kernel: hand in what its portable() gives.")
    if len(taken["text"]) > MAX_TEXT or len(taken["devices"]) > MAX_DEVICES or depth > 3 or not 0 < taken["line"] < 10_000:
        raise KernelSyntaxError(f"the kernel has more than {MAX_TEXT} characters, {MAX_DEVICES} device functions or 10,000 lines above it.")
    for name in (*taken["numbers"], *taken["words"], *taken["devices"]):
        if type(name) is not str or not all(part.isidentifier() for part in name.split(".")):
            raise KernelSyntaxError(f"{name!r} is no name that a kernel can use.")
    for name, number in taken["numbers"].items():
        if type(number) not in (bool, int, float) or type(number) is int and abs(number) > MAX_INT:
            raise KernelSyntaxError(f"{name!r} = {number!r} is no number that a kernel can use.")
    for word in taken["words"].values():
        if type(word) is not str or word not in WORDS:
            raise KernelSyntaxError(f"{word!r} is no word of the kernel language.")


def tree_of(taken: dict) -> ast.FunctionDef:
    try:
        body = ast.parse(taken["text"]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise KernelSyntaxError(f"the text of {taken['name']} cannot be read: {error}") from None
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or body[0].name != taken["name"]:
        raise KernelSyntaxError(f"the text of {taken['name']} is not one function of that name.")
    return body[0]


class Undotted(ast.NodeTransformer):
    """`np.float32` and `cuda.thread_idx` become plain names."""

    def __init__(self, dotted: set[str]):
        self.dotted = dotted

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" in self.dotted:
            return ast.copy_location(ast.Name(f"{node.value.id}__{node.attr}", node.ctx), node)
        return self.generic_visit(node)


def require_language(tree: ast.FunctionDef, name: str, outside: dict) -> None:
    """Only known names, only known attributes; the statements are refused by the rewriter.

    Raises KernelSyntaxError.
    """
    more = ("posonlyargs", "kwonlyargs", "defaults", "kw_defaults", "vararg", "kwarg")
    if any(getattr(tree.args, part) for part in more) or getattr(tree, "type_params", ()):
        raise KernelSyntaxError(f"{name} has plain parameters only, without defaults, types, `/`, `*` or `**`.")
    parts = [node for statement in tree.body for node in ast.walk(statement)]
    own = {a.arg for a in tree.args.args} | {n.id for n in parts if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in parts:
        if isinstance(node, ast.Name) and node.id not in own and node.id not in outside:
            raise KernelSyntaxError(f"{name} uses {node.id}; {REFUSED}.")
        if isinstance(node, ast.Attribute) and node.attr not in ATTRIBUTES:
            raise KernelSyntaxError(f"{name} uses .{node.attr}; {REFUSED}.")
    taken = [word for word in own if word in outside or word.startswith("_") and word != "_"] + [n for n in outside if n.startswith("_")]
    if taken or name.startswith("_"):
        raise KernelSyntaxError(f"{name}: a name may not be {sorted(taken or [name])[0]}.")
