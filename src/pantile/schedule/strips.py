"""strips: a scan is cut into strips that run in parallel, by rewriting the pipeline before its loops are scheduled.

    f[y] = img[y]                               f_s_ends[s]   = the last value of a strip that starts from 0
    f[r] = a*f[r - 1] + b*f[r]  over r    ->    f_s_gains[s]  = the product of a over a strip
                                                f_s_starts[s] = f_s_gains[s - 1]*f_s_starts[s - 1] + f_s_ends[s - 1]
                                                f_s[s, y]     = the scan of strip s, which begins with f_s_starts[s]
                                                f[y]          = f_s[y//8, y%8]

If each value of a scan is a multiple of the previous one plus something else, the scan is linear in its start value.
Strips are then scanned twice, by any number of threads at a time: first from 0, and then from their actual start
values. Only the start values are computed sequentially. Strips begin at multiples of their length, so that several
scans along one dim, such as down and up again, have the same strips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from ..analysis.interval import Interval
from ..analysis.regions import required
from ..dataclass import cached_property, dataclass
from ..errors import InternalError, UserError
from ..expr import build
from ..expr.build import expr
from ..expr.linear import linear, simplify
from ..expr.nodes import Const, Expr, Load, Op, const, coordinate
from ..expr.types import INDEX
from ..expr.visit import each_once, loaded, names, same, substitute, transform, walk
from ..graph.nodes import Definition, Graph, ReductionDim, Stage
from .directives import Directive, StageSchedule
from .refuse import did_you_mean, refuse
from .schedule import Schedule
from .updates import pure_dims

VERB = "strips"


def cut_scans(graph: Graph, schedule: Schedule, strict: bool) -> tuple[Graph, Schedule]:
    """Apply all `strips` directives. The remaining schedule has none, except on pure definitions, where they are
    errors."""
    for stage_schedule in schedule.values() if schedule.has(VERB) else ():
        if VERB in stage_schedule.verbs and stage_schedule.name in graph.stage:
            graph, remaining = _cut_stage(graph, stage_schedule, strict)
            schedule = schedule.replace(remaining)
    return graph, schedule


def _cut_stage(graph: Graph, schedule: StageSchedule, strict: bool) -> tuple[Graph, StageSchedule]:
    """Cut the scans of one stage, in order. Updates before them become separate stages, and updates after the last scan
    stay in the stage."""
    strips = dict[int, Directive]()
    current = 0
    for d in schedule.directives:
        current = _definition(d, current)
        if d.verb == VERB and 0 < current <= len(graph.stage[schedule.name].updates):
            if current in strips:
                raise refuse(graph.stage[schedule.name], d, "this scan runs in strips already", "drop one of the two")
            strips[current] = d
    scans = scans_of(graph, schedule.name, strips, strict)
    graph = scans[-1].in_strips if scans else graph
    remaining = _renumber_updates(graph.stage[schedule.name], schedule.directives, strips)
    return graph, StageSchedule(schedule.name, tuple(remaining))


def scans_of(graph: Graph, name: str, strips: Mapping[int, Directive], strict: bool) -> list[Scan]:
    """The scans of one stage that directives cut. `strips` maps the number of a definition (1 is the first update) to
    its directive."""
    scans = list[Scan]()
    removed = 0
    for k, d in sorted(strips.items()):
        last = scans[-1] if scans else None
        graph = last.in_strips if last else graph
        scans.append(Scan(graph, graph.stage[name], k - removed, d, strict, last, k - 1))
        removed = k
    return scans


def _definition(d: Directive, current: int) -> int:
    """The number of the definition that the directives after this one apply to."""
    return current if d.verb not in ("pure", "update") else int(d.args[0]) + 1 if d.verb == "update" else 0


def _renumber_updates(stage: Stage, directives: tuple[Directive, ...], strips: dict[int, Directive]) -> list[Directive]:
    """The directives that do not concern cut scans, with the new numbers of the remaining updates."""
    remaining, current, removed = list[Directive](), 0, max(strips, default=0)
    for d in directives:
        current = _definition(d, current)
        if current == 0 or current > removed:
            remaining.append(replace(d, args=(current - 1 - removed,)) if d.verb == "update" else d)
        elif d is not strips.get(current) and d.verb != "update":
            scan = min(k for k in strips if k >= current)
            name, why = f"{stage.name}_{strips[scan].args[1]}", "runs in strips"
            if scan > current:
                name, why = f"{name}_given", "comes before a scan in strips"
            raise refuse(stage, d, f"update {current - 1} {why}, as stage {name}", f'write it on("{name}")')
    return remaining


def required_along(graph: Graph, stage: Stage, axis: int) -> Interval | None:
    """The required region of a stage along an axis, or None if nothing is required of it. The stages before it are not
    analyzed."""
    outputs = {o.stage: tuple(Interval(0, n - 1) for n in o.shape) for o in graph.outputs}
    after = replace(graph, stages=graph.stages[[s.name for s in graph.stages].index(stage.name) :])
    box = required(after, outputs, {}).get(stage.name)
    return None if box is None else box[axis]


@dataclass(frozen=True, eq=False)
class Scan:
    """Update `index` of `stage` (1 is the first), cut into strips. `last` is the scan of this stage that was cut before
    it, and `number` is the number of the update as the user counts updates."""

    graph: Graph
    stage: Stage
    index: int
    directive: Directive
    strict: bool
    last: Scan | None
    number: int

    def no(self, why: str, remedy: str) -> UserError:
        return refuse(self.stage, self.directive, why, remedy)

    @cached_property
    def in_strips(self) -> Graph:
        """The pipeline with the stages that make up the scan."""
        self.check()
        made = [*self.before, self.ends, self.gains, self.starts, self.parts]
        taken = {*self.graph.stage, *self.graph.input, *(p.name for p in self.graph.params)}
        for s in made:
            if s.name in taken:
                raise self.no(f"a stage would be called {s.name!r}, which exists", "choose another name")
        stages = [t for s in self.graph.stages for t in ((*made, self.whole) if s is self.stage else (s,))]
        return replace(self.graph, stages=tuple(stages))

    @cached_property
    def update(self) -> Definition:
        return self.stage.definitions[self.index]

    @cached_property
    def loop(self) -> ReductionDim:
        for r in self.update.domain:
            if r.name == str(self.directive.args[0]):
                return r
        known = did_you_mean(str(self.directive.args[0]), [r.name for r in self.update.domain])
        raise self.no(f"update {self.number} has no reduction loop {str(self.directive.args[0])!r}", known)

    @cached_property
    def strip(self) -> str:
        """The dim that counts strips."""
        return str(self.directive.args[1])

    @cached_property
    def length(self) -> int:
        return int(self.directive.args[2])

    @cached_property
    def name(self) -> str:
        return f"{self.stage.name}_{self.strip}"

    @cached_property
    def axis(self) -> int:
        """The axis of the dim along which the scan runs."""
        axes = [k for k, i in enumerate(self.update.indices) if self.loop.name in names(i)]
        if len(axes) != 1:
            raise self.no(f"loop {self.loop.name} does not go along one dim", "leave this update whole")
        return axes[0]

    @cached_property
    def dim(self) -> str:
        return self.stage.dims[self.axis]

    @cached_property
    def step(self) -> int:
        """The direction of the scan: 1 towards larger coordinates, -1 towards smaller ones."""
        return linear(self.update.indices[self.axis]).coefficient(self.loop.name)

    def check(self) -> None:
        """Refuse an update that is not a linear scan of one value along one dim."""
        stage, update = self.stage, self.update
        if len(stage.dtypes) != 1 or len(update.domain) != 1 or update.condition is not None:
            raise self.no("only scans of one value, over one loop without conditions, run in strips", "leave it whole")
        self.check_direction()
        others = tuple(d for d in stage.dims if d != self.dim)
        if pure_dims(stage, update) != others:
            raise self.no(f"the scan along {self.dim} moves along other dims, too", "leave it whole")
        taken = {*stage.dims, self.loop.name, *(p.name for p in self.graph.params)}
        if self.strip in taken:
            raise self.no(f"{self.strip!r} already names a loop of {stage.name}, or a param", "choose another name")
        if self.strict and stage.dtypes[0].is_float:
            raise self.no(
                "scans of floats in strips round differently, and strict=True forbids that",
                "drop strips, or compile without strict",
            )
        self.check_recurrence()

    def check_direction(self) -> None:
        """Refuse a scan whose loop does not move along one dim in steps of 1 or -1."""
        rest = simplify(self.update.indices[self.axis] - self.step * coordinate(self.loop.name))
        if self.step not in (1, -1) or self.loop.name in names(rest) or loaded(rest):
            raise self.no(f"{self.dim} does not go up or down by 1 with loop {self.loop.name}", "leave it whole")

    def check_recurrence(self) -> None:
        """Refuse an update that is not linear in the previous value, or that reads the stage elsewhere."""
        own = [e for e in self.update.loads if e.buffer == self.stage.name]
        if len(self.previous) + len(self.of_place(self.update.indices)) < len(own) or not self.previous:
            raise self.no(
                f"a scan in strips reads {self.stage.name} where it stores, and one place before it", "leave it whole"
            )
        if self.recurrence is None or self.recurrence[0] is None:
            raise self.no("a value is not a multiple of the one before it plus something else", "leave it whole")

    # Coordinates along the dim.

    @cached_property
    def written(self) -> tuple[Expr, Expr]:
        """The first and the last coordinate that the scan stores to."""
        index = self.update.indices[self.axis]
        ends = [substitute(index, {self.loop.name: e}) for e in (self.loop.min, self.loop.min + self.loop.extent - 1)]
        low, high = map(simplify, ends if self.step > 0 else ends[::-1])
        return low, high

    @cached_property
    def accessed(self) -> tuple[Expr, Expr]:
        """The first and the last coordinate that the scan stores to or starts from."""
        low, high = self.written
        return (simplify(low - 1), high) if self.step > 0 else (low, simplify(high + 1))

    @cached_property
    def is_all(self) -> bool:
        """Whether the required region of the stage is within the coordinates that the scan accesses."""
        needed = required_along(self.graph, self.stage, self.axis)
        if needed is None or not needed.bounded:
            return False
        low, high = (expr(end, INDEX) for end in (needed.low, needed.high))
        beyond = [simplify(d) for d in (low - self.accessed[0], self.accessed[1] - high)]
        return all(isinstance(d, Const) and d.value >= 0 for d in beyond)

    def inside(self, place: Expr) -> Expr:
        return (place >= self.written[0]) & (place <= self.written[1])

    def at(self, e: Expr, inner: Expr) -> Expr:
        """An expression of the update at a coordinate of a strip. Loads of the stage itself are replaced by the value
        there before the scan."""
        zero = substitute(self.update.indices[self.axis], {self.loop.name: const(0, INDEX)})
        number = simplify((self.place(inner) - zero) * self.step)  # the value of the scan's only loop
        number = build.minimum(build.maximum(number, self.loop.min), self.loop.min + self.loop.extent - 1)
        given, value = self.given_at(inner), substitute(e, {self.loop.name: number})
        return transform(value, lambda e: given if isinstance(e, Load) and e.buffer == self.stage.name else None)

    def first_to_last(self, number: Expr) -> Expr:
        """The coordinate in a strip that the scan reaches after `number` others."""
        return number if self.step > 0 else self.length - 1 - number

    # The parts of the scan.

    @cached_property
    def before(self) -> tuple[Stage, ...]:
        """The stage of the definitions before the scan, or () if there is only the pure definition."""
        earlier = self.stage.definitions[1 : self.index]
        if not earlier:
            return ()
        name = f"{self.name}_given"
        own = partial(_reading, {self.stage.name: name})
        moved = [replace(d, values=tuple(own(v) for v in d.values)) for d in earlier]
        return (Stage(name, self.stage.dims, self.stage.dtypes, self.stage.pure, tuple(moved), self.stage.where),)

    def given(self, indices: tuple[Expr, ...]) -> Expr:
        """The value at some indices before the scan."""
        if self.before:
            return Load(self.stage.dtypes[0], 1, self.before[0].name, indices)
        return substitute(self.stage.pure.values[0], dict(zip(self.stage.dims, indices, strict=True)))

    def given_at(self, inner: Expr) -> Expr:
        """The value before the scan at a coordinate of a strip, clamped to the accessed coordinates. If the previous
        scan has the same strips, the value is loaded from the same strip."""
        if self.last is not None and self.goes_along(self.last):
            places = {self.last.strip: coordinate(self.strip), self.dim: inner}
            return self.last.load("", *(places.get(d, coordinate(d)) for d in self.last.parts.dims))
        place = build.minimum(build.maximum(self.place(inner), self.accessed[0]), self.accessed[1])
        return self.given(tuple(place if d == self.dim else coordinate(d) for d in self.stage.dims))

    def goes_along(self, other: Scan) -> bool:
        return (
            self.index == 1
            and self.dim == other.dim
            and self.length == other.length
            and all(map(same, self.accessed, other.accessed))
        )

    @cached_property
    def previous(self) -> list[Load]:
        """The loads of the previous value of the scan."""
        here = self.update.indices
        return self.of_place(tuple(i - self.step if k == self.axis else i for k, i in enumerate(here)))

    @cached_property
    def recurrence(self) -> _Parts | None:
        """The value of the update as a linear function of the previous value, or None if it is not linear."""
        return _linear(self.update.values[0], self.previous)

    @cached_property
    def linear(self) -> tuple[Expr, Expr]:
        """The factor of the previous value and the rest: the update stores `factor * previous + rest`."""
        factor, rest = self.recurrence or (None, None)
        if factor is None:
            raise InternalError(f"the scan of {self.stage.name} was not checked to be a linear recurrence")
        return factor, const(0, self.stage.dtypes[0]) if rest is None else rest

    def of_place(self, indices: tuple[Expr, ...]) -> list[Load]:
        """The loads of the stage itself at these indices."""
        own = [e for e in self.update.loads if e.buffer == self.stage.name]
        return [e for e in own if all(same(simplify(i), simplify(j)) for i, j in zip(e.indices, indices, strict=True))]

    def own(self, inner: Expr) -> Expr:
        """The term that is added to the scaled previous value, or the value before the scan where the scan does not
        store. Its loads are unconditional, because conditional loads have separate required regions."""
        inside, given, zero = self.inside(self.place(inner)), self.given_at(inner), const(0, self.stage.dtypes[0])
        parts = _linear(self.linear[1], self.of_place(self.update.indices))
        if parts is None:
            return build.select(inside, self.at(self.linear[1], inner), given)
        factor, rest = (None if e is None else self.at(e, inner) for e in parts)
        if factor is None:
            return build.select(inside, zero if rest is None else rest, given)
        value = build.select(inside, factor, const(1, zero.dtype)) * given
        return value if rest is None else value + build.select(inside, rest, zero)

    def onwards(self, before: Expr, inner: Expr) -> Expr:
        """The previous value times its factor where the scan stores, and 0 elsewhere."""
        value = self.at(self.linear[0], inner) * before
        return build.select(self.inside(self.place(inner)), value, const(0, value.dtype))

    # The stages.

    def place(self, inner: Expr) -> Expr:
        return coordinate(self.strip) * self.length + inner

    @cached_property
    def within(self) -> ReductionDim:
        return ReductionDim(self.loop.name, const(0, INDEX), const(self.length, INDEX))

    def made(self, name: str, dims: tuple[str, ...], pure: Expr, *updates: Definition) -> Stage:
        where = self.update.where
        first = Definition(tuple(map(coordinate, dims)), (pure,), (), None, where)
        return Stage(f"{self.name}{name}", dims, self.stage.dtypes, first, updates, where)

    def changed(self, indices: tuple[Expr, ...], value: Expr, domain: ReductionDim) -> Definition:
        return Definition(indices, (value,), (domain,), None, self.update.where)

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """The dims of stages that hold one value per strip."""
        return tuple(self.strip if d == self.dim else d for d in self.stage.dims)

    def load(self, name: str, *indices: Expr) -> Load:
        return Load(self.stage.dtypes[0], 1, f"{self.name}{name}", indices)

    def of_strip(self, name: str, strip: Expr, dims: tuple[str, ...]) -> Load:
        return self.load(name, *(strip if d == self.strip else coordinate(d) for d in dims))

    @cached_property
    def ends(self) -> Stage:
        inner = self.first_to_last(coordinate(self.loop.name))
        last = self.of_strip("_ends", coordinate(self.strip), self.dims)
        value = self.onwards(last, inner) + self.own(inner)
        indices = tuple(map(coordinate, self.dims))
        return self.made("_ends", self.dims, const(0, last.dtype), self.changed(indices, value, self.within))

    @cached_property
    def gains(self) -> Stage:
        """The product of the factors of each strip, only over the dims that the factors depend on."""
        inner = self.first_to_last(coordinate(self.loop.name))
        factor = self.at(self.linear[0], inner)
        dims = tuple(d for d in self.dims if d == self.strip or d in names(factor))
        last = self.of_strip("_gains", coordinate(self.strip), dims)
        value = self.onwards(last, inner)
        indices = tuple(map(coordinate, dims))
        return self.made("_gains", dims, const(1, last.dtype), self.changed(indices, value, self.within))

    @cached_property
    def starts(self) -> Stage:
        first, last = (e // self.length for e in self.accessed)
        number = coordinate(self.loop.name)
        now = first + number if self.step > 0 else last - number
        before = now - self.step
        gain = self.of_strip("_gains", before, self.gains.dims)
        start, end = (self.of_strip(what, before, self.dims) for what in ("_starts", "_ends"))
        value = gain * start + end
        if value.dtype.is_float:  # an infinite gain times a start of 0 must not give NaN
            value = build.select(start == 0, end, value)
        indices = tuple(now if d == self.strip else coordinate(d) for d in self.dims)
        # The start of the first strip is not used; it is computed so that the loop is never empty.
        domain = ReductionDim(self.loop.name, const(0, INDEX), last - first + 1)
        return self.made("_starts", self.dims, const(0, value.dtype), self.changed(indices, value, domain))

    @cached_property
    def parts(self) -> Stage:
        dims = tuple(n for d in self.stage.dims for n in ((self.strip, d) if d == self.dim else (d,)))
        here = coordinate(self.dim)
        start = self.of_strip("_starts", coordinate(self.strip), self.dims)
        own = self.own(here)
        first = build.binary("eq", here, self.first_to_last(const(0, INDEX)))
        times = build.select(self.inside(self.place(here)), self.at(self.linear[0], here), const(0, start.dtype))
        pure = build.select(first, times * start + own, own)  # starts are loaded unconditionally, like everything else

        now = self.first_to_last(coordinate(self.loop.name))
        own, last = (
            self.load("", *(at if d == self.dim else coordinate(d) for d in dims)) for at in (now, now - self.step)
        )
        value = self.onwards(last, now) + own
        domain = ReductionDim(self.loop.name, const(1, INDEX), const(self.length - 1, INDEX))
        return self.made("", dims, pure, self.changed(own.indices, value, domain))

    @cached_property
    def whole(self) -> Stage:
        """The stage itself, with the scan removed from its updates."""
        here = coordinate(self.dim)
        places = {self.strip: here // self.length, self.dim: here % self.length}
        part = self.load("", *(places.get(d, coordinate(d)) for d in self.parts.dims))
        accessed = (here >= self.accessed[0]) & (here <= self.accessed[1])
        given = self.given(tuple(map(coordinate, self.stage.dims)))
        pure = replace(self.stage.pure, values=(part if self.is_all else build.select(accessed, part, given),))
        return replace(self.stage, pure=pure, updates=self.stage.updates[self.index :])


def _reading(renamed: dict[str, str], e: Expr) -> Expr:
    """An expression in which loads from renamed buffers use the new names."""

    def change(n: Expr) -> Expr | None:
        if isinstance(n, Load) and n.buffer in renamed:
            return Load(n.dtype, n.lanes, renamed[n.buffer], tuple(_reading(renamed, i) for i in n.indices), n.mask)
        return None

    return transform(e, change)


_Parts = tuple[Expr | None, Expr | None]  # the factor of a value, and the rest that is added; None stands for 0
_LINEAR = ("add", "sub", "neg", "mul", "div", "select")


def _linear(e: Expr, unknown: list[Load]) -> _Parts | None:
    """Write an expression as a multiple of the value that the loads `unknown` read, plus a rest. None if it is not
    linear in that value."""
    memo: dict[int, tuple[_Parts | None]] = {}
    buffers = {e.buffer for e in unknown}

    def operands(e: Expr) -> tuple[Expr, ...]:
        return e.args if isinstance(e, Op) and e.op in _LINEAR and not buffers.isdisjoint(loaded(e)) else ()

    def visit(e: Expr) -> tuple[_Parts | None]:
        if isinstance(e, Load) and any(same(e, other) for other in unknown):
            return ((const(1, e.dtype), None),)
        if not any(isinstance(n, Load) and any(same(n, other) for other in unknown) for n in walk(e)):
            return ((None, e),)
        parts = [memo[id(a)][0] for a in operands(e)]
        if not isinstance(e, Op) or not parts or any(p is None for p in parts):
            return (None,)
        return (_combine(e, [p for p in parts if p is not None]),)

    return each_once(e, memo, visit, operands)[0]


def _combine(e: Op, parts: list[_Parts]) -> _Parts | None:
    """Apply an operation to linear operands. None if the result is not linear."""
    (a, b), (c, d) = parts[0], parts[-1]
    if e.op in ("add", "sub"):
        return _sum(e.op, a, c), _sum(e.op, b, d)
    if e.op == "neg":
        return _sum("sub", None, a), _sum("sub", None, b)
    if e.op == "mul":
        (a, b), (c, d) = parts if c is None else parts[::-1]
        return None if c is not None or d is None else (_times("mul", a, d), _times("mul", b, d))
    if e.op == "div":
        by = e.args[1]
        return None if c is not None or not e.dtype.is_float else (_times("div", a, by), _times("div", b, by))
    (condition, then, otherwise), zero = parts, const(0, e.dtype)
    if condition[0] is not None:
        return None
    pairs = [[zero if v is None else v for v in pair] for pair in zip(then, otherwise, strict=True)]
    factor, rest = (build.select(e.args[0], *pair) for pair in pairs)
    return factor, rest


def _sum(op: str, a: Expr | None, b: Expr | None) -> Expr | None:
    if b is None:
        return a
    if a is None:
        return b if op == "add" else build.unary("neg", b)
    return build.binary(op, a, b)


def _times(op: str, a: Expr | None, by: Expr) -> Expr | None:
    if a is None:
        return None
    return by if op == "mul" and _is_one(a) else build.binary(op, a, by)


def _is_one(e: Expr) -> bool:
    return same(e, const(1, e.dtype))
