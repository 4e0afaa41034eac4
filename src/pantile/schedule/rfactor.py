"""rfactor: a reduction in two steps, by rewriting the pipeline before its loops are scheduled.

    s[] = 0                                          s_u[u] = 0
    s[] += img[r.y, r.x]   over r.y, r.x      ->     s_u[u] += img[u, r.x]     over r.x
                                                     s[] = 0
                                                     s[] += s_u[r.y]           over r.y

Several loops may be factored out at once. Splits of reduction loops before rfactor first become part of the domain, so
that the resulting loops can be factored out. The remaining directives of the stage apply to the combining update.
"""

from __future__ import annotations

import math
from dataclasses import replace
from weakref import WeakKeyDictionary

from ..dataclass import dataclass
from ..errors import UserError
from ..expr import build
from ..expr.nodes import Expr, Load, const, coordinate, op
from ..expr.types import INDEX
from ..expr.visit import substitute
from ..graph.nodes import Definition, Graph, ReductionDim, Stage
from .associative import Associative, associative
from .directives import KINDS, Directive, StageSchedule
from .refuse import did_you_mean, refuse
from .schedule import Schedule
from .updates import constant


def factor_reductions(graph: Graph, schedule: Schedule, strict: bool) -> tuple[Graph, Schedule]:
    """Apply all rfactor directives. The remaining schedule has none, except on pure definitions, where they are
    errors."""
    waiting = [s for s in schedule.values() if "rfactor" in s.verbs]
    # A stage of partial results may itself be factored, so its directives wait until it exists.
    while ready := [s for s in waiting if s.name in graph.stage]:
        graph, remaining = _factor_stage(graph, ready[0], strict)
        schedule = schedule.replace(remaining)
        waiting.remove(ready[0])
    return graph, schedule


def _factor_stage(graph: Graph, schedule: StageSchedule, strict: bool) -> tuple[Graph, StageSchedule]:
    """Replay a stage's directives. At an rfactor, apply earlier directives on the same update to the domain."""
    remaining: list[Directive] = []
    current = 0
    for d in schedule.directives:
        if d.verb in ("pure", "update"):
            current = int(d.args[0]) + 1 if d.verb == "update" else 0
        if d.verb != "rfactor" or not 0 < current <= len(graph.stage[schedule.name].updates):
            remaining.append(d)
            continue
        before = _directives_of(remaining, current)
        graph = _apply_rfactor(graph, schedule.name, current, d, strict, [remaining[i] for i in before])
        remaining = [k for i, k in enumerate(remaining) if i not in before]
    return graph, StageSchedule(schedule.name, tuple(remaining))


def _apply_rfactor(graph: Graph, name: str, index: int, d: Directive, strict: bool, before: list[Directive]) -> Graph:
    """Apply one rfactor, once per pipeline: hundreds of schedules of a search have the same one, and analyses cache
    their results with the graph that they get."""
    known = _KNOWN.setdefault(graph, {})
    arguments = (name, index, d, strict, *before)
    if arguments not in known:
        known[arguments] = _Rfactor(graph, graph.stage[name], index, d, strict).apply(before)
    return known[arguments]


def _directives_of(directives: list[Directive], definition: int) -> list[int]:
    """The positions of the directives about loops of one definition."""
    current, positions = 0, []
    for i, d in enumerate(directives):
        if d.verb in ("pure", "update"):
            current = int(d.args[0]) + 1 if d.verb == "update" else 0
        elif current == definition and d.verb in _ABOUT_LOOPS:
            positions.append(i)
    return positions


_KNOWN: WeakKeyDictionary[Graph, dict[tuple[object, ...], Graph]] = WeakKeyDictionary()
_ABOUT_LOOPS = ("split", "tile", "reorder", "fuse", *KINDS, "partition", "atomic")


