"""Variants of the code, which differ in their assumptions about the arrays of a call. A pipeline has a few, each
compiled on first use.

Code is specialized on strides that are small constants (the contiguous axis of each array, and the distance between
pixels with interleaved channels), and on inputs large enough that every split of the outputs has whole blocks. Smaller
inputs get variants of their own, one per power of two, with smaller blocks (`schedule/fit_splits.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .dataclass import dataclass
from .expr.linear import Facts
from .expr.nodes import Const, Expr, Number
from .graph.nodes import Graph
from .ir.nodes import Strides
from .runtime.arguments import LARGEST_STRIDE
from .schedule.fit_splits import large_extents, least_extents
from .schedule.plan import Plan
from .target.description import INDEX_BITS
from .target.gpu import LONGEST_ACCESS

Aligned = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Variant:
    """The known strides of buffers and minimum extents of inputs. `small` says that some are smaller than the
    blocks."""

    strides: tuple[tuple[str, Strides], ...]
    least: tuple[tuple[str, int], ...] = ()
    small: bool = False
    aligned: Aligned = ()  # on GPUs: alignment in bytes of addresses and strides of buffers
    far: bool = False  # indices are wider than usual for the target, because some array has too many elements
    # On GPUs: extents of inputs along contiguous axes that are multiples of the elements of a longest access.
    multiples: tuple[tuple[str, int], ...] = ()

    def facts(self) -> Facts:
        """The assumptions as bounds and residue classes, for proofs."""
        return Facts({name: (n, None) for name, n in self.least}, {name: (n, 0) for name, n in self.multiples})


class Variants:
    """The variants of a scheduled pipeline."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._inputs = graph.inputs
        self.extents = [i.extent(k) for i in graph.inputs for k in range(i.ndim)]
        self._shapes = {i.name: [i.size(k) for k in range(i.ndim)] for i in graph.inputs}
        self._shapes |= {b: list(o.shape) for o in graph.outputs for b in graph.stage[o.stage].buffers}
        self._large = large_extents(graph, plan)
        self._aligned = LONGEST_ACCESS if plan.target.has_blocks else 0
        self._is_wide = plan.target.index_bits == INDEX_BITS

    def of(
        self,
        strides: tuple[tuple[str, Strides], ...],
        extents: Mapping[str, int],
        aligned: Aligned = (),
        far: bool = False,
    ) -> Variant:
        """The variant for arrays with this layout and inputs with these extents. `far` says that 32 bits cannot count
        the elements."""
        small = any(extents[e] < large for e, large in self._large.items())
        least = tuple(least_extents(self._large, {e: extents[e] for e in self.extents}).items())
        whole = tuple((e, n) for e, n in self._rows(strides) if extents[e] % n == 0)
        return Variant(strides, least, small, aligned, far and not self._is_wide, whole)

    @property
    def usual(self) -> Variant:
        """The variant for large arrays in C order."""
        least = tuple((e, self._large.get(e, 1)) for e in self.extents)
        return Variant(self._c_order, least, aligned=self._of_new_arrays, multiples=tuple(self._rows(self._c_order)))

    def in_c_order(self, scalars: Mapping[str, Number]) -> Variant:
        """The variant for arrays in C order and inputs with these extents."""
        return self.of(self._c_order, {e: int(scalars[e]) for e in self.extents}, self._of_new_arrays)

    @property
    def _c_order(self) -> tuple[tuple[str, Strides], ...]:
        return tuple((name, _in_c_order(shape)) for name, shape in self._shapes.items())

    @property
    def _of_new_arrays(self) -> Aligned:
        return tuple((name, self._aligned) for name in self._shapes if self._aligned)

    def _rows(self, strides: tuple[tuple[str, Strides], ...]) -> Iterator[tuple[str, int]]:
        """The extents of inputs along contiguous axes, each with the number of elements of a longest access."""
        for i in self._inputs:
            elements = self._aligned // i.dtype.bytes
            if elements > 1:
                yield from ((i.extent(k), elements) for k, stride in enumerate(dict(strides)[i.name]) if stride == 1)


def _in_c_order(shape: list[Expr]) -> Strides:
    """The strides that code is specialized on for C order: contiguous elements, and pixels of a few channels."""
    if not shape:
        return ()
    channels = shape[-1].value if isinstance(shape[-1], Const) else None
    near = [int(channels)] if len(shape) > 1 and channels is not None and 2 <= channels <= LARGEST_STRIDE else []
    return (*[None] * (len(shape) - 1 - len(near)), *near, 1)
