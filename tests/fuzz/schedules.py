"""Random legal schedules: directives are drawn one at a time, and each is kept if `resolve` accepts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.graph.nodes import Graph, Stage
from pantile.schedule.directives import StageSchedule, on
from pantile.schedule.plan import Plan
from pantile.schedule.resolve import resolve
from pantile.schedule.schedule import Schedule

from .grammar import Draw

T = TypeVar("T")

_FACTORS = [2, 4, 8, 16, 3, 1, 5]
_VECTORS = [4, 8, 16, 2, 32]
_SHAPING = ("pure", "split", "tile", "reorder", "fuse", "vectorize", "unroll", "parallel", "partition")
_EXTENTS = [64, 128]  # of folded storage: more rows than any window here needs


@st.composite
def schedules(draw: Draw, graph: Graph, strict: bool) -> Schedule:
    """Directives for some of the stages of `graph`, the default for the others."""
    scheduler = _Scheduler(draw, graph, strict)
    for stage in reversed(graph.stages):  # consumers first: producers are placed in their loops
        if scheduler.number(0, 3) > 0:
            scheduler.schedule_stage(stage)
    return scheduler.schedule


class _Scheduler:
    def __init__(self, draw: Draw, graph: Graph, strict: bool) -> None:
        self.draw, self.graph, self.strict = draw, graph, strict
        self.schedule = Schedule()
        self.plan: Plan = resolve(graph, self.schedule, strict=strict)[1]
        self.names = 0

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def fresh(self, loop: str) -> str:
        self.names += 1
        return f"{loop.replace('.', '_')}_{self.names}"

    def schedule_stage(self, stage: Stage) -> None:
        """Where it is computed, then its loops, then its memory."""
        if self.number(0, 5) == 0 and self.attempt(on(stage.name).compute_inline()):
            return
        self.attempt(on(stage.name).compute_root())
        if self.number(0, 2) > 0:
            self.place(stage)
        for k in range(len(stage.definitions)):
            for _ in range(self.number(0, 4)):
                self.shape_loops(stage, k)
        for _ in range(self.pick([0, 0, 1, 2])):
            self.pick(_STORAGE)(self, stage)

    def attempt(self, chain: StageSchedule) -> bool:
        """Keep these directives of a stage if they are legal."""
        asked = self.schedule.replace(chain)
        try:
            plan = resolve(self.graph, asked, strict=self.strict)[1]
        except UserError:
            return False
        self.schedule, self.plan = asked, plan
        return True

    def chain(self, stage: Stage) -> StageSchedule:
        return self.schedule.on(stage.name)

    def loops(self, stage: str, definition: int = 0) -> list[str]:
        """The loops that a stage has so far."""
        found = self.plan.stages.get(stage)
        return [loop.name for loop in found.nests[definition].loops] if found is not None else []

    # ---- places

    def place(self, stage: Stage) -> None:
        """At a loop of something that is computed later, its memory there or further out."""
        later = [s.name for s in self.graph.stages[self.graph.stages.index(stage) + 1 :] if self.loops(s.name)]
        if not later:
            return
        readers = [n for n in later if n in self.graph.consumers[stage.name]]
        host = self.pick([*later, *readers * 4])
        definitions = range(len(self.graph.stage[host].definitions))
        loops = list(dict.fromkeys(n for k in definitions for n in self.loops(host, k)))
        if self.number(0, 7) == 0 and self.share(stage, host):
            return
        loop = self.pick(loops)
        if self.attempt(on(stage.name).compute_at(host, loop)):
            at = self.number(0, 3)
            if at == 0:
                self.attempt(self.chain(stage).store_root())
            elif at == 1:
                self.attempt(self.chain(stage).store_at(host, self.pick(loops)))
            if at <= 1 and stage.dims and self.number(0, 4) == 0:
                self.attempt(self.chain(stage).fold_storage(self.pick(stage.dims), self.pick(_EXTENTS)))

    def share(self, stage: Stage, host: str) -> bool:
        """Loops of the same shape as those of another stage, fused with them."""
        alike = [d for d in self.schedule.on(host).directives if d.verb in _SHAPING]
        chain = StageSchedule(stage.name, tuple(alike))
        return self.attempt(chain) and self.attempt(chain.compute_with(host, self.pick(self.loops(host))))

    # ---- loops

    def shape_loops(self, stage: Stage, k: int) -> None:
        loops = self.loops(stage.name, k)
        if loops:
            chain = self.chain(stage)
            self.attempt(self.pick(_LOOPS)(self, chain.update(k - 1) if k else chain.pure(), loops))


# ---- directives about loops: what is asked, given the loops so far


def _split(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    loop = s.pick(loops)
    tail = s.pick(["auto", "auto", "shift", "guard"])
    return chain.split(loop, s.fresh(loop), s.fresh(loop), s.pick(_FACTORS), tail=tail)


def _tile(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    if len(loops) < 2:
        return _split(s, chain, loops)
    at = s.number(0, len(loops) - 2)
    a, b = loops[at : at + 2]
    return chain.tile(a, b, s.fresh(a), s.fresh(b), s.fresh(a), s.fresh(b), s.pick(_FACTORS), s.pick(_FACTORS))


def _reorder(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.reorder(*s.draw(st.permutations(loops)))


def _fuse(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    if len(loops) < 2:
        return _parallel(s, chain, loops)
    at = s.number(0, len(loops) - 2)
    return chain.fuse(loops[at], loops[at + 1], s.fresh(loops[at]))


def _vectorize(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    tail = s.pick(["auto", "auto", "auto", "guard", "shift"])
    return chain.vectorize(loops[-1], s.pick(_VECTORS), tail=tail)


def _vectorize_outer(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    """A vector along another loop, which is then moved innermost."""
    loop = s.pick(loops)
    inner = s.fresh(loop)
    return chain.split(loop, loop, inner, s.pick(_VECTORS)).reorder(*loops, inner).vectorize(inner)


def _unroll(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.unroll(s.pick(loops), s.pick([2, 3, 4]))


def _unroll_whole(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.unroll(s.pick(loops))


def _parallel(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    factor = s.pick([None, None, 2, 5])
    return chain.parallel(loops[0] if s.number(0, 3) else s.pick(loops), factor)


def _partition(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.partition(s.pick(loops), s.pick(["never", "always"]))


def _rfactor(s: _Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    reductions = [n for n in loops if "." in n]
    return chain.rfactor(s.pick(reductions), s.fresh("u")) if reductions else _split(s, chain, loops)


_LOOPS: list[Callable[[_Scheduler, StageSchedule, list[str]], StageSchedule]] = [
    _split, _split, _tile, _tile, _reorder, _fuse, _vectorize, _vectorize, _vectorize, _vectorize_outer, _unroll,
    _unroll_whole, _parallel, _parallel, _partition, _rfactor,
]  # fmt: skip


# ---- directives about memory and variants


def _store_in(s: _Scheduler, stage: Stage) -> None:
    s.attempt(s.chain(stage).store_in(s.pick(["heap", "stack"])))


def _reorder_storage(s: _Scheduler, stage: Stage) -> None:
    if stage.dims:
        s.attempt(s.chain(stage).reorder_storage(*s.draw(st.permutations(stage.dims))))


def _nontemporal(s: _Scheduler, stage: Stage) -> None:
    s.attempt(s.chain(stage).nontemporal())


def _prefetch(s: _Scheduler, stage: Stage) -> None:
    loops, inputs = s.loops(stage.name), list(s.graph.input)
    if loops and inputs:
        s.attempt(s.chain(stage).pure().prefetch(s.pick(inputs), s.pick(loops), s.number(1, 4)))


def _specialize(s: _Scheduler, stage: Stage) -> None:
    inputs: list[Any] = list(s.graph.inputs)
    if inputs:
        i = s.pick(inputs)
        condition = f"{i.name}.shape[{s.number(0, i.ndim - 1)}] {s.pick(['>=', '%'])} {s.pick([4, 8])}"
        s.attempt(s.chain(stage).specialize(condition if "%" not in condition else f"{condition} == 0"))


_STORAGE: list[Callable[[_Scheduler, Stage], None]] = [
    _store_in, _reorder_storage, _reorder_storage, _nontemporal, _prefetch, _specialize,
]  # fmt: skip
