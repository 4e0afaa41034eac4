"""Fit splits: plan + facts -> plan whose split factors are no larger than the extents, for inputs smaller than tiles.

before:  out.split("y", "yo", "yi", 128), y known to have at least 32 rows
after:   out.split("y", "yo", "yi", 32)

A block that fits can shift inwards at the end instead of being clipped, so small inputs get code as good as large ones;
results do not depend on it. Only outputs are fitted: other stages are computed over their required regions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from ..expr.linear import Facts, simplify
from ..expr.nodes import Number
from ..graph.nodes import Graph
from .least_extents import large_extents, least_extents
from .plan import Fuse, Nest, Plan, Split

_Least = dict[str, int | None]  # dim of an output -> lower bound of its extent, where it is known
_KNOWN: WeakKeyDictionary[Graph, dict[tuple[int, ...], dict[str, _Least]]] = WeakKeyDictionary()  # by least extents


def fit_splits(graph: Graph, plan: Plan, facts: Facts) -> Plan:
    """The plan with smaller split factors where an output is not known to be as large as they are."""
    return _fit_plan(plan, _least_of_outputs(graph, facts))


def fit_splits_of_call(graph: Graph, plan: Plan, scalars: Mapping[str, Number]) -> Plan:
    """The plan with split factors as code for a call has them; `scalars` has the extents of its inputs."""
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
    """The stages that share loops with a stage by compute_with: all of them are split in the same way."""
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
    """The factor, or the largest power of two that fits an extent smaller than it."""
    if extent is None or not 0 < extent < factor:
        return factor
    return 1 << (extent.bit_length() - 1)
