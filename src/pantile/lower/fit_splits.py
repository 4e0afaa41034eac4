"""Fit splits: plan + facts -> plan whose split factors are no larger than the extents, for inputs smaller than tiles.

before:  out.split("y", "yo", "yi", 128), y known to have at least 32 rows
after:   out.split("y", "yo", "yi", 32)

A block that fits can shift inwards at the end instead of being clipped, so small inputs get code as good as large ones;
results do not depend on it. Only outputs are fitted: other stages are computed over their required regions.
"""

from __future__ import annotations

from dataclasses import replace

from ..expr.linear import Facts, simplify
from ..graph.nodes import Graph, Output, Stage
from ..schedule.plan import Fuse, Nest, Plan, Split


def fit_splits(graph: Graph, plan: Plan, facts: Facts) -> Plan:
    """The plan with smaller split factors where an output is not known to be as large as they are."""
    stages = dict(plan.stages)
    least = {o.stage: _least_extents(graph.stage[o.stage], o, facts) for o in graph.outputs}
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


def _least_extents(stage: Stage, output: Output, facts: Facts) -> dict[str, int | None]:
    """Lower bounds of the extents of dims, where they are known."""
    return {d: facts.lower(simplify(n, facts)) for d, n in zip(stage.dims, output.shape, strict=True)}


def _fit_nest(nest: Nest, least: dict[str, int | None]) -> Nest:
    extents = dict(least)
    rewrites: list[Split | Fuse] = []
    for r in nest.rewrites:
        if isinstance(r, Split):
            extent = extents.pop(r.old, None)
            fitted = replace(r, factor=_fitted(r.factor, extent))
            extents[r.outer] = None if extent is None else max(1, extent // fitted.factor)
            extents[r.inner] = fitted.factor
            rewrites.append(fitted)
        else:
            outer, inner = extents.pop(r.outer, None), extents.pop(r.inner, None)
            extents[r.fused] = None if outer is None or inner is None else outer * inner
            rewrites.append(r)
    return replace(nest, rewrites=tuple(rewrites))


def _fitted(factor: int, extent: int | None) -> int:
    """The factor, or the largest power of two that fits an extent smaller than it."""
    if extent is None or not 0 < extent < factor:
        return factor
    return 1 << (extent.bit_length() - 1)
