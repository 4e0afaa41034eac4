"""Fit splits: plan + facts -> plan with split factors that do not exceed the extents, for inputs smaller than tiles.

before:  out.split("y", "yo", "yi", 128), y known to have at least 32 rows
after:   out.split("y", "yo", "yi", 32)

A block that fits can shift inwards at the end instead of being clipped, so small inputs get code as good as large ones.
Results do not depend on this. Only outputs are fitted; other stages are computed over their required regions.

Code relies on minimum extents of inputs. They are large enough that every split of an output has whole blocks; for a
smaller input, the minimum is the largest power of two up to its extent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from ..analysis.interval import Interval, interval
from ..analysis.regions import required
from ..expr.build import expr
from ..expr.linear import Facts, simplify
from ..expr.nodes import Const, Expr, Number
from ..expr.types import INDEX
from ..expr.visit import variables
from ..graph.nodes import Graph
from ..target.kinds import Kind, Memory
from .plan import Fuse, Nest, Plan, Split, StagePlan

_Least = dict[str, int | None]  # dim of an output -> lower bound of its extent, where it is known
_KNOWN: WeakKeyDictionary[Graph, dict[tuple[int, ...], dict[str, _Least]]] = WeakKeyDictionary()  # by minimum extents
_LARGEST = 1 << 14  # inputs of at least this extent are never small
_LARGE_BLOCK = 32  # the remainder of a larger block should not be a separate loop
_FAR = 1 << 20  # larger than any block
# (shape, name of an extent, wanted size) -> the least extent that makes the shape large enough.
_KNOWN_LEAST: WeakKeyDictionary[Graph, dict[tuple[Expr, str, int], int | None]] = WeakKeyDictionary()


def fit_splits(graph: Graph, plan: Plan, facts: Facts) -> Plan:
    """The plan with smaller split factors for outputs that are not known to be as large as these."""
    return _fit_plan(plan, _least_of_outputs(graph, facts))


def fit_splits_of_call(graph: Graph, plan: Plan, scalars: Mapping[str, Number]) -> Plan:
    """The plan with the split factors that code for a call has. `scalars` has the extents of the call's inputs."""
    extents = {i.extent(k): int(scalars[i.extent(k)]) for i in graph.inputs for k in range(i.ndim)}
    least = least_extents(large_extents(graph, plan), extents)
    known, key = _KNOWN.setdefault(graph, {}), tuple(least.values())
    if key not in known:
        known[key] = _least_of_outputs(graph, Facts({name: (n, None) for name, n in least.items()}))
    return _fit_plan(plan, known[key])


def _fit_plan(plan: Plan, least: Mapping[str, _Least]) -> Plan:
    stages = dict(plan.stages)
    for name, extents in least.items():
        p = stages[name]
        if all(least.get(other) == extents for other in _with_the_same_loops(plan, name)):
            fitted = [_fit_nest(n, extents) if k == 0 or k in p.within else n for k, n in enumerate(p.nests)]
            stages[name] = replace(p, nests=tuple(fitted))
    return replace(plan, stages=stages)


def _with_the_same_loops(plan: Plan, name: str) -> list[str]:
    """The stages that share loops with a stage by compute_with. All of them are split in the same way."""
    host = plan.stages[name].with_stage or name
    return [n for n, p in plan.stages.items() if host in (n, p.with_stage)]


def _least_of_outputs(graph: Graph, facts: Facts) -> dict[str, _Least]:
    """Lower bounds of the extents of the dims of outputs, where they are known."""
    return {
        o.stage: {d: facts.lower(simplify(n, facts)) for d, n in zip(graph.stage[o.stage].dims, o.shape, strict=True)}
        for o in graph.outputs
    }