@dataclass(frozen=True, eq=False)
class _Rfactor:
    """One rfactor directive of update `index` (1 is the first) of `stage`."""

    graph: Graph
    stage: Stage
    index: int
    directive: Directive
    strict: bool

    def apply(self, before: list[Directive]) -> Graph:
        """The pipeline with the partial results as a separate stage."""
        update = self.stage.definitions[self.index]
        for d in before:
            update = self._take_split(update, d)
        names = [str(a) for a in self.directive.args]
        loops, new = names[: len(names) // 2], names[len(names) // 2 :]
        dims = [self._find(update, loop, self.directive) for loop in loops]
        for given in (loops, new):
            if len(set(given)) < len(given):
                raise self.no("a loop is named twice", "name each loop once")
        parts = self._parts(update)
        partial = self._partial_stage(update, dims, new, parts)
        updates = list(self.stage.updates)
        updates[self.index - 1] = self._combining_update(update, dims, partial, parts)
        whole = replace(self.stage, updates=tuple(updates))
        stages = [t for s in self.graph.stages for t in ((partial, whole) if s is self.stage else (s,))]
        return replace(self.graph, stages=tuple(stages))

    def no(self, why: str, remedy: str) -> UserError:
        return refuse(self.stage, self.directive, why, remedy)

    @property
    def _params(self) -> set[str]:
        """The names of params. New loops must not have these names, since they become coordinates of the stage of
        partial results."""
        return {p.name for p in self.graph.params}

    def _find(self, update: Definition, loop: str, d: Directive) -> ReductionDim:
        for r in update.domain:
            if r.name == loop:
                return r
        known = did_you_mean(loop, [r.name for r in update.domain])
        raise refuse(self.stage, d, f"update {self.index - 1} has no reduction loop {loop!r}", known)

    def _parts(self, update: Definition) -> Associative:
        parts = associative(self.stage, update)
        if parts is None:
            raise self.no(
                f"update {self.index - 1} does not combine each value with a new one by +, *, minimum, "
                "maximum, &, | or ^, nor is it pt.argmin or pt.argmax, so it cannot be cut into parts",
                "leave it whole",
            )
        if self.strict and not parts.is_exact:
            raise self.no(
                "partial sums of floats round differently, and strict=True forbids that",
                "drop rfactor, or compile without strict",
            )
        return parts

    def _take_split(self, update: Definition, d: Directive) -> Definition:
        """The update with a reduction dim split in two."""
        if d.verb != "split":
            raise self.no(
                f"{d} comes before it on the same update, and only splits of reduction loops may",
                f"write {d} after rfactor, or on the stage of partial results",
            )
        old, outer, inner, factor = str(d.args[0]), str(d.args[1]), str(d.args[2]), int(d.args[3])
        dim = self._find(update, old, d)
        names = [r.name for r in update.domain if r is not dim]
        if outer == inner or {outer, inner} & {*names, *self.stage.dims, *self._params}:
            raise self.no(f"{d} before it uses a name twice", "choose other names")
        return split_domain(update, dim, outer, inner, factor)

    def _partial_stage(
        self, update: Definition, factored: list[ReductionDim], new: list[str], parts: Associative
    ) -> Stage:
        """The stage of partial results, one for each value of the factored loops, which are its first dims."""
        stage = self.stage
        rest = tuple(r for r in update.domain if all(r is not f for f in factored))
        name = self._partial_name(new, {*stage.dims, *(r.name for r in rest)})
        dims = (*new, *stage.dims)
        point = tuple(map(coordinate, dims))
        pure = Definition(point, parts.start, (), None, update.where)
        result = Stage(name, dims, stage.dtypes, pure, (), stage.where)
        rename = {r.name: coordinate(v) for r, v in zip(factored, new, strict=True)}
        indices = (*point[: len(new)], *(substitute(i, rename) for i in update.indices))
        own = tuple(Load(t, 1, b, indices) for t, b in zip(stage.dtypes, result.buffers, strict=True))
        values = parts.step(own, rename)
        condition = None if update.condition is None else substitute(update.condition, rename)
        return replace(result, updates=(Definition(indices, values, rest, condition, update.where),))

    def _partial_name(self, new: list[str], taken: set[str]) -> str:
        """The name of the stage of partial results, after a check that its dims may have the names `new`."""
        for var in new:
            if var in taken:
                raise self.no(f"{var!r} already names a loop of {self.stage.name}", "choose another name")
            if var in self._params:
                raise self.no(f"{var!r} already names a param", "choose another name")
        name = "_".join([self.stage.name, *new])
        if name in {*self.graph.stage, *self.graph.input, *self._params}:
            raise self.no(f"the stage of partial results would be called {name!r}, which exists", "choose another name")
        return name

    def _combining_update(
        self, update: Definition, factored: list[ReductionDim], partial: Stage, parts: Associative
    ) -> Definition:
        stage, point = self.stage, tuple(map(coordinate, self.stage.dims))
        place = (*(coordinate(r.name) for r in factored), *point)
        whole, part = (
            tuple(Load(t, 1, b, indices) for t, b in zip(stage.dtypes, buffers, strict=True))
            for buffers, indices in ((stage.buffers, point), (partial.buffers, place))
        )
        values = parts.combine(whole, part)
        return Definition(point, values, tuple(factored), None, update.where)


def split_domain(update: Definition, dim: ReductionDim, outer: str, inner: str, factor: int) -> Definition:
    """Split a reduction dim: r in min..min+n becomes outer in 0..ceil(n/factor) and inner in 0..factor, where
    outer*factor + inner < n."""
    low, length = dim.min, dim.extent
    extent = constant(length)
    count = (length + (factor - 1)) // factor if extent is None else const(math.ceil(extent / factor), INDEX)
    step = coordinate(outer) * factor + coordinate(inner)
    parts = (ReductionDim(outer, const(0, INDEX), count), ReductionDim(inner, const(0, INDEX), const(factor, INDEX)))
    domain = tuple(p for r in update.domain for p in (parts if r is dim else (r,)))
    whole = extent is not None and extent % factor == 0
    # Nothing is read past the end: `within` keeps the required region of the update unchanged. The condition itself is
    # evaluated past the end, so its indices are clamped.
    value = step + low if whole else op("within", step + low, low, low + length - 1)
    condition = _substituted(update.condition, dim.name, build.minimum(step, length - 1) + low)
    if not whole:
        condition = step < length if condition is None else condition & (step < length)
    return Definition(
        tuple(substitute(i, {dim.name: value}) for i in update.indices),
        tuple(substitute(v, {dim.name: value}) for v in update.values),
        domain,
        condition,
        update.where,
    )


def _substituted(e: Expr | None, name: str, value: Expr) -> Expr | None:
    return None if e is None else substitute(e, {name: value})
