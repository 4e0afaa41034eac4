"""How much work a call is: bytes that must move, operations that its definitions ask for.

Every stage counts once at each point of the box that is needed of it, and each input and output moves once. Fusing,
tiling and inlining change none of that, so it says how fast a schedule could be at best, on a machine of known rates.
(Not quite at best where data decides what is read of a stage: then its box is more than is needed of it.)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from types import MappingProxyType

from ..dataclass import dataclass
from ..expr.nodes import Const, Expr, Load, Number, Op, Var
from ..expr.types import DType
from ..expr.visit import loaded
from ..graph.nodes import Definition, Graph, Stage
from .interval import Interval, Scope
from .point import AtPoints, value_at
from .regions import definition_scope, required

_FUSED = {"add": 1, "sub": 1, "mul": 1, "neg": 1, "fma": 2}  # what units for multiply-add do, two at a time
_FREE = frozenset({"within"})
_SAMPLES = 1000

_Way = Mapping[int, Number | None]  # conditions of selects, by id: what they are at a point, None where data decides


@dataclass(frozen=True)
class Work:
    """`operations` are by kind and width in bits.

    Kinds are "fma" (additions and multiplications of floats), "float" (all else on floats) and "int".
    """

    bytes: int
    operations: Mapping[tuple[str, int], int]


def count_work(graph: Graph, shapes: Mapping[str, tuple[int, ...]], scalars: Mapping[str, Number]) -> Work:
    """The work of a call: `shapes` are those of the outputs by stage, `scalars` the params and input extents."""
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
    """How many points a box has; none are counted of one without limits, which is not stored as such either."""
    return prod(max(0, int(r.high) - int(r.low) + 1) if r.bounded else 0 for r in ranges)


def _operations(stage: Stage, d: Definition, scope: Scope) -> Counter[tuple[str, int]]:
    """Of evaluating a definition over the coordinates that stand for themselves, and its own domain."""
    free = [n for n, i in zip(stage.dims, d.indices, strict=True) if isinstance(i, Var) and i.name == n]
    loops = [*free, *(r.name for r in d.domain)]
    roots = [*d.values, *(i for i in d.indices if _reads(i))]
    every = _points(scope[name] for name in loops)
    counted: Counter[tuple[str, int]] = Counter()
    for way, share in _ways(roots, d.condition, loops, scope) if every else ():
        runs = int(every * share)
        for kind, count in _once(roots, way).items():
            counted[kind] += count * runs
    return counted


def _ways(roots: list[Expr], condition: Expr | None, loops: list[str], scope: Scope) -> Iterator[tuple[_Way, float]]:
    """How selects on coordinates are decided, and at what part of the points so, by trying some.

    Points where the condition fails are left out; where data decides, everything is evaluated.
    """
    choices = [e.args[0] for e in evaluated(roots) if isinstance(e, Op) and e.op == "select" and not _reads(e.args[0])]
    if condition is None and not choices:
        yield {}, 1.0
        return
    draw, values = random.Random(0), list(map(AtPoints, choices))
    fixed: dict[str | int, Number] = {name: r.low for name, r in scope.items() if name not in loops}
    found: Counter[tuple[Number | None, ...]] = Counter()
    for _ in range(_SAMPLES):
        point: dict[str | int, Number] = fixed | {
            name: draw.randint(int(scope[name].low), int(scope[name].high)) for name in loops
        }
        if condition is None or value_at(condition, point) is not False:
            found[tuple([v.value(point) for v in values])] += 1
    for decided, times in found.items():
        yield dict(zip(map(id, choices), decided, strict=True)), times / _SAMPLES


def _once(roots: list[Expr], way: _Way) -> Counter[tuple[str, int]]:
    """Of evaluating expressions once; arithmetic on coordinates does not count, unless data takes part in it."""
    counted: Counter[tuple[str, int]] = Counter()
    for e in evaluated(roots, way):
        if isinstance(e, Op) and e.op not in _FREE and _decided(e, way) is None:
            operand = e.args[-1].dtype
            counted[_kind(e.op, operand), operand.bits] += _FUSED.get(e.op, 1)
    return counted


def _decided(e: Expr, way: _Way) -> Expr | None:
    """The branch of a select that is known to be taken."""
    taken = way.get(id(e.args[0])) if isinstance(e, Op) and e.op == "select" else None
    return None if taken is None or not isinstance(e, Op) else e.args[1 if taken else 2]


def _kind(op: str, operand: DType) -> str:
    if not operand.is_float:
        return "int"
    return "fma" if op in _FUSED else "float"


def evaluated(roots: Iterable[Expr], way: _Way = MappingProxyType({})) -> Iterator[Expr]:
    """All nodes, each once, without the index arithmetic of reads, what is constant in any case, and branches that
    are not taken."""
    seen: set[int] = set()
    pending = list(roots)
    while pending:
        e = pending.pop()
        if id(e) in seen or isinstance(e, (Const, Var)):
            continue
        seen.add(id(e))
        yield e
        if way and (branch := _decided(e, way)) is not None:
            pending.append(branch)
        else:
            pending += [i for i in e.indices if loaded(i)] if isinstance(e, Load) else e.operands


def _reads(e: Expr) -> bool:
    return bool(loaded(e))
