"""panels: a dim of a stage becomes two dims, by rewriting the pipeline before its loops are scheduled.

    b[k, j] = img[k, j]                      b[k, p, lane] = img[k, clamp(8*p + lane, 0, n - 1)]
    out[i, j] = sum of a[i, k]*b[k, j]  ->   out[i, j] = sum of a[i, k]*b[k, j//8, j%8]

All panels are computed as a whole, so that loops over lanes need no tails: the last panel extends beyond the required
region. Its superfluous elements are computed too, so inputs are clamped, and other stages must be computable anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from ..analysis.overcompute import computable_anywhere
from ..dataclass import dataclass
from ..errors import UserError
from ..expr.build import maximum, minimum
from ..expr.linear import Facts
from ..expr.nodes import Expr, Load, Var, const, coordinate
from ..expr.types import INDEX
from ..expr.visit import depends, same
from ..graph.nodes import Graph, Stage
from .clones import rewritten
from .directives import Directive, StageSchedule
from .refuse import did_you_mean, refuse
from .schedule import Schedule

T = TypeVar("T")
VERB = "panels"


@dataclass(frozen=True)
class _Panels:
    """A dim that was split: dim = outer*factor + inner."""

    dim: str
    outer: str
    inner: str
    factor: int
    directive: Directive

    @property
    def whole(self) -> Expr:
        return coordinate(self.outer) * self.factor + coordinate(self.inner)


def make_panels(graph: Graph, schedule: Schedule) -> tuple[Graph, Schedule]:
    """Apply all `panels` directives. The remaining schedule has none."""
    made: dict[str, list[_Panels]] = {}
    names = [s.name for s in reversed(graph.stages) if s.name in schedule and VERB in schedule[s.name].verbs]
    for name in names:  # consumers come first
        directives = schedule[name].directives
        for d in directives:
            if d.verb == VERB:
                graph = _cut(graph, graph.stage[name], d, made)
        if name in made:
            schedule = schedule.replace(StageSchedule(name, tuple(d for d in directives if d.verb != VERB)))
    if made:
        _check_computable(graph, made)
    return graph, schedule


def _cut(graph: Graph, stage: Stage, d: Directive, made: dict[str, list[_Panels]]) -> Graph:
    """The graph with one dim of one stage split."""
    dim, outer, inner = (str(a) for a in d.args[:3])
    before = made.get(stage.name, [])
    _check(graph, stage, d, dim, (outer, inner), {n for p in before for n in (p.dim, p.outer, p.inner)})
    panels = _Panels(dim, outer, inner, int(d.args[3]), d)
    made.setdefault(stage.name, []).append(panels)
    cut = _DimSplitter(graph, stage, panels, made)
    return replace(graph, stages=tuple(cut.stage_of(s) for s in graph.stages))


def _check(graph: Graph, stage: Stage, d: Directive, dim: str, names: tuple[str, str], used: Collection[str]) -> None:
    def no(why: str, remedy: str) -> UserError:
        return refuse(stage, d, why, remedy)

    if dim not in stage.dims:
        raise no(f"{stage.name} has no dim {dim!r}", did_you_mean(dim, stage.dims))
    if stage.name in graph.output:
        raise no("an output is no larger than the caller's array", "cut the dims of a copy of it, such as by copy_out")
    if stage.domain is not None:
        raise no(f"the domain of {stage.name} is stated, and a panel may stick out of it", "use split_storage")
    loops = {r.name for u in stage.updates for r in u.domain}
    taken = {*stage.dims, *loops, *used, *(p.name for p in graph.params)}
    if names[0] == names[1] or not taken.isdisjoint(names):
        raise no("two dims, loops or params would have one name", "choose other names")


def _check_computable(graph: Graph, made: Mapping[str, list[_Panels]]) -> None:
    """Refuse panels that extend to where a stage cannot be computed, because the stages that it reads cannot be
    computed there."""
    some_pixels = Facts({i.extent(k): (1, None) for i in graph.inputs for k in range(i.ndim)})
    anywhere = computable_anywhere(replace(graph, stages=tuple(map(_unconditional, graph.stages))), some_pixels)
    for name, panels in made.items():
        stage = graph.stage[name]
        for p in panels:
            if p.outer in stage.dims and (name, stage.dims.index(p.outer)) not in anywhere:
                raise refuse(
                    stage,
                    p.directive,
                    f"a panel may stick out of what is needed along {p.dim}, and what {name} reads need not be there",
                    "use split_storage, or cut what it reads into panels, too",
                )


def _unconditional(stage: Stage) -> Stage:
    """The stage without conditions: its conditional loads must be computable as well."""
    if all(u.condition is None for u in stage.updates):
        return stage
    return replace(stage, updates=tuple(replace(u, condition=None) for u in stage.updates))


@dataclass(frozen=True)
class _InputClamper:
    """Clamps loads of inputs whose indices depend on a dim. Loads of the required region are in bounds in any case."""

    graph: Graph
    dim: str

    def read(self, e: Expr) -> Expr | None:
        source = self.graph.input.get(e.buffer) if isinstance(e, Load) else None
        if source is None or not isinstance(e, Load) or not depends(e, [self.dim]):
            return None
        indices = [_inside(i, source.size(k)) if depends(i, [self.dim]) else i for k, i in enumerate(e.indices)]
        return Load(e.dtype, e.lanes, e.buffer, tuple(indices), e.mask)


def _inside(index: Expr, extent: Expr) -> Expr:
    return minimum(maximum(index, const(0, INDEX)), extent - 1)


@dataclass(frozen=True, eq=False)
class _DimSplitter:
    """Splits one dim in its stage and wherever this stage is read. `made` has the panels so far, by stage."""

    graph: Graph
    stage: Stage
    panels: _Panels
    made: Mapping[str, list[_Panels]]

    def stage_of(self, s: Stage) -> Stage:
        alike = [p for p in self.made.get(s.name, ()) if p.factor == self.panels.factor]

        def parts(index: Expr) -> tuple[Expr, Expr]:
            """The panel and the lane of an index: the dims of the reading stage itself if it is split in the same
            way."""
            own = next((p for p in alike if same(index, p.whole)), None)
            if own is not None:
                return coordinate(own.outer), coordinate(own.inner)
            return index // self.panels.factor, index % self.panels.factor

        def place(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
            return self._replace_dim(indices, parts(indices[self.stage.dims.index(self.panels.dim)]))

        def read(e: Expr) -> Expr | None:
            if not isinstance(e, Load) or e.buffer not in self.stage.buffers:
                return None
            return Load(e.dtype, e.lanes, e.buffer, place(e.indices), e.mask)

        if s is not self.stage:
            reads = any(e.buffer in self.stage.buffers for d in s.definitions for e in d.loads)
            return rewritten(s, read) if reads else s
        whole = {self.panels.dim: self.panels.whole}
        s = rewritten(rewritten(s, _InputClamper(self.graph, self.panels.dim).read), lambda e: _instead(e, whole))
        s = rewritten(s, read)
        pure, *updates = (replace(d, indices=place(d.indices)) for d in s.definitions)
        dims = self._replace_dim(s.dims, (self.panels.outer, self.panels.inner))
        return replace(s, dims=dims, pure=pure, updates=tuple(updates))

    def _replace_dim(self, of_dims: tuple[T, ...], parts: tuple[T, T]) -> tuple[T, ...]:
        axis = self.stage.dims.index(self.panels.dim)
        return (*of_dims[:axis], *parts, *of_dims[axis + 1 :])


def _instead(e: Expr, values: Mapping[str, Expr]) -> Expr | None:
    return values.get(e.name) if isinstance(e, Var) else None
