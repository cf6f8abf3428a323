"""Which variables a thread may read before it has assigned them.

Looked for in the source, along every path: what is assigned on both sides of an `if` has a value
behind it, what is assigned in a loop may not have one, since the loop may have no round. Only
variables in doubt are watched while the kernel runs, lane by lane.
Lessons: CUDA programming model.
"""

from __future__ import annotations

import ast


def doubtful_names(tree: ast.FunctionDef) -> set[str]:
    """Variables of a function that some path reads before it assigns them.

    >>> source = '''
    ... def k(a, n):
    ...     if n > 0:
    ...         x, y = 1, 2
    ...     else:
    ...         x = 2
    ...     a[x] = y
    ... '''
    >>> doubtful_names(ast.parse(source).body[0])
    {'y'}
    """
    own = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    paths = Paths(own - {a.arg for a in tree.args.args})
    paths.body(tree.body, frozenset())
    return paths.doubtful


class Paths:
    """Walks over statements with the names that have a value for certain; None: nothing gets here."""

    def __init__(self, own: set[str]):
        self.own, self.doubtful = own, set()

    def read(self, node: ast.AST | None, known: frozenset) -> None:
        for n in ast.walk(node) if node is not None else ():
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in self.own - known:
                self.doubtful.add(n.id)

    def body(self, statements: list[ast.stmt], known: frozenset | None) -> frozenset | None:
        for statement in statements:
            if known is None:
                break
            known = self.after(statement, known)
        return known

    def after(self, node: ast.stmt, known: frozenset) -> frozenset | None:
        if isinstance(node, ast.If):
            self.read(node.test, known)
            sides = [self.body(part, known) for part in (node.body, node.orelse)]
            sides = [side for side in sides if side is not None]
            return frozenset.intersection(*sides) if sides else None
        if isinstance(node, ast.For):
            self.read(node.iter, known)
            self.body(node.body, known | {node.target.id} if isinstance(node.target, ast.Name) else known)
            return known
        if isinstance(node, ast.While):
            self.read(node.test, known)
            self.body(node.body, known)
            return known
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in self.own - known:
            self.doubtful.add(node.target.id)  # it reads what it assigns
        self.read(node, known)
        if isinstance(node, ast.Return | ast.Break | ast.Continue):
            return None
        return known | {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
