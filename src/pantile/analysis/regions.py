"""Bounds inference: computes the required region of every stage and input, from the boxes of outputs backwards.

It is generic in its scalars: ints to check a call, NumPy arrays for the costs of tiles, expressions for lowering.

A set of expressions reads a box of each buffer while their variables range over a scope:

    load_boxes([g[y-1, x] + g[y+1, x]], {y: [0, 9], x: [0, 4]})  ->  {"g": ([-1, 10], [0, 4])}

The branches of a select are visited in the scope that its condition implies, so `select(x > 0, f[x-1], 0)` does not
read f[-1]. As in `interval`, scalars are generic, and a node that many branches share is visited under some of their
conditions and then under none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from ..dataclass import dataclass
from ..expr.nodes import Const, Expr, Load, Op
from ..expr.visit import loaded
from ..graph.nodes import Definition, Graph, Stage
from .interval import Evaluator, Interval, Scalar, Scope, interval, refine

FAR = 1 << 33  # exceeds the distance between any two coordinates
Box = tuple[Interval, ...]


@dataclass(frozen=True)
class Rules:
    """Hooks of bounds inference.

    missing   returns 1 if one of the given ranges is empty, so that nothing is read, and otherwise 0
    computed  returns the box to compute of a stage, given its required region
    needed    is called with the required region of each stage, before its own updates extend it
    perhaps   is called with each buffer that is read in a scope whose ranges may be empty
    loosely   is called if there were too many conditions to consider, so that boxes may be larger than what is read
    """

    missing: Callable[[Iterable[Interval]], Scalar] = lambda _: 0
    computed: Callable[[Stage, Box], Box] = lambda _, box: box
    needed: Callable[[Box], None] = lambda _: None
    perhaps: Callable[[str], None] = lambda _: None
    loosely: Callable[[], None] = lambda: None


ENDS_ONLY = Rules()


def expressions(d: Definition) -> list[Expr]:
    """All expressions that a definition evaluates."""
    return [*d.indices, *d.values, *([d.condition] if d.condition is not None else [])]


def definition_scope(stage: Stage, d: Definition, box: Box, scope: Scope) -> Scope:
    """The scope of one definition. Its pure dims range over the box, its reduction dims over their domain."""
    inner = {**scope, **dict(zip(stage.dims, box, strict=True))}
    for r in d.domain:
        low = interval(r.min, inner)
        extent = interval(r.extent, inner)
        high = None if low.high is None or extent.high is None else low.high + extent.high - 1
        inner[r.name] = Interval(low.low, high)
    return inner


def where_it_holds(d: Definition, scope: Scope) -> Scope:
    """The scope, narrowed by the definition's condition."""
    return scope if d.condition is None else refine(scope, d.condition, True)


def with_own_updates(stage: Stage, box: Box, scope: Scope, rules: Rules = ENDS_ONLY) -> Box:
    """Extend a box by the elements of the stage itself that its updates write and read."""
    for d in stage.updates:
        inner = where_it_holds(d, definition_scope(stage, d, box, scope))
        if is_empty(inner[r.name] for r in d.domain):  # it never runs
            continue
        written = tuple(interval(i, inner) for i in d.indices)
        box = _extend(box, _unless(_missing(stage, d, inner, rules), written), stage, d)
        for name, b in _reads(stage, d, expressions(d), inner, rules).items():
            if name in stage.buffers:
                box = _extend(box, b, stage, d)
    return box


def _extend(box: Box, other: Box, stage: Stage, d: Definition) -> Box:
    """The hull of two boxes, except along pure dims, where an update covers exactly the first box."""
    pure = [d.indices[k] for k in range(len(box))]
    return tuple(
        mine if getattr(index, "name", None) == dim else mine.hull(theirs)
        for mine, theirs, index, dim in zip(box, other, pure, stage.dims, strict=True)
    )


