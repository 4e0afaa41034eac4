"""The loops of one definition: from its dims, through splits and fuses, to loops with bounds.

A split's outer loop counts blocks; its inner loop runs over coordinates, from the block's first one, called
stage.inner.lo. The last block, where it would stick out, is treated in one of these ways:

    shift   it starts earlier and recomputes a few values (pure definitions known to be large enough)
    clip    its inner loop is shorter (serial inner loops)
    peel    what is left over after the whole blocks runs in a serial loop (vector and unrolled inner loops)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace

from ..dataclass import dataclass
from ..errors import InternalError
from ..expr.build import minimum
from ..expr.linear import Facts, simplify
from ..expr.nodes import Const, Expr, Var, const, var
from ..expr.types import INDEX
from ..expr.visit import depends, substitute
from ..graph.nodes import Definition, Stage
from ..schedule.plan import Fuse, Loop, Nest, Split
from ..target.kinds import WRITTEN_OUT, Kind
from .names import loop_name, of_loop, prefix, region_names


@dataclass(frozen=True)
class Range:
    """First and last value of a loop-to-be (inclusive)."""

    low: Expr
    high: Expr


@dataclass(frozen=True)
class Covered:
    """What some loops cover together, exactly: those of one dim its range, a fused one that of each of its two.

    Dims are told by name: the same loops may be built several times, and one version's constants are not another's.
    """

    range: Range
    loops: frozenset[str]


class Coverage:
    """What the coordinates of all loops built so far cover, by variable or let."""

    def __init__(self) -> None:
        self._whole: dict[str, Covered] = {}
        self._early: dict[str, int] = {}  # loop -> iterations that it starts before its first, in some version

    def add(self, covered: Mapping[str, Covered]) -> None:
        self._whole.update(covered)

    def start_early(self, loop: str, iterations: int) -> None:
        """The loop begins before its dim does."""
        self._early[loop] = max(iterations, self._early.get(loop, 0))

    def get(self, name: str) -> Covered | None:
        """None, too, where another loop of its dim starts early: how far before it that is, is not known."""
        found = self._whole.get(name)
        if found is None or found.loops.isdisjoint(self._early):
            return found
        if any(loop != name for loop in found.loops.intersection(self._early)):
            return None
        return replace(found, range=Range(found.range.low - self._early[name], found.range.high))


@dataclass
class Loops:
    """One definition's loops while they are being opened, outermost first."""

    stage: Stage
    index: int  # of the definition
    nest: Nest
    ranges: dict[str, Range]  # by loop name
    at: dict[str, Expr] = field(default_factory=dict)  # dim -> its coordinate
    lets: list[tuple[str, Expr]] = field(default_factory=list)  # not yet emitted: need loops still closed
    # outermost loop over whole blocks -> the splits, outer ones first, each with the coordinates it leaves over
    peel: dict[str, list[tuple[Split, Range]]] = field(default_factory=dict)
    guards: list[Expr] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)  # loops that a peeled tail does without
    serial: set[str] = field(default_factory=set)  # loops that a peeled tail runs serially
    peeled: tuple[str, ...] = ()  # splits whose last block this is
    covered: dict[str, Covered] = field(default_factory=dict)  # variable or let -> what it ranges over
    fused: set[str] = field(default_factory=set)  # lets that take a fused loop apart
    blocks: dict[str, Expr] = field(default_factory=dict)  # let -> extent of the clipped block there: at least 1
    dims: dict[str, Range] = field(default_factory=dict)  # dims not rewritten yet -> their ranges in all versions

    @property
    def definition(self) -> Definition:
        return self.stage.definitions[self.index]

    @property
    def prefix(self) -> str:
        return prefix(self.stage, self.index)

    def var(self, loop: str) -> Var:
        """The loop's variable."""
        return var(loop_name(self.stage, self.index, loop))

    def of_loop(self, loop: str, word: str, number: int | None = None) -> str:
        """The name of something about a loop."""
        return of_loop(self.var(loop).name, word, number)

    def is_vector(self, loop: Loop) -> bool:
        """Whether the loop's iterations become lanes."""
        return loop.kind is Kind.VECTOR and loop.name not in self.gone | self.serial

    def innermost(self) -> int:
        """Depth of the last loop that stays a loop: not unrolled, not a vector."""
        real = [k for k, x in enumerate(self.nest.loops)
                if x.name not in self.gone and (x.kind not in WRITTEN_OUT or x.name in self.serial)]  # fmt: skip
        return real[-1] if real else -1

    def rename(self, values: Mapping[str, Expr]) -> None:
        """Substitute names everywhere."""

        def new(e: Expr) -> Expr:
            return substitute(e, values)

        self.ranges = {n: Range(new(r.low), new(r.high)) for n, r in self.ranges.items()}
        self.at = {n: new(e) for n, e in self.at.items()}
        self.lets = [(n, new(e)) for n, e in self.lets]
        self.peel = {n: [(s, Range(new(r.low), new(r.high))) for s, r in p] for n, p in self.peel.items()}
        self.guards = [new(g) for g in self.guards]

    def inside(self, host: Loops, loop: str) -> Loops:
        """These loops with the ones down to `loop` replaced by the host's, of the same names and ranges."""
        result = self
        for outermost in host.peeled:
            result = result.tail(outermost)[0]
        names = [x.name for x in result.nest.loops]
        shared = names[: names.index(loop) + 1]
        values: dict[str, Expr] = {result.var(n).name: host.var(n) for n in shared}
        values |= {result.of_loop(n, "rest"): var(host.of_loop(n, "rest")) for n in names}
        result.rename(values)
        return result

    def tail(self, outermost: str) -> tuple[Loops, str, Expr]:
        """The loops for what a peeled split leaves over; the name its first coordinate must be bound to, and it."""
        split, left = self.peel[outermost][0]
        blocks, parts = _parts(self.nest, split, split.outer), _parts(self.nest, split, split.inner)
        run = parts[0]
        gone = set(blocks) | set(parts) - {run}
        dropped = {self.of_loop(*let) for let in _lets(self.nest, split)}
        start = var(self.of_loop(split.inner, "rest"))
        rest = replace(
            self,
            ranges={**self.ranges, run: Range(start, left.high)},
            peel={n: p for n, p in self.peel.items() if n not in gone | {run}},
            lets=[(n, e) for n, e in self.lets if n not in dropped],
            guards=[g for g in self.guards if not depends(g, dropped)],
            gone=self.gone | gone,
            serial=self.serial | {run},
            peeled=(*self.peeled, outermost),
        )
        rest.rename({self.var(parts[-1]).name: self.var(run)})
        return rest, start.name, left.low

    def whole(self, outermost: str) -> Loops:
        """The loops for the whole blocks of the same split."""
        others = {n: p[1:] if n == outermost else p for n, p in self.peel.items()}
        return replace(self, peel={n: p for n, p in others.items() if p})


