"""Convert: a stage is stored in the type to which long sums convert it. (graph -> graph)

before:  src[x] = img[clamp(x)] as uint8           f[x] += float32(src[x + r])*kernel[r]
after:   src[x] = float32(img[clamp(x)])           f[x] += src[x + r]*kernel[r]

One conversion per value instead of one per term: bytes to floats are several instructions, a product is one.
"""

from __future__ import annotations

from dataclasses import replace

from ..analysis.conversions import conversions
from ..expr.build import cast
from ..expr.nodes import Cast, Expr, Load
from ..expr.types import DType
from ..expr.visit import transform
from ..graph.nodes import Graph, Stage


def convert(graph: Graph) -> Graph:
    """Store stages in the type to which the sums that read them convert their values."""
    wider = conversions(graph)
    return replace(graph, stages=tuple(_stage(s, wider) for s in graph.stages)) if wider else graph


def _stage(s: Stage, wider: dict[str, DType]) -> Stage:
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Cast) and isinstance(e.value, Load) and e.dtype is wider.get(e.value.buffer):
            return replace(e.value, dtype=e.dtype)  # rather than a further conversion
        return None

    new, wide = s.changed(lambda d: d.changed(lambda e: transform(e, change, memo))), wider.get(s.name)
    if wide is None:
        return new
    return replace(new, dtypes=(wide,), pure=replace(new.pure, values=(cast(wide, new.pure.values[0]),)))