def stage_reads(stage: Stage, box: Box, scope: Scope, rules: Rules = ENDS_ONLY) -> dict[str, Box]:
    """The boxes of other buffers that the computation of the stage over `box` reads."""
    reads: dict[str, Box] = {}
    for d in stage.definitions:
        everywhere = definition_scope(stage, d, box, scope)
        tested = {} if d.condition is None else _reads(stage, d, [d.condition], everywhere, rules)
        used = _reads(stage, d, [*d.indices, *d.values], where_it_holds(d, everywhere), rules)
        for boxes in (tested, used):
            for name, b in boxes.items():
                if name not in stage.buffers:
                    reads[name] = hull(reads[name], b) if name in reads else b
    return reads


def _reads(stage: Stage, d: Definition, roots: list[Expr], scope: Scope, rules: Rules) -> dict[str, Box]:
    """Map buffers to the hull of all their loads in expressions of a definition."""
    boxes: dict[str, Box] = {}
    missing: dict[int, Scalar] = {}

    def seen(load: Load, box: Box, inner: Scope) -> None:
        if id(inner) not in missing:
            missing[id(inner)] = _missing(stage, d, inner, rules)
        if not isinstance(missing[id(inner)], int):
            rules.perhaps(load.buffer)
        box = _unless(missing[id(inner)], box)
        boxes[load.buffer] = hull(boxes[load.buffer], box) if load.buffer in boxes else box

    if not each_load(roots, scope, seen):
        rules.loosely()
    return boxes


def _missing(stage: Stage, d: Definition, scope: Scope, rules: Rules) -> Scalar:
    """Return 1 if a definition has no points in the scope, and otherwise 0. Conditions that depend only on scalars are
    ignored."""
    return rules.missing([scope[name] for name in (*stage.dims, *(r.name for r in d.domain))])


def is_empty(ranges: Iterable[Interval]) -> bool:
    """Whether some range is known to have no points."""
    ends = [[e.value if isinstance(e, Const) else e for e in (r.low, r.high)] for r in ranges]
    return any(isinstance(low, int) and isinstance(high, int) and low > high for low, high in ends)


def _unless(missing: Scalar, box: Box) -> Box:
    """The box or, if it is missing, an empty one that adds nothing to a hull."""
    if isinstance(missing, int) and missing == 0:
        return box
    far = missing * FAR
    return tuple(Interval(*(None if e is None else e + by for e, by in ((r.low, far), (r.high, 0 - far)))) for r in box)


def required(
    graph: Graph,
    outputs: Mapping[str, Box],
    scope: Scope,
    rules: Rules = ENDS_ONLY,
    reads: Callable[[Stage, Box, Scope, Rules], dict[str, Box]] = stage_reads,
) -> dict[str, Box]:
    """The required regions of all stages and inputs, by name. `reads` is `stage_reads`, or a memoized version of it."""
    boxes: dict[str, Box] = dict(outputs)
    for stage in reversed(graph.stages):
        if stage.name not in boxes:
            continue
        rules.needed(boxes[stage.name])
        box = boxes[stage.name] = rules.computed(stage, with_own_updates(stage, boxes[stage.name], scope, rules))
        for buffer, b in reads(stage, box, scope, rules).items():
            name = graph.producer[buffer].name if buffer in graph.producer else buffer
            boxes[name] = hull(boxes[name], b) if name in boxes else b
    return boxes


def hull(a: Box, b: Box) -> Box:
    """The smallest box that contains both."""
    return tuple(x.hull(y) for x, y in zip(a, b, strict=True))


def load_boxes(roots: Iterable[Expr], scope: Scope, wanted: Collection[str] | None = None) -> dict[str, Box]:
    """Map buffers to the hull of all their loads in the expressions; only the wanted buffers, if these are given."""
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
    """Call report(load, box, scope) for every load (of wanted buffers), with the scope in which it is read and the box
    of its indices there. Return whether all conditions were considered. Subexpressions without loads are skipped."""
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
    """The operands, each with the evaluator for the scope in which it is evaluated."""
    if not (isinstance(e, Op) and e.op == "select"):
        return [(c, evaluator) for c in e.operands]
    condition, then, otherwise = e.args
    branches = (then, evaluator.within(condition, True)), (otherwise, evaluator.within(condition, False))
    return [(condition, evaluator), *branches]
