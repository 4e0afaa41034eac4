"""The passes on a graph and its plan, before loops are built. They change what stages compute, and in which types."""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from ..analysis.conversions import conversions
from ..analysis.inlining import as_expression, substituted
from ..analysis.narrowing import narrowed_values
from ..expr.build import cast
from ..expr.nodes import Cast, Expr, Load
from ..expr.types import DType
from ..expr.visit import Key, key, loaded, transform
from ..graph.nodes import Definition, Graph, Stage
from ..schedule.plan import Plan


def inline(graph: Graph, plan: Plan) -> Graph:
    """The graph with only the planned stages. Stages without loops of their own are substituted into their
    consumers."""
    return substituted(graph, [s.name for s in graph.stages if s.name not in plan.stages])


def expand(graph: Graph, plan: Plan) -> tuple[Graph, Plan]:
    """Write out reductions whose loops are all unrolled inside of those of the pure definition, as part of this
    definition.

    before:  for x: f[x] = 0; unrolled for r in 0..3: f[x] += img[x + r]
    after:   for x: f[x] = 0 + img[x] + img[x + 1] + img[x + 2]
    """
    unrolled = [s.name for s in graph.stages if plan.stages[s.name].is_written_out]
    stages = tuple(as_expression(s) if s.name in unrolled else s for s in graph.stages)
    pure = {name: replace(plan.stages[name], nests=plan.stages[name].nests[:1], within={}) for name in unrolled}
    return replace(graph, stages=stages), replace(plan, stages={**plan.stages, **pure})


def convert(graph: Graph, plan: Plan) -> Graph:
    """Store stages in the type to which the long sums that read them convert their values.

    before:  src[x] = img[clamp(x)] as uint8           f[x] += float32(src[x + r])*kernel[r]
    after:   src[x] = float32(img[clamp(x)])           f[x] += src[x + r]*kernel[r]

    This takes one conversion per value instead of one per term: converting bytes to floats takes several instructions,
    a product only one. Operands of tensor cores are not converted.
    """
    kept = {e.buffer for s in graph.stages for d in _of_tensor_cores(s, plan) for e in d.loads}
    wider = {name: t for name, t in conversions(graph).items() if name not in kept}
    return replace(graph, stages=tuple(_converted(s, wider) for s in graph.stages)) if wider else graph


def _converted(s: Stage, wider: dict[str, DType]) -> Stage:
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Cast) and isinstance(e.value, Load) and e.dtype is wider.get(e.value.buffer):
            return replace(e.value, dtype=e.dtype)  # replaces the conversion
        return None

    new, wide = s.changed(lambda d: d.changed(lambda e: transform(e, change, memo))), wider.get(s.name)
    if wide is None:
        return new
    return replace(new, dtypes=(wide,), pure=replace(new.pure, values=(cast(wide, new.pure.values[0]),)))


def share_indices(graph: Graph) -> Graph:
    """Make equal index expressions of a definition a single node, which passes process once.

    before:  f[y, x] = g[y + 1, x] + g[y + 1, x + 1]        four indices
    after:   three of them: a stage that reads a thousand pixels around its own reads a few rows and columns
    """
    return replace(graph, stages=tuple(s.changed(_with_shared_indices) for s in graph.stages))


def _with_shared_indices(d: Definition) -> Definition:
    known: dict[Key, Expr] = {}
    memo: dict[int, Expr] = {}

    def change(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        places = tuple([known.setdefault(key(i), i) for i in e.indices])
        return None if all(map(is_, places, e.indices)) else Load(e.dtype, e.lanes, e.buffer, places, e.mask)

    return _with_values(d, tuple([transform(e, change, memo, loaded) for e in d.values]))


def narrow(graph: Graph, plan: Plan) -> Graph:
    """Compute integer arithmetic in 16 bits if it certainly fits.

    before:  uint8((uint32(a[x]) + uint32(a[x + 1]) + uint32(a[x + 2]))//3)     with a of type uint8
    after:   uint8((uint16(a[x]) + uint16(a[x + 1]) + uint16(a[x + 2]))//3)
    """

    def narrowed(s: Stage) -> Stage:
        kept = _of_tensor_cores(s, plan)
        return s.changed(lambda d: d if d in kept else _with_values(d, narrowed_values(d)))

    return replace(graph, stages=tuple(map(narrowed, graph.stages)))


def _of_tensor_cores(s: Stage, plan: Plan) -> list[Definition]:
    """The definitions of a stage that tensor cores compute."""
    nests = plan.stages[s.name].nests if s.name in plan.stages else ()
    return [d for d, nest in zip(s.definitions, nests, strict=False) if nest.tensor_core]


def _with_values(d: Definition, values: tuple[Expr, ...]) -> Definition:
    return d if all(map(is_, values, d.values)) else replace(d, values=values)