def pure_dims(stage: Stage, index: int) -> list[str]:
    """Dims of a definition that have loops: all, or the ones an update's left-hand side has as themselves."""
    if index == 0:
        return list(stage.dims)
    indices = stage.definitions[index].indices
    return [dim for dim, i in zip(stage.dims, indices, strict=True) if isinstance(i, Var) and i.name == dim]


def make_loops(stage: Stage, index: int, nest: Nest, ranges: dict[str, Range], facts: Facts,
               at_least: Callable[[Expr, int], bool]) -> Loops:  # fmt: skip
    """Apply the nest's rewrites to the ranges of the dims. `at_least(extent, n)`: whether extent >= n is certain."""
    named = {dim: Range(*region_names(stage, dim)) for dim in pure_dims(stage, index)}
    everywhere = {dim: named.get(dim, r) for dim, r in ranges.items()}
    loops = Loops(stage, index, nest, dict(ranges), dims=dict(everywhere))
    steps: list[_Step] = [
        _Split(loops, r, facts, at_least) if isinstance(r, Split) else _Fuse(loops, r, facts) for r in nest.rewrites
    ]
    values: dict[str, Expr] = {loop.name: loops.var(loop.name) for loop in nest.loops}
    for s in reversed(steps):
        s.bind(values)
    loops.at = values
    made_of = _made_of(nest, ranges)
    for dim, value in values.items():
        if isinstance(value, Var):
            loops.covered[value.name] = Covered(everywhere[dim], frozenset(loops.var(n).name for n in made_of[dim]))
    return loops


class _Step:
    """A rewrite: forwards it replaces ranges, backwards it finds the old loops' values from the new ones'."""

    def bind(self, values: dict[str, Expr]) -> None:
        raise InternalError("abstract")


