"""Make loops with bounds from the dims of a definition, applying splits and fuses. `schedule/split_loops.py` decides
how the last block of a split ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from ...dataclass import dataclass
from ...errors import InternalError
from ...expr.build import minimum
from ...expr.congruence import known_remainder
from ...expr.linear import Facts, simplify
from ...expr.nodes import Const, Expr, Var, const, var
from ...expr.types import INDEX
from ...graph.nodes import Stage
from ...schedule.plan import Fuse, Nest, Split
from ...schedule.split_loops import SplitLoops, Tail, split_loops
from ...schedule.updates import pure_dims
from ..coverage import CoveredRange, Range
from ..names import loop_name, of_loop, region_names
from . import rewrites
from .loops import DefinitionLoops, NamedValue, Peel


def make_loops(
    stage: Stage,
    index: int,
    nest: Nest,
    ranges: Mapping[str, Range],
    facts: Facts,
    at_least: Callable[[Expr, int], bool],
) -> DefinitionLoops:
    """Apply the nest's rewrites to the ranges of dims. `at_least(extent, n)` tells whether extent >= n is certain."""
    named = {dim: Range(*region_names(stage, dim)) for dim in pure_dims(stage, stage.definitions[index])}
    everywhere = {dim: named.get(dim, r) for dim, r in ranges.items()}
    draft = _Draft(stage, index, nest, dict(ranges), dict(everywhere))
    splits = iter(split_loops(nest))
    steps: list[_Rewrite] = [
        _Split(draft, r, next(splits), facts, at_least) if isinstance(r, Split) else _Fuse(draft, r, facts)
        for r in nest.rewrites
    ]
    values: dict[str, Expr] = {loop.name: draft.var(loop.name) for loop in nest.loops}
    for s in reversed(steps):
        s.bind(values)
    made_of = rewrites.made_of(nest, ranges)
    for dim, value in values.items():
        if isinstance(value, Var):
            draft.covered[value.name] = CoveredRange(
                everywhere[dim], frozenset(draft.var(n).name for n in made_of[dim])
            )
    return DefinitionLoops(
        stage,
        index,
        nest,
        draft.ranges,
        values,
        tuple(draft.lets),
        covered=draft.covered,
        peel={loop: tuple(peeled) for loop, peeled in draft.peel.items()},
        guards=tuple(draft.guards),
        fused=frozenset(draft.fused),
        blocks=draft.blocks,
    )


@dataclass
class _Draft:
    """The loops under construction; see `DefinitionLoops`."""

    stage: Stage
    index: int
    nest: Nest
    ranges: dict[str, Range]
    dims: dict[str, Range]  # dim that is not rewritten yet -> its range in all versions
    lets: list[NamedValue] = field(default_factory=list)
    peel: dict[str, list[Peel]] = field(default_factory=dict)
    guards: list[Expr] = field(default_factory=list)
    covered: dict[str, CoveredRange] = field(default_factory=dict)
    fused: set[str] = field(default_factory=set)
    blocks: dict[str, Expr] = field(default_factory=dict)

    def var(self, loop: str) -> Var:
        return var(loop_name(self.stage, self.index, loop))

    def of_loop(self, loop: str, word: str, number: int | None = None) -> str:
        return of_loop(self.var(loop).name, word, number)


class _Rewrite:
    """A rewrite. The forward pass replaces ranges; the backward pass computes the values of the old loops from the new
    ones."""

    def bind(self, values: dict[str, Expr]) -> None:
        raise InternalError("abstract")


class _Split(_Rewrite):
    def __init__(
        self, draft: _Draft, s: Split, loops: SplitLoops, facts: Facts, at_least: Callable[[Expr, int], bool]
    ) -> None:
        self.draft, self.s, self.loops, self.facts = draft, s, loops, facts
        self.old = draft.ranges.pop(self.s.old)
        draft.dims.pop(self.s.old, None)
        self.extent = simplify(self.old.high - self.old.low + 1, facts)
        self.name = draft.of_loop(self.s.inner, "lo")
        self.is_whole = known_remainder(self.extent, self.s.factor, facts.classes) == 0  # all blocks certainly are
        self.tail = loops.tail(self.is_whole, lambda: at_least(self.extent, self.s.factor))
        self.set_ranges()

    def set_ranges(self) -> None:
        s, ranges, zero = self.s, self.draft.ranges, const(0, INDEX)
        blocks = (self.extent + (s.factor - 1 if self.tail is not Tail.PEEL else 0)) // s.factor
        last = simplify(blocks - 1, self.facts)
        ranges[s.outer] = Range(zero, last)
        if isinstance(last, Const) and rewrites.stays(self.draft.nest, s):
            self.facts.bounds[self.draft.var(s.outer).name] = (0, int(last.value))
        if self.tail is Tail.PREDICATE:
            ranges[s.inner] = Range(zero, const(s.factor - 1, INDEX))
            return
        first = var(self.name)
        end = first + (s.factor - 1)
        ranges[s.inner] = Range(first, minimum(end, self.old.high) if self.tail is Tail.CLIP else end)
        if self.tail is Tail.CLIP:
            self.draft.blocks[self.name] = ranges[s.inner].high - first + 1

    def bind(self, values: dict[str, Expr]) -> None:
        s = self.s
        outer, inner = values.pop(s.outer), values.pop(s.inner)
        start = simplify(self.old.low + outer * s.factor, self.facts)
        if self.tail is Tail.PREDICATE:
            at = var(self.draft.of_loop(s.inner, "at"))  # inner names are unique, whereas old ones may recur
            self.draft.lets.append((at.name, start + inner))
            values[s.old] = at
            if not self.is_whole:
                self.draft.guards.append(at <= self.old.high)
            return
        if self.tail is Tail.PEEL:
            first = simplify(self.old.low + self.extent // s.factor * s.factor, self.facts)
            peeled = Peel(self.s, self.loops, Range(first, self.old.high))
            self.draft.peel.setdefault(self.loops.blocks[0], []).insert(0, peeled)
        if self.tail is Tail.SHIFT:
            start = simplify(minimum(start, self.old.high - (s.factor - 1)), self.facts)
        self.draft.lets.append((self.name, start))
        values[s.old] = inner


class _Fuse(_Rewrite):
    def __init__(self, draft: _Draft, f: Fuse, facts: Facts) -> None:
        self.draft, self.f, self.facts = draft, f, facts
        self.again = rewrites.times_before(draft.nest, f)
        self.outer, self.inner = draft.ranges.pop(f.outer), draft.ranges.pop(f.inner)
        self.rows, self.columns = draft.dims.pop(f.outer, self.outer), draft.dims.pop(f.inner, self.inner)
        self.width = simplify(self.inner.high - self.inner.low + 1, facts)
        height = simplify(self.outer.high - self.outer.low + 1, facts)
        draft.ranges[f.fused] = Range(const(0, INDEX), simplify(height * self.width - 1, facts))

    def bind(self, values: dict[str, Expr]) -> None:
        fused = values.pop(self.f.fused)
        made_of = frozenset(self.draft.var(n).name for n in rewrites.parts(self.draft.nest, self.f))
        for part, name, old, all_of_it, step in (
            ("row", self.f.outer, self.outer, self.rows, fused // self.width),
            ("column", self.f.inner, self.inner, self.columns, fused % self.width),
        ):
            at = var(self.draft.of_loop(self.f.fused, part, self.again))
            self.draft.lets.append((at.name, simplify(old.low + step, self.facts)))
            self.draft.fused.add(at.name)
            self.draft.covered[at.name] = CoveredRange(all_of_it, made_of)
            values[name] = at
