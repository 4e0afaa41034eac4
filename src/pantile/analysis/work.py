"""Counts the work of a call: the bytes that must move, and the operations of its definitions.

Every stage counts once at each point of its required region, and each input and output moves once. Fusing, tiling and
inlining do not change that, so it bounds the speed of any schedule on a machine with known rates. (The bound is not
strict if indices depend on data, since the required region is then larger than the region that is read.)

The arithmetic cost of an expression weighs its operations: "We assign unit cost to most arithmetic operations and
higher costs to more complex operations such as division and transcendentals" (halide-autoscheduler §4.1).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from types import MappingProxyType

from ..dataclass import dataclass
from ..expr.nodes import Cast, Const, Expr, Load, Number, Op, Var
from ..expr.types import DType
from ..expr.visit import loaded
from ..graph.nodes import Definition, Graph, Stage
from .interval import Interval, Scope
from .point import OrderedExpression, value_at
from .regions import definition_scope, required

_FUSED = {"add": 1, "sub": 1, "mul": 1, "neg": 1, "fma": 2}  # operations of fused multiply-add units, two at a time
_FREE = frozenset({"within"})
_SAMPLES = 1000

_Path = Mapping[int, Number | None]  # id of a select's condition -> its value; None if that depends on data
_DIVISION = 6.0
_TRANSCENDENTAL = 20.0
_WEIGHTS = {
    **dict.fromkeys(("div", "sqrt", "rsqrt"), _DIVISION),
    **dict.fromkeys(("exp", "log", "pow", "cbrt", "tanh", "erf"), _TRANSCENDENTAL),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan2"), _TRANSCENDENTAL),
    "within": 0.0,
}


@dataclass(frozen=True)
class Work:
    """The work of a call. `operations` are counted by kind and width in bits. Kinds are "fma" (additions and
    multiplications of floats), "float" (all other operations on floats) and "int"."""

    bytes: int
    operations: Mapping[tuple[str, int], int]


def count_work(graph: Graph, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number]) -> Work:
    """Count the work of a call; `shapes` has the shapes of outputs by stage, `scalars` the params and input extents."""
    scope = {name: Interval.point(value) for name, value in scalars.items()}
    boxes = required(graph, {name: tuple(Interval(0, n - 1) for n in s) for name, s in shapes.items()}, scope)
    moved = sum(_points(boxes[i.name]) * i.dtype.bytes for i in graph.inputs if i.name in boxes)
    moved += sum(prod(shape) * t.bytes for name, shape in shapes.items() for t in graph.stage[name].dtypes)
    operations: Counter[tuple[str, int]] = Counter()
    for stage in graph.stages:
        for d in stage.definitions if stage.name in boxes else ():
            operations += _operations(stage, d, definition_scope(stage, d, boxes[stage.name], scope))
    return Work(moved, {kind: n for kind, n in operations.items() if n})


def _points(ranges: Iterable[Interval]) -> int:
    """The number of points of a box. An unbounded box counts as empty, since it is not stored."""
    return prod(max(0, int(r.high) - int(r.low) + 1) if r.bounded else 0 for r in ranges)


def _operations(stage: Stage, d: Definition, scope: Scope) -> Counter[tuple[str, int]]:
    """Count the operations of evaluating a definition over its pure dims and its reduction domain."""
    free = [n for n, i in zip(stage.dims, d.indices, strict=True) if isinstance(i, Var) and i.name == n]
    loops = [*free, *(r.name for r in d.domain)]
    roots = [*d.values, *(i for i in d.indices if _reads(i))]
    every = _points(scope[name] for name in loops)
    counted: Counter[tuple[str, int]] = Counter()
    for path, share in _paths(roots, d.condition, loops, scope) if every else ():
        runs = int(every * share)
        for kind, count in _count_once(roots, path).items():
            counted[kind] += count * runs
    return counted


def _paths(roots: list[Expr], condition: Expr | None, loops: list[str], scope: Scope) -> Iterator[tuple[_Path, float]]:
    """The outcomes of selects on coordinates, each with the fraction of points that have it, by sampling. Points at
    which the definition's condition fails are left out. If a select depends on data, both branches count."""
    choices = [e.args[0] for e in evaluated(roots) if isinstance(e, Op) and e.op == "select" and not _reads(e.args[0])]
    if condition is None and not choices:
        yield {}, 1.0
        return
    draw, values = random.Random(0), list(map(OrderedExpression, choices))
    fixed: dict[str | int, Number] = {name: r.low for name, r in scope.items() if name not in loops}
    outcomes: Counter[tuple[Number | None, ...]] = Counter()
    for _ in range(_SAMPLES):
        point: dict[str | int, Number] = fixed | {
            name: draw.randint(int(scope[name].low), int(scope[name].high)) for name in loops
        }
        if condition is None or value_at(condition, point) is not False:
            outcomes[tuple([v.value(point) for v in values])] += 1
    for decided, times in outcomes.items():
        yield dict(zip(map(id, choices), decided, strict=True)), times / _SAMPLES


def _count_once(roots: list[Expr], path: _Path) -> Counter[tuple[str, int]]:
    """Count the operations of evaluating expressions once, without arithmetic on coordinates that does not depend on
    data."""
    counted: Counter[tuple[str, int]] = Counter()
    for e in evaluated(roots, path):
        if isinstance(e, Op) and e.op not in _FREE and _branch_taken(e, path) is None:
            operand = e.args[-1].dtype
            counted[_kind(e.op, operand), operand.bits] += _FUSED.get(e.op, 1)
    return counted


def _branch_taken(e: Expr, path: _Path) -> Expr | None:
    """The branch of a select that is known to be taken; None if it is not known."""
    taken = path.get(id(e.args[0])) if isinstance(e, Op) and e.op == "select" else None
    return None if taken is None or not isinstance(e, Op) else e.args[1 if taken else 2]


def _kind(op: str, operand: DType) -> str:
    if not operand.is_float:
        return "int"
    return "fma" if op in _FUSED else "float"


def evaluated(roots: Iterable[Expr], path: _Path = MappingProxyType({})) -> Iterator[Expr]:
    """All nodes once, except constants, variables, index arithmetic of loads, and branches that are not taken."""
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        e = pending.pop()
        if id(e) in seen or isinstance(e, (Const, Var)):
            continue
        seen.add(id(e))
        yield e
        if path and (branch := _branch_taken(e, path)) is not None:
            pending.append(branch)
        else:
            pending += [i for i in e.indices if loaded(i)] if isinstance(e, Load) else e.operands


def _reads(e: Expr) -> bool:
    return bool(loaded(e))


def arithmetic(roots: Iterable[Expr]) -> float:
    """The cost of evaluating all roots once. Shared nodes count once, and arithmetic on coordinates does not count."""
    return sum(weight(e) for e in evaluated(roots))


def weight(e: Expr) -> float:
    """The cost of one node."""
    if isinstance(e, Cast):
        return 1.0
    if not isinstance(e, Op):
        return 0.0
    if e.op in ("floordiv", "mod", "div") and isinstance(e.args[1], Const):
        return 2.0 if e.op != "div" else 1.0  # by multiplication and shift, or by the reciprocal
    if e.op in ("floordiv", "mod"):
        return _DIVISION
    return _WEIGHTS.get(e.op, 1.0)