class _Split(_Step):
    def __init__(self, loops: Loops, s: Split, facts: Facts, at_least: Callable[[Expr, int], bool]) -> None:
        self.loops, self.s, self.facts = loops, s, facts
        self.old = loops.ranges.pop(s.old)
        loops.dims.pop(s.old, None)
        self.extent = simplify(self.old.high - self.old.low + 1, facts)
        self.name = loops.of_loop(s.inner, "lo")
        self.style = "relative" if _inside_out(loops.nest, s) else self.tail(at_least)
        if self.style == "peel" and _is_fused(loops.nest, s):
            self.style = "relative"
        self.relative = self.style == "relative"
        self.set_ranges()

    def tail(self, at_least: Callable[[Expr, int], bool]) -> str:
        divides = isinstance(self.extent, Const) and int(self.extent.value) % self.s.factor == 0
        if divides:
            return "whole"
        if self.s.tail == "shift" and at_least(self.extent, self.s.factor):
            return "shift"
        return "peel" if _must_be_constant(self.loops.nest, self.s) else "clip"

    def set_ranges(self) -> None:
        s, ranges, zero = self.s, self.loops.ranges, const(0, INDEX)
        blocks = (self.extent + (s.factor - 1 if self.style != "peel" else 0)) // s.factor
        last = simplify(blocks - 1, self.facts)
        ranges[s.outer] = Range(zero, last)
        if isinstance(last, Const) and _stays(self.loops.nest, s, s.outer):
            self.facts.bounds[self.loops.var(s.outer).name] = (0, int(last.value))
        if self.relative:
            ranges[s.inner] = Range(zero, const(s.factor - 1, INDEX))
            return
        first = var(self.name)
        end = first + (s.factor - 1)
        ranges[s.inner] = Range(first, minimum(end, self.old.high) if self.style == "clip" else end)
        if self.style == "clip":
            self.loops.blocks[self.name] = ranges[s.inner].high - first + 1

    def bind(self, values: dict[str, Expr]) -> None:
        s = self.s
        outer, inner = values.pop(s.outer), values.pop(s.inner)
        start = simplify(self.old.low + outer * s.factor, self.facts)
        if self.relative:
            at = var(self.loops.of_loop(s.inner, "at"))  # inner names are unique, old ones may come again
            self.loops.lets.append((at.name, start + inner))
            values[s.old] = at
            if not (isinstance(self.extent, Const) and int(self.extent.value) % s.factor == 0):
                self.loops.guards.append(at <= self.old.high)
            return
        if self.style == "peel":
            first = simplify(self.old.low + self.extent // s.factor * s.factor, self.facts)
            outermost = _parts(self.loops.nest, s, s.outer)[0]
            self.loops.peel.setdefault(outermost, []).insert(0, (s, Range(first, self.old.high)))
        if self.style == "shift":
            start = simplify(minimum(start, self.old.high - (s.factor - 1)), self.facts)
        self.loops.lets.append((self.name, start))
        values[s.old] = inner


class _Fuse(_Step):
    def __init__(self, loops: Loops, f: Fuse, facts: Facts) -> None:
        self.loops, self.f, self.facts = loops, f, facts
        self.again = _times_before(loops.nest, f)
        self.outer, self.inner = loops.ranges.pop(f.outer), loops.ranges.pop(f.inner)
        self.rows, self.columns = loops.dims.pop(f.outer, self.outer), loops.dims.pop(f.inner, self.inner)
        self.width = simplify(self.inner.high - self.inner.low + 1, facts)
        height = simplify(self.outer.high - self.outer.low + 1, facts)
        loops.ranges[f.fused] = Range(const(0, INDEX), simplify(height * self.width - 1, facts))

    def bind(self, values: dict[str, Expr]) -> None:
        fused = values.pop(self.f.fused)
        made_of = frozenset(self.loops.var(n).name for n in _parts(self.loops.nest, self.f, self.f.fused))
        for part, name, old, all_of_it, step in (
            ("row", self.f.outer, self.outer, self.rows, fused // self.width),
            ("column", self.f.inner, self.inner, self.columns, fused % self.width),
        ):
            at = var(self.loops.of_loop(self.f.fused, part, self.again))
            self.loops.lets.append((at.name, simplify(old.low + step, self.facts)))
            self.loops.fused.add(at.name)
            self.loops.covered[at.name] = Covered(all_of_it, made_of)
            values[name] = at


def _parts(nest: Nest, rewrite: Split | Fuse, name: str) -> list[str]:
    """The loops that a name made by `rewrite` finally consists of, in nest order."""
    made = {name}
    for old, new in _later(nest, rewrite):
        made = made - old | new if old & made else made
    return [loop.name for loop in nest.loops if loop.name in made]


def _names(nest: Nest, split: Split, name: str) -> set[str]:
    """All names that a name made by `split` is split and fused into, on the way to its loops too."""
    made = {name}
    for old, new in _later(nest, split):
        made = made | new if old & made else made
    return made


def _lets(nest: Nest, split: Split) -> set[tuple[str, str, int | None]]:
    """The lets of a split, and of all that is made of its two loops: loop, word and number (see `of_loop`)."""
    made = _names(nest, split, split.outer) | _names(nest, split, split.inner)
    place = next(k for k, r in enumerate(nest.rewrites) if r is split)
    found: set[tuple[str, str, int | None]] = {(split.inner, "lo", None), (split.inner, "at", None)}
    for r in nest.rewrites[place + 1 :]:
        if isinstance(r, Split) and r.old in made:
            found |= {(r.inner, "lo", None), (r.inner, "at", None)}
        if isinstance(r, Fuse) and made & {r.outer, r.inner}:
            found |= {(r.fused, part, _times_before(nest, r)) for part in ("row", "column")}
    return found


def _times_before(nest: Nest, f: Fuse) -> int | None:
    """How often loops were fused to one of this name before; None for never."""
    earlier = nest.rewrites[: next(k for k, r in enumerate(nest.rewrites) if r is f)]
    return sum(isinstance(r, Fuse) and r.fused == f.fused for r in earlier) or None


def _later(nest: Nest, rewrite: Split | Fuse) -> list[tuple[set[str], set[str]]]:
    """The rewrites after `rewrite`: names that go, names that come."""
    place = next(k for k, r in enumerate(nest.rewrites) if r is rewrite)
    return [
        ({r.old}, {r.outer, r.inner}) if isinstance(r, Split) else ({r.outer, r.inner}, {r.fused})
        for r in nest.rewrites[place + 1 :]
    ]


def _stays(nest: Nest, rewrite: Split | Fuse, name: str) -> bool:
    """Whether the loop made by `rewrite` is there in the end; a later one may have its name."""
    return not any(name in old for old, _ in _later(nest, rewrite))


def _made_of(nest: Nest, dims: Iterable[str]) -> dict[str, set[str]]:
    """Dim -> the loops that it was split and fused into."""
    dims_of = {d: {d} for d in dims}  # current loop -> dims it stems from
    for r in nest.rewrites:
        if isinstance(r, Split):
            dims_of[r.outer] = dims_of[r.inner] = dims_of.pop(r.old)
        else:
            dims_of[r.fused] = dims_of.pop(r.outer) | dims_of.pop(r.inner)
    return {d: {loop for loop, stems in dims_of.items() if d in stems} for d in dims}


def _must_be_constant(nest: Nest, split: Split) -> bool:
    """Whether a vector or unrolled loop runs over the inner part, or over blocks of it."""
    name = split.inner
    place = next(k for k, r in enumerate(nest.rewrites) if r is split)
    for r in nest.rewrites[place + 1 :]:
        if isinstance(r, Split) and r.old == name:
            name = r.outer
        if isinstance(r, Fuse) and name in (r.outer, r.inner):
            name = r.fused
    return next(loop.kind for loop in nest.loops if loop.name == name) in WRITTEN_OUT


def _is_fused(nest: Nest, s: Split) -> bool:
    """Whether a loop of the split is fused with another, so that a last block has no place of its own."""
    later = nest.rewrites[next(k for k, r in enumerate(nest.rewrites) if r is s) + 1 :]
    names = _names(nest, s, s.outer) | _names(nest, s, s.inner)
    return any(isinstance(r, Fuse) and names & {r.outer, r.inner} for r in later)


def _inside_out(nest: Nest, s: Split) -> bool:
    """Whether some inner loop of the split is outside some outer loop of it, or fused with one."""
    order = [loop.name for loop in nest.loops]
    outer, inner = _parts(nest, s, s.outer), _parts(nest, s, s.inner)
    return min(order.index(n) for n in inner) <= max(order.index(n) for n in outer)
