"""Rewriting: the source of a kernel for one thread becomes a function for all lanes at once.

`if`, loops and jumps turn into changes of the lane mask, `a[i]` into a gather, `a[i] = v` into a
scatter, `x = v` into an assignment in the active lanes only. The new function carries the file
name and the line numbers of the old one, so that an error shows the reader's own line.
`show(kernel)` in `launch.py` prints the result; reading it once is the quickest way to see
what a GPU does with a branch.
Lessons: SMs and warps, CUDA programming model.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from types import FunctionType

from mlsys.gpu.simt.errors import KernelSyntaxError
from mlsys.gpu.simt.flow import doubtful_names

M = "_m"  # the machine, in the rewritten source
JUMPS = (ast.Break, ast.Continue, ast.Return)
HINTS = {
    ast.With: "`with`", ast.Try: "`try`", ast.Lambda: "`lambda`", ast.ListComp: "a list comprehension",
    ast.GeneratorExp: "a generator expression", ast.FunctionDef: "a function inside a kernel", ast.Raise: "`raise`",
    ast.ClassDef: "`class`", ast.Import: "`import`", ast.ImportFrom: "`import`", ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`", ast.JoinedStr: "an f-string", ast.Dict: "a dict", ast.List: "a list",
    ast.Delete: "`del`", ast.Slice: "a slice", ast.Yield: "`yield`", ast.NamedExpr: "`:=`", ast.Starred: "`*`",
    ast.MatMult: "`@`", ast.Set: "a set", ast.Assert: "`assert`", ast.Await: "`await`", ast.In: "`in`",
    ast.NotIn: "`not in`", ast.AnnAssign: "a type annotation", ast.Is: "`is`", ast.IsNot: "`is not`", ast.DictComp: "a dict comprehension",
    ast.SetComp: "a set comprehension", ast.Match: "`match`",
}  # fmt: skip


def text_of(function: FunctionType) -> str:
    """The source of a function as it stands in its file or notebook cell, moved to the left margin; empty if it is not there."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
    return textwrap.dedent("".join(inspect.getblock(lines) if lines else []))


def source_of(function: FunctionType) -> tuple[ast.FunctionDef, str]:
    """Syntax tree of a function, with the line numbers of its file or notebook cell, and the file's name."""
    code = function.__code__
    tree = ast.parse(text_of(function))
    # Python 3.13 keeps the text of `python -c` under the name <string>, which other executed code has too
    found = tree.body[0] if tree.body else None
    if not isinstance(found, ast.FunctionDef) or found.name != function.__name__:
        raise KernelSyntaxError(
            f"the source of {function.__name__} cannot be read; define it in a file or in a notebook cell."
        )
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    return found, code.co_filename


def assigned_names(tree: ast.FunctionDef) -> set[str]:
    """Parameters and variables of a function."""
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {a.arg for a in tree.args.args}


def free_names(tree: ast.FunctionDef) -> list[str]:
    """Names that a function takes from outside, each once, in order."""
    own = assigned_names(tree)
    names = [n.id for part in tree.body for n in ast.walk(part) if isinstance(n, ast.Name) and n.id not in own]
    return list(dict.fromkeys(names))


def written_names(tree: ast.FunctionDef) -> tuple[set[str], bool]:
    """Names of arrays that a function may write, and whether one may be a second name of any array.

    Counted as written: what stores go to, and whatever is handed to a call.
    """
    written, second = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            written |= {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.Call):
            written |= {a.id for a in node.args if isinstance(a, ast.Name)}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name | ast.Tuple):
            second |= {n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return written, bool(written & second)


def jumps_out(statement: ast.stmt) -> bool:
    """Whether some lanes may not come to what follows a statement; `break` stays inside its loop."""
    if isinstance(statement, ast.For | ast.While):
        return any(isinstance(node, ast.Return) for node in ast.walk(statement))
    return isinstance(statement, JUMPS) or any(
        jumps_out(child) for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)
    )


def may_touch_memory(node: ast.expr) -> bool:
    """Whether evaluating an expression in lanes that do not want it could do harm."""
    return any(isinstance(n, ast.Subscript | ast.Call | ast.Div | ast.FloorDiv | ast.Mod) for n in ast.walk(node))


def is_stub(node: ast.AST) -> bool:
    """Whether a statement is `raise NotImplementedError`, with or without words."""
    if not isinstance(node, ast.Raise) or node.cause:
        return False
    what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(what, ast.Name) and what.id == "NotImplementedError"


