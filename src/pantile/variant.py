"""Variants: what code may assume about the arrays of a call. A pipeline has a few, each compiled on first use.

Code is specialized on strides that are small constants (which axis of each array is contiguous, and the distance
between pixels of interleaved channels), and on inputs large enough that every split of the outputs has whole blocks.
Smaller inputs get variants of their own, one per power of two, with smaller blocks (`lower.fit_splits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .analysis.interval import Interval, interval
from .dataclass import dataclass
from .expr.linear import Facts
from .expr.nodes import Const, Expr
from .expr.visit import variables
from .graph.nodes import Graph
from .ir.nodes import Strides
from .runtime.arguments import LARGEST_STRIDE
from .schedule.plan import Nest, Plan, Split
from .target.description import INDEX_BITS
from .target.gpu import LONGEST_ACCESS

_LARGEST = 1 << 14  # inputs of at least this extent are never small
_LARGE_BLOCK = 32  # the remainder of a larger block should not be a loop of its own
_FAR = 1 << 20  # larger than any block


Aligned = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Variant:
    """The known strides of buffers and minimum extents of inputs; `small` if some are smaller than the blocks."""

    strides: tuple[tuple[str, Strides], ...]
    least: tuple[tuple[str, int], ...] = ()
    small: bool = False
    aligned: Aligned = ()  # alignment in bytes of addresses and strides of buffers, on GPUs
    far: bool = False  # indices are wider than usual for the target, because some array has too many elements
    # Extents of inputs along contiguous axes that are multiples of a number: whole longest accesses, on GPUs.
    multiples: tuple[tuple[str, int], ...] = ()

    def facts(self) -> Facts:
        """The variant as bounds and residue classes, for proofs."""
        return Facts({name: (n, None) for name, n in self.least}, {name: (n, 0) for name, n in self.multiples})


class Variants:
    """The variants of a scheduled pipeline."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._inputs = graph.inputs
        self.extents = [i.extent(k) for i in graph.inputs for k in range(i.ndim)]
        self._shapes = {i.name: [i.size(k) for k in range(i.ndim)] for i in graph.inputs}
        self._shapes |= {b: list(o.shape) for o in graph.outputs for b in graph.stage[o.stage].buffers}
        self._large = _large_extents(graph, plan)
        self._aligned = LONGEST_ACCESS if plan.target.has_blocks else 0
        self._is_wide = plan.target.index_bits == INDEX_BITS

    def of(
        self,
        strides: tuple[tuple[str, Strides], ...],
        extents: Mapping[str, int],
        aligned: Aligned = (),
        far: bool = False,
    ) -> Variant:
        """The variant for arrays of this layout and inputs of these extents. `far`: 32 bits cannot count the
        elements."""
        small = any(extents[e] < large for e, large in self._large.items())
        least = tuple((e, self._least(e, extents[e])) for e in self.extents)
        whole = tuple((e, n) for e, n in self._rows(strides) if extents[e] % n == 0)
        return Variant(strides, least, small, aligned, far and not self._is_wide, whole)

    @property
    def usual(self) -> Variant:
        """The variant for large arrays in C order."""
        strides = tuple((name, _in_c_order(shape)) for name, shape in self._shapes.items())
        aligned = tuple((name, self._aligned) for name in self._shapes if self._aligned)
        least = tuple((e, self._large.get(e, 1)) for e in self.extents)
        return Variant(strides, least, aligned=aligned, multiples=tuple(self._rows(strides)))

    def _rows(self, strides: tuple[tuple[str, Strides], ...]) -> Iterator[tuple[str, int]]:
        """Extents of inputs along contiguous axes, and the number of elements of a longest access."""
        for i in self._inputs:
            elements = self._aligned // i.dtype.bytes
            if elements > 1:
                yield from ((i.extent(k), elements) for k, stride in enumerate(dict(strides)[i.name]) if stride == 1)

    def _least(self, name: str, extent: int) -> int:
        """The extent that code may rely on: large enough for blocks, or the power of two below."""
        large = max(1, self._large.get(name, 1))
        return large if extent >= large else 1 << extent.bit_length() >> 1


def _in_c_order(shape: list[Expr]) -> Strides:
    """The strides that code is specialized on for C order: contiguous elements, and pixels of a few channels."""
    if not shape:
        return ()
    channels = shape[-1].value if isinstance(shape[-1], Const) else None
    near = [int(channels)] if len(shape) > 1 and channels is not None and 2 <= channels <= LARGEST_STRIDE else []
    return (*[None] * (len(shape) - 1 - len(near)), *near, 1)


def _large_extents(graph: Graph, plan: Plan) -> dict[str, int]:
    """The extents of inputs with two whole blocks in every split of the outputs and no empty stated domain."""
    extents = {i.extent(k) for i in graph.inputs for k in range(i.ndim)}
    large: dict[str, int] = {}
    for shape, wanted in (*_two_blocks(graph, plan), *_domains(graph)):
        for name in extents & set(variables(shape)):
            needed = _extent_for(shape, name, wanted)
            if needed is not None:
                large[name] = max(large.get(name, 1), needed)
    return large


def _two_blocks(graph: Graph, plan: Plan) -> Iterator[tuple[Expr, int]]:
    """Extents of the outputs, and twice the block size of their splits, or of large blocks of their producers: most
    pipelines use the same names of dims everywhere."""
    inner = [p for p in plan.stages.values() if p.compute is None and p.name not in graph.output]
    for o in graph.outputs:
        nest = plan.stages[o.stage].nests[0]
        for dim, shape in zip(graph.stage[o.stage].dims, o.shape, strict=True):
            others = [_block(p.nests[0], dim) for p in inner if dim in p.dim_order]
            block = max([_block(nest, dim), *(n for n in others if n >= _LARGE_BLOCK)])
            if block > 1:
                yield shape, 2 * block


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
