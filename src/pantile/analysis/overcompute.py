"""Finds stages that can be computed at any position along a dim, even outside of their required region.

A clamped input can be read anywhere, a plain one only inside the caller's array. If rows can be computed anywhere, a
sliding window that moves several rows at a time may begin with rows that are not required, so that every step computes
the same number of rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ..expr.build import expr
from ..expr.linear import Facts
from ..expr.nodes import Const, Expr, Op, Var, const, var
from ..expr.types import INDEX
from ..expr.visit import depends, loaded, names, same, walk
from ..graph.nodes import Graph, InputInfo, Stage
from .interval import EVERYTHING, Interval
from .regions import Box, expressions, required, stage_reads, with_own_updates


def computable_anywhere(graph: Graph, facts: Facts) -> set[tuple[str, int]]:
    """The stages and dims along which no input is read beyond its extents, and no stage beyond its stated domain. Most
    of them follow from the results for the stages that are read. Bounds inference runs through all producers only if
    such a read is limited."""
    computable: set[tuple[str, int]] = set()
    stated: set[str] = set()  # stages that have a domain, or that depend on one that has
    for stage in graph.stages:
        read = {
            graph.producer[b].name
            for d in stage.definitions
            for e in expressions(d)
            for b in loaded(e)
            if b in graph.producer
        }
        if stage.domain is not None or not stated.isdisjoint(read):
            stated.add(stage.name)
            continue
        nodes = (e for d in stage.definitions for e in walk(*expressions(d)))
        choices = [e for e in nodes if isinstance(e, Op) and e.op == "select"]
        chosen_by = frozenset[str]().union(*(names(e.args[0]) for e in choices))
        moving = [None if stage.updates or dim in chosen_by else _moving(stage, dim) for dim in stage.dims]
        usual = _reads(stage, _here(stage)) if None in moving else {}
        everything: dict[str, Box] = {}  # the boxes that one point requires, computed on first use
        for k, along in enumerate(moving):
            if _reads_where(stage, k) or _selects(stage, k, choices):
                continue
            if along is None:
                follows = _follows(graph, stage, k, usual, computable, facts)
            else:
                follows = _moves(graph, along, computable)
            if follows is None:
                everything = everything or required(graph, {stage.name: _here(stage)}, {})
                follows = _follows_from_inputs(graph, stage, k, everything, facts)
            if follows:
                computable.add((stage.name, k))
    return computable


def _reads_where(stage: Stage, k: int) -> bool:
    """Whether an update reads other stages under a condition on the dim: where it does not hold, they may not be
    computable."""
    conditional = (d for d in stage.updates if d.condition is not None and depends(d.condition, [stage.dims[k]]))
    return any(not loaded(e) <= set(stage.buffers) for d in conditional for e in expressions(d))


def _selects(stage: Stage, k: int, choices: Iterable[Op]) -> bool:
    """Whether some select depends on the dim, and some load of another stage does not: the load may be in a branch of
    that select, and may not be valid where that branch is not taken."""
    dim = [stage.dims[k]]
    return any(depends(e.args[0], dim) for e in choices) and any(
        e.buffer not in stage.buffers and not depends(e, dim) for d in stage.definitions for e in d.loads
    )


def _moving(stage: Stage, dim: str) -> set[tuple[str, int]] | None:
    """The buffers and axes along which loads move with the dim without limits; None if some index may have limits."""
    axes: set[tuple[str, int]] = set()
    for load in stage.pure.loads:
        for axis, index in enumerate(load.indices):
            if dim in names(index):
                if not _goes_far(index, dim):
                    return None
                axes.add((load.buffer, axis))
    return axes


def _goes_far(index: Expr, dim: str) -> bool:
    """Whether an index is unbounded if the dim that it depends on is, such as x, 2*x + r and x//2 - 1."""
    while isinstance(index, Op) and index.dtype is INDEX and len(index.args) == 2:
        a, b = index.args if dim in names(index.args[0]) else index.args[::-1]
        by = int(b.value) if isinstance(b, Const) else 0
        scaled = by > 0 and (index.op == "mul" or index.op == "floordiv" and a is index.args[0])
        if dim in names(b) or not (scaled or index.op in ("add", "sub")):
            return False
        index = a
    return isinstance(index, Var)


def _moves(graph: Graph, moving: Iterable[tuple[str, int]], computable: Container[tuple[str, int]]) -> bool:
    """Whether all of these buffers belong to stages that are computable anywhere along these axes. Inputs never are."""
    return all(b in graph.producer and (graph.producer[b].name, axis) in computable for b, axis in moving)


def _here(stage: Stage) -> Box:
    """One point of a stage."""
    return tuple(Interval.point(var(dim)) for dim in stage.dims)


def _along(stage: Stage, k: int) -> Box:
    """All points of a stage that differ from one point along a single dim."""
    return tuple(EVERYTHING if j == k else side for j, side in enumerate(_here(stage)))


def _reads(stage: Stage, box: Box) -> dict[str, Box]:
    return stage_reads(stage, with_own_updates(stage, box, {}), {})


def _follows(
    graph: Graph, stage: Stage, k: int, usual: Mapping[str, Box], computable: Container[tuple[str, int]], facts: Facts
) -> bool | None:
    """Whether the stage is computable anywhere along dim k, given the results for the stages that it reads; None if
    these do not suffice. `usual` has the boxes that one point reads."""
    boxes = _reads(stage, _along(stage, k))
    limited = False
    for buffer, box in boxes.items():
        if buffer in graph.input:
            if not _inside(box, usual[buffer], graph.input[buffer], facts):
                return False
            continue
        for j, (side, other) in enumerate(zip(box, usual[buffer], strict=True)):
            if _is_same(side, other) or (graph.producer[buffer].name, j) in computable:
                continue
            if not side.bounded:
                return False
            limited = True
    return None if limited else True


def _follows_from_inputs(graph: Graph, stage: Stage, k: int, usual: Mapping[str, Box], facts: Facts) -> bool:
    """Whether bounds inference from the stage to the inputs shows that it is computable anywhere along dim k. `usual`
    has the boxes that one point requires."""
    boxes = required(graph, {stage.name: _along(stage, k)}, {})
    return all(_inside(boxes[i.name], usual[i.name], i, facts) for i in graph.inputs if i.name in boxes)


def _inside(box: Box, usual: Box, source: InputInfo, facts: Facts) -> bool:
    """Whether each side of a box is the usual one, and so does not depend on the dim, or lies inside the input."""
    for axis, (side, other) in enumerate(zip(box, usual, strict=True)):
        if _is_same(side, other):
            continue
        if not side.bounded:
            return False
        low, high = (expr(e, INDEX) for e in (side.low, side.high))
        if not (facts.ge(low, const(0, INDEX)) and facts.ge(source.size(axis) - 1, high)):
            return False
    return True


def _is_same(a: Interval, b: Interval) -> bool:
    if not (a.bounded and b.bounded):
        return False
    return all(same(expr(x, INDEX), expr(y, INDEX)) for x, y in ((a.low, b.low), (a.high, b.high)))