def _fit_nest(nest: Nest, least: _Least) -> Nest:
    extents = dict(least)
    rewrites: list[Split | Fuse] = []
    for r in nest.rewrites:
        if isinstance(r, Split):
            extent = extents.pop(r.old, None)
            factor = _fitted(r.factor, extent)
            extents[r.outer] = None if extent is None else max(1, extent // factor)
            extents[r.inner] = factor
            rewrites.append(r if factor == r.factor else replace(r, factor=factor))
        else:
            outer, inner = extents.pop(r.outer, None), extents.pop(r.inner, None)
            extents[r.fused] = None if outer is None or inner is None else outer * inner
            rewrites.append(r)
    return nest if nest.rewrites == tuple(rewrites) else replace(nest, rewrites=tuple(rewrites))


def _fitted(factor: int, extent: int | None) -> int:
    """The factor, or the largest power of two that fits in an extent smaller than the factor."""
    if extent is None or not 0 < extent < factor:
        return factor
    return 1 << (extent.bit_length() - 1)


def least_extents(large: Mapping[str, int], extents: Mapping[str, int]) -> dict[str, int]:
    """The minimum extents that code for a call relies on. `large` has the minimum extents of large inputs."""
    return {name: _least(n, max(1, large.get(name, 1))) for name, n in extents.items()}


def _least(extent: int, large: int) -> int:
    return large if extent >= large else 1 << extent.bit_length() >> 1


def large_extents(graph: Graph, plan: Plan) -> dict[str, int]:
    """The minimum extents of inputs for which every split of the outputs has two whole blocks and no stated domain is
    empty."""
    extents = {i.extent(k) for i in graph.inputs for k in range(i.ndim)}
    known = _KNOWN_LEAST.setdefault(graph, {})
    large: dict[str, int] = {}
    for shape, wanted in (*_two_blocks(graph, plan), *_blocks_with_registers(graph, plan), *_domains(graph)):
        for name in extents & set(variables(shape)):
            key = (shape, name, wanted)
            needed = known[key] if key in known else known.setdefault(key, _extent_for(*key))
            if needed is not None:
                large[name] = max(large.get(name, 1), needed)
    return large


def _two_blocks(graph: Graph, plan: Plan) -> Iterator[tuple[Expr, int]]:
    """Yield the extents of the outputs, with twice the block size of their splits, or of large blocks of their
    producers. Most pipelines use the same dim names everywhere."""
    inner = [p for p in plan.stages.values() if p.compute is None and p.name not in graph.output and _is_cut(p)]
    for o in graph.outputs:
        nest = plan.stages[o.stage].nests[0]
        for dim, shape in zip(graph.stage[o.stage].dims, o.shape, strict=True):
            others = [_block(p.nests[0], dim) for p in inner if dim in p.dim_order]
            block = max([_block(nest, dim), *(n for n in others if n >= _LARGE_BLOCK)])
            if block > 1:
                yield shape, 2 * block


def _blocks_with_registers(graph: Graph, plan: Plan) -> Iterator[tuple[Expr, int]]:
    """Yield the extents of stages at root that threads compute from registers of their block, with the block size of
    their splits: only blocks of a constant size can be distributed to threads."""
    kept = {p.compute.stage: p.compute.loop for p in plan.stages.values() if p.compute and p.memory is Memory.REGISTER}
    inner = [plan.stages[n] for n in kept if n in graph.stage and n not in graph.output]  # not copies or clones
    at_root = [p for p in inner if p.compute is None]
    hosts = [p for p in at_root if any(x.name == kept[p.name] and x.kind is Kind.BLOCK for x in p.nests[0].loops)]
    outputs = {o.stage: tuple(Interval(0, n - 1) for n in o.shape) for o in graph.outputs}
    boxes = required(graph, outputs, {}) if hosts else {}
    for p in hosts:
        for dim, side in zip(graph.stage[p.name].dims, boxes.get(p.name, ()), strict=False):
            block = _block(p.nests[0], dim)
            if block > 1 and side.bounded:
                extent = simplify(expr(side.high, INDEX) - expr(side.low, INDEX) + 1)
                if not isinstance(extent, Const):
                    yield extent, block


def _is_cut(p: StagePlan) -> bool:
    """Whether the pure definition of a stage has large blocks."""
    return any(isinstance(r, Split) and r.factor >= _LARGE_BLOCK for r in p.nests[0].rewrites)


def _domains(graph: Graph) -> Iterator[tuple[Expr, int]]:
    """Yield the extents of stated domains: the consumer of a pyramid level needs at least one pixel of it."""
    return ((extent, 1) for s in graph.stages for _, extent in s.domain or ())


def _block(nest: Nest, dim: str) -> int:
    """The largest factor by which the dim, or a part of it, is split. With warps, the size of a whole block counts: the
    distance between iterations of the outermost part, however often the dim was split."""
    are_whole = any(loop.kind is Kind.WARP for loop in nest.loops)
    parts, block = {dim: 1}, 1  # the distance between iterations of a part
    for r in nest.rewrites:
        if isinstance(r, Split) and r.old in parts:
            each = parts.pop(r.old)
            parts |= {r.outer: each * r.factor, r.inner: each}
            block = max(block, each * r.factor if are_whole else r.factor)
    return block


def _extent_for(shape: Expr, name: str, wanted: int) -> int | None:
    """The least extent that makes `shape` at least `wanted` if all other extents are large, or None if there is
    none."""
    scope = {other: Interval.point(_FAR) for other in variables(shape)}

    def suffices(n: int) -> bool:
        low = interval(shape, {**scope, name: Interval(n, None)}).low
        return isinstance(low, int) and low >= wanted

    low, high = 0, _LARGEST
    if not suffices(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
