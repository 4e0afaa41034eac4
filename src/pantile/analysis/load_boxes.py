"""Which box of each buffer a set of expressions reads, while their variables range over a scope.

    load_boxes([g[y-1, x] + g[y+1, x]], {y: [0, 9], x: [0, 4]})  ->  {"g": ([-1, 10], [0, 4])}

The branches of a select are visited with the scope its condition leaves them, so `select(x > 0, f[x-1], 0)`
does not read f[-1]. Scalars are generic, as in `interval`, and as there what many branches share is visited under some
of their conditions and then under none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..expr.nodes import Expr, Load, Op
from ..expr.visit import loaded
from .interval import Evaluator, Interval, Scope

Box = tuple[Interval, ...]


def hull(a: Box, b: Box) -> Box:
    """The smallest box that holds both."""
    return tuple(x.hull(y) for x, y in zip(a, b, strict=True))


def load_boxes(roots: Iterable[Expr], scope: Scope, wanted: Collection[str] | None = None) -> dict[str, Box]:
    """Buffer -> the hull of all its loads in the expressions; only for the wanted buffers, if these are given."""
    boxes: dict[str, Box] = {}

    def seen(load: Load, box: Box, _: Scope) -> None:
        boxes[load.buffer] = hull(boxes[load.buffer], box) if load.buffer in boxes else box

    each_load(roots, scope, seen, wanted)
    return boxes


def each_load(
    roots: Iterable[Expr],
    scope: Scope,
    report: Callable[[Load, Box, Scope], None],
    wanted: Collection[str] | None = None,
) -> bool:
    """Call report(load, box, scope) for every load (of wanted buffers), with the box of its indices over the scope that
    it is read in. Return whether all conditions were considered. Subexpressions without loads are skipped."""
    top = Evaluator(scope)
    done: set[tuple[int, int]] = set()
    often: dict[int, int] = {}
    stack = [(e, top, False) for e in reversed(list(roots)) if loaded(e)]
    while stack:
        e, evaluator, ready = stack.pop()
        if ready and isinstance(e, Load):
            report(e, tuple([evaluator.visit(i) for i in e.indices]), evaluator.scope)
            continue
        if wanted is not None and loaded(e).isdisjoint(wanted):
            continue
        known = id(e)
        evaluator = evaluator.unless_often(often.get(known, 0))
        if (known, id(evaluator)) in done:
            continue
        done.add((known, id(evaluator)))
        often[known] = often.get(known, 0) + 1
        if isinstance(e, Load) and (wanted is None or e.buffer in wanted):
            stack.append((e, evaluator, True))
        stack += [(c, inner, False) for c, inner in reversed(_inside(e, evaluator)) if loaded(c)]
    return not top.is_loose


def _inside(e: Expr, evaluator: Evaluator) -> list[tuple[Expr, Evaluator]]:
    """The operands, each with the evaluator for the scope that it is read in."""
    if not (isinstance(e, Op) and e.op == "select"):
        return [(c, evaluator) for c in e.operands]
    condition, then, otherwise = e.args
    branches = (then, evaluator.within(condition, True)), (otherwise, evaluator.within(condition, False))
    return [(condition, evaluator), *branches]
