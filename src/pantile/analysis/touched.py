"""Which box of each buffer a set of expressions reads, while their variables range over a scope.

    touched([g[y-1, x] + g[y+1, x]], {y: [0, 9], x: [0, 4]})  ->  {"g": ([-1, 10], [0, 4])}

The branches of a select are visited with the scope its condition leaves them, so `select(x > 0, f[x-1], 0)`
does not read f[-1]. Scalars are generic, as in `interval`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..expr.nodes import Const, Expr, Load, Op, Var
from ..expr.visit import children
from .interval import Interval, Scope, _Evaluator, refine

Box = tuple[Interval, ...]


def hull(a: Box, b: Box) -> Box:
    """The smallest box that holds both."""
    return tuple(x.hull(y) for x, y in zip(a, b, strict=True))


def touched(roots: Iterable[Expr], scope: Scope) -> dict[str, Box]:
    """Buffer name -> hull of all its loads in the expressions."""
    boxes: dict[str, Box] = {}

    def seen(load: Load, box: Box, _: Scope) -> None:
        boxes[load.buffer] = hull(boxes[load.buffer], box) if load.buffer in boxes else box

    each_load(roots, scope, seen)
    return boxes


def each_load(roots: Iterable[Expr], scope: Scope, report: Callable[[Load, Box, Scope], None]) -> None:
    """Call report(load, box, scope) for every load, with the box of its indices over the scope it is read in."""
    done: set[tuple[int, int]] = set()
    alive: list[Scope] = []

    def visit(e: Expr, evaluator: _Evaluator) -> None:
        if isinstance(e, (Const, Var)) or (id(e), id(evaluator.scope)) in done:
            return
        done.add((id(e), id(evaluator.scope)))
        if isinstance(e, Op) and e.op == "select":
            visit(e.args[0], evaluator)
            for branch, holds in ((e.args[1], True), (e.args[2], False)):
                inner = refine(evaluator.scope, e.args[0], holds)
                alive.append(inner)
                visit(branch, evaluator if inner is evaluator.scope else _Evaluator(inner))
            return
        for c in children(e):
            visit(c, evaluator)
        if isinstance(e, Load):
            report(e, tuple(evaluator.visit(i) for i in e.indices), evaluator.scope)

    top = _Evaluator(scope)
    for root in roots:
        visit(root, top)
