"""The least extents of inputs that code relies on: large enough that every split of an output has whole blocks, or,
for a smaller input, the power of two below its extent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from weakref import WeakKeyDictionary

from ..analysis.interval import Interval, interval
from ..expr.nodes import Expr
from ..expr.visit import variables
from ..graph.nodes import Graph
from .plan import Nest, Plan, Split, StagePlan

_LARGEST = 1 << 14  # inputs of at least this extent are never small
_LARGE_BLOCK = 32  # the remainder of a larger block should not be a loop of its own
_FAR = 1 << 20  # larger than any block
# Extents that make a shape large enough, by the shape, the name of the extent, and what is large enough.
_KNOWN: WeakKeyDictionary[Graph, dict[tuple[Expr, str, int], int | None]] = WeakKeyDictionary()


def least_extents(large: Mapping[str, int], extents: Mapping[str, int]) -> dict[str, int]:
    """The least extents of the inputs of a call; `large` are those of large ones."""
    return {name: _least(n, max(1, large.get(name, 1))) for name, n in extents.items()}


def _least(extent: int, large: int) -> int:
    return large if extent >= large else 1 << extent.bit_length() >> 1


def large_extents(graph: Graph, plan: Plan) -> dict[str, int]:
    """The extents of inputs with two whole blocks in every split of the outputs and no empty stated domain."""
    extents = {i.extent(k) for i in graph.inputs for k in range(i.ndim)}
    known = _KNOWN.setdefault(graph, {})
    large: dict[str, int] = {}
    for shape, wanted in (*_two_blocks(graph, plan), *_domains(graph)):
        for name in extents & set(variables(shape)):
            key = (shape, name, wanted)
            needed = known[key] if key in known else known.setdefault(key, _extent_for(*key))
            if needed is not None:
                large[name] = max(large.get(name, 1), needed)
    return large


def _two_blocks(graph: Graph, plan: Plan) -> Iterator[tuple[Expr, int]]:
    """Extents of the outputs, and twice the block size of their splits, or of large blocks of their producers: most
    pipelines use the same names of dims everywhere."""
    inner = [p for p in plan.stages.values() if p.compute is None and p.name not in graph.output and _is_cut(p)]
    for o in graph.outputs:
        nest = plan.stages[o.stage].nests[0]
        for dim, shape in zip(graph.stage[o.stage].dims, o.shape, strict=True):
            others = [_block(p.nests[0], dim) for p in inner if dim in p.dim_order]
            block = max([_block(nest, dim), *(n for n in others if n >= _LARGE_BLOCK)])
            if block > 1:
                yield shape, 2 * block


def _is_cut(p: StagePlan) -> bool:
    """Whether the pure definition of a stage has large blocks."""
    return any(isinstance(r, Split) and r.factor >= _LARGE_BLOCK for r in p.nests[0].rewrites)


def _domains(graph: Graph) -> Iterator[tuple[Expr, int]]:
    """Extents of stated domains: the consumer of a pyramid level needs at least one pixel of it."""
    return ((extent, 1) for s in graph.stages for _, extent in s.domain or ())


def _block(nest: Nest, dim: str) -> int:
    """The largest factor by which the dim, or a part of it, is split."""
    parts, block = {dim}, 1
    for r in nest.rewrites:
        if isinstance(r, Split) and r.old in parts:
            parts |= {r.outer, r.inner}
            block = max(block, r.factor)
    return block


def _extent_for(shape: Expr, name: str, wanted: int) -> int | None:
    """The least extent that makes `shape` at least `wanted` if all other extents are large; None if there is none."""
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