def has(name: str) -> str:
    """Name of the variable that keeps which lanes have assigned a variable in doubt."""
    return f"_has_{name}"


class Rewriter:
    """Rewrites one function; with `traced` every statement also reports its issue slot."""

    def __init__(self, filename: str, traced: bool):
        self.filename, self.traced = filename, traced
        self.name = ""
        self.doubtful: set[str] = set()  # variables that some path reads before it assigns them
        self.temporaries = 0
        self.line = 0  # of the statement in hand

    def function(self, tree: ast.FunctionDef) -> ast.Module:
        """The function for all lanes: parameters are the machine, the free names, then its own."""
        arguments = tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or arguments.defaults:
            self.refuse(tree, "a kernel has plain parameters only, without defaults, `*` or `**`")
        self.name, self.doubtful = tree.name, doubtful_names(tree)
        parameters = [a.arg for a in arguments.args]
        unset = sorted(assigned_names(tree) - set(parameters)) + sorted(map(has, self.doubtful))
        header = f"def {tree.name}({', '.join([M, *free_names(tree), *parameters])}):\n"
        module = ast.parse(header + "    " + (" = ".join([*unset, "None"]) if unset else "pass"))
        module.body[0].body += self.block(tree.body)
        return ast.fix_missing_locations(module)

    def refuse(self, node: ast.AST, why: str) -> None:
        line = getattr(node, "lineno", 0)
        text = linecache.getline(self.filename, line)
        raise KernelSyntaxError(why + ".", (self.filename, line, node.col_offset + 1, text))

    def unknown(self, node: ast.AST, at: ast.AST) -> None:
        self.refuse(at, HINTS.get(type(node), f"{type(node).__name__}") + " is not part of the kernel language")

    # statements -------------------------------------------------------------

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements in turn; after one that some lanes leave, the rest runs only if a lane is left."""
        out = []
        for k, statement in enumerate(body):
            visit = getattr(self, "do_" + type(statement).__name__, None)
            if visit is None:
                self.unknown(statement, statement)
            self.line = statement.lineno
            new = visit(statement)
            for node in (n for part in new for n in ast.walk(part)):
                if isinstance(node, ast.expr | ast.stmt) and not getattr(node, "ours", False):
                    node.lineno = node.end_lineno = statement.lineno
                    node.col_offset = node.end_col_offset = 0
                    node.ours = True
            out += new
            if isinstance(statement, JUMPS):
                break  # what follows in this block is never reached
            if jumps_out(statement) and k + 1 < len(body):
                out += self.lines(f"if {M}.mask.some:\n    __BODY", BODY=self.block(body[k + 1 :]))
                break
        return out or [ast.Pass()]

    def lines(self, template: str, **parts) -> list[ast.stmt]:
        """Statements from a template; a name like __V stands for the expression or body V."""
        return Fill(parts).fill(ast.parse(template).body)

    def step(self, node: ast.stmt) -> list[ast.stmt]:
        return self.lines(f"{M}.step({node.lineno})") if self.traced else []

    def temporary(self) -> str:
        self.temporaries += 1
        return f"_t{self.temporaries}"

    def do_Pass(self, node):
        return [ast.Pass()]

    def do_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return []  # a docstring
        value = self.expr(node.value)
        if isinstance(node.value, ast.Call):
            value.func.attr = "do"  # a call whose result nobody takes
        return [*self.step(node), ast.Expr(value)]

    def do_Assign(self, node):
        if len(node.targets) > 1:
            self.refuse(node, "`a = b = c` is not part of the kernel language; write two lines")
        return self.step(node) + self.store(node.targets[0], node.value, node)

    def store(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(target, ast.Tuple):
            if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
                self.refuse(node, f"{len(target.elts)} names on the left need as many values on the right")
            names = [self.temporary() for _ in value.elts]
            out = [s for t, v in zip(names, value.elts) for s in self.lines(f"{t} = __V", V=self.expr(v))]
            for name, part in zip(names, target.elts):
                out += self.put(part, ast.Name(name, ast.Load()), node)
            return out
        return self.put(target, self.expr(value), node)

    def put(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """target = value, the value being rewritten already."""
        if isinstance(target, ast.Name):
            name = target.id
            out = self.lines(f"{name} = {M}.assign({name}, __V, {name!r})", V=value)
            return out + (self.lines(f"{has(name)} = {M}.given({has(name)})") if name in self.doubtful else [])
        if not isinstance(target, ast.Subscript):
            self.refuse(node, "only a variable or an array element can be assigned to")
        array, index = self.expr(target.value), self.expr(target.slice)
        return self.lines(f"{M}.store(__A, __I, __V, {node.lineno})", A=array, I=index, V=value)

    def do_AugAssign(self, node):
        target = node.target
        if isinstance(target, ast.Name):
            return self.step(node) + self.put(target, self.binary(node.op, target, node.value, node), node)
        if not isinstance(target, ast.Subscript):
            self.refuse(node, "only a variable or an array element can be assigned to")
        array, index = self.temporary(), self.temporary()
        out = self.lines(f"{array} = __A\n{index} = __I", A=self.expr(target.value), I=self.expr(target.slice))
        old = self.lines(f"{M}.load({array}, {index}, {node.lineno})")[0].value
        new = self.operator(node.op, [old, self.expr(node.value)], node)
        out += self.lines(f"{M}.store({array}, {index}, __V, {node.lineno})", V=new)
        return self.step(node) + out

    def do_If(self, node):
        saved, condition = self.temporary(), self.temporary()
        out = self.step(node) + self.lines(
            f"{condition} = {M}.test(__C)\n{saved} = {M}.enter({condition})\nif {M}.mask.some:\n    __BODY",
            C=self.expr(node.test), BODY=self.block(node.body),
        )  # fmt: skip
        if node.orelse:
            out += self.lines(
                f"{M}.mask = {saved}.without({condition})\nif {M}.mask.some:\n    __BODY", BODY=self.block(node.orelse)
            )
        back = f"{M}.rejoin({saved})" if jumps_out(node) else saved
        return out + self.lines(f"{M}.mask = {back}")

    def do_While(self, node):
        if node.orelse:
            self.refuse(node, "`else` after a loop is not part of the kernel language")
        frame = self.temporary()
        return self.lines(
            f"{frame} = {M}.open_loop({node.lineno})\nwhile {M}.next_round({frame}):\n"
            f"    __STEP\n    if not {M}.stay({frame}, __C):\n        break\n    __BODY\n{M}.close_loop({frame})",
            STEP=self.step(node), C=self.expr(node.test), BODY=self.block(node.body),
        )  # fmt: skip

    def do_For(self, node):
        if node.orelse:
            self.refuse(node, "`else` after a loop is not part of the kernel language")
        call = node.iter
        is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
        if not is_range or call.keywords or not isinstance(node.target, ast.Name):
            self.refuse(node, "a kernel's `for` runs one variable over range(...)")
        each = self.temporary()
        bounds = ast.Tuple([self.expr(a) for a in call.args], ast.Load())
        return self.lines(
            f"for {each} in {M}.rounds({node.lineno}, __B):\n    __FIRST\n    __BODY",
            B=bounds, FIRST=self.put(node.target, ast.Name(each, ast.Load()), node), BODY=self.block(node.body),
        )  # fmt: skip

    def do_Break(self, node):
        return self.step(node) + self.lines(f"{M}.leave_loop()")

    def do_Continue(self, node):
        return self.step(node) + self.lines(f"{M}.next_turn()")

    def do_Return(self, node):
        value = self.expr(node.value) if node.value is not None else ast.Constant(None)
        return self.step(node) + self.lines(f"{M}.leave(__V)", V=value)

    def do_Raise(self, node):
        """`raise NotImplementedError` marks a kernel that is still to be written: raised when it is launched."""
        if not is_stub(node):
            self.unknown(node, node)
        return self.lines(f"raise NotImplementedError('{self.name} is not written yet')")

    # expressions ------------------------------------------------------------

    def expr(self, node: ast.expr) -> ast.expr:
        visit = getattr(self, "on_" + type(node).__name__, None)
        if visit is None:
            self.unknown(node, node)
        return visit(node)

    def make(self, template: str, **parts) -> ast.expr:
        return self.lines(template, **parts)[0].value

    def operator(self, op: ast.AST, operands: list[ast.expr], node: ast.AST) -> ast.expr:
        name = type(op).__name__
        if name in ("MatMult", "In", "NotIn", "Is", "IsNot"):
            self.unknown(op, node)
        if name in ("FloorDiv", "Mod"):
            return self.make(f"{M}.divide({name!r}, __A, __B)", A=operands[0], B=operands[1])
        return ast.Call(ast.Name("_" + name, ast.Load()), operands, [])

    def binary(self, op, left, right, node):
        left = ast.Name(left.id, ast.Load()) if isinstance(left, ast.Name) else left
        return self.operator(op, [self.expr(left), self.expr(right)], node)

    def on_Constant(self, node):
        if not isinstance(node.value, bool | int | float):
            self.refuse(node, f"{node.value!r} is not a number")
        return ast.Constant(node.value)

    def on_Name(self, node):
        if node.id in self.doubtful:
            return self.make(f"{M}.sure({node.id}, {has(node.id)}, {node.id!r})")
        return ast.Name(node.id, ast.Load())

    def on_Attribute(self, node):
        return self.make(f"{M}.attribute(__A, {node.attr!r})", A=self.expr(node.value))

    def on_Subscript(self, node):
        return self.make(f"{M}.load(__A, __I, {self.line})", A=self.expr(node.value), I=self.expr(node.slice))

    def on_Tuple(self, node):
        return ast.Tuple([self.expr(e) for e in node.elts], ast.Load())

    def on_BinOp(self, node):
        return self.binary(node.op, node.left, node.right, node)

    def on_UnaryOp(self, node):
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return ast.Constant(-node.operand.value)
        return self.operator(node.op, [self.expr(node.operand)], node)

    def on_Compare(self, node):
        """a < b < c, with b worked out once, and c only in lanes where a < b."""
        left, links = self.expr(node.left), []
        for op, right in zip(node.ops, node.comparators):
            right_value = self.expr(right)
            if right is not node.comparators[-1]:
                name = self.temporary()
                right_value = ast.NamedExpr(ast.Name(name, ast.Store()), right_value)
            links.append((self.operator(op, [left, right_value], node), may_touch_memory(right)))
            if right is not node.comparators[-1]:
                left = ast.Name(name, ast.Load())
        out, careful = links.pop()
        while links:
            link, before = links.pop()
            out = self.both(True, link, out, careful)
            careful = careful or before
        return out

    def both(self, is_and: bool, first: ast.expr, then: ast.expr, careful: bool) -> ast.expr:
        """first and then (or: or); careful: `then` only in lanes that `first` has not decided."""
        if careful:
            return self.make(f"{M}.short({is_and}, __A, lambda: __B)", A=first, B=then)
        return ast.Call(ast.Name("_And" if is_and else "_Or", ast.Load()), [first, then], [])

    def on_BoolOp(self, node):
        """`and` and `or`: lanes that are decided already do not evaluate what follows."""
        is_and = isinstance(node.op, ast.And)
        out = self.expr(node.values[0])
        for part in node.values[1:]:
            out = self.both(is_and, out, self.expr(part), may_touch_memory(part))
        return out

    def on_IfExp(self, node):
        return self.make(
            f"{M}.choose(__C, lambda: __A, lambda: __B)",
            C=self.expr(node.test), A=self.expr(node.body), B=self.expr(node.orelse),
        )  # fmt: skip

    def on_Call(self, node):
        keywords = [ast.keyword(k.arg, self.expr(k.value)) for k in node.keywords if k.arg]
        if len(keywords) < len(node.keywords):
            self.refuse(node, "`**` is not part of the kernel language")
        site = self.name, self.line, node.col_offset
        arguments = [ast.Constant(site), *(self.expr(a) for a in node.args)]
        method = ast.Attribute(ast.Name(M, ast.Load()), "call", ast.Load())
        return ast.Call(method, [self.expr(node.func), *arguments], keywords)


class Fill(ast.NodeTransformer):
    """Puts expressions and bodies in the place of the names of a template that begin with two underscores."""

    def __init__(self, parts: dict):
        self.parts = parts

    def fill(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out = []
        for statement in body:
            new = self.visit(statement)
            out += new if isinstance(new, list) else [new]
        return out

    def visit_Name(self, node):
        return self.parts[node.id[2:]] if node.id.startswith("__") and node.id[2:] in self.parts else node

    def visit_Expr(self, node):
        inner = self.visit(node.value)
        return inner if isinstance(inner, list) else ast.Expr(inner)  # a whole body, or an expression
