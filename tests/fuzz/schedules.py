"""Random legal schedules: directives are drawn one at a time, and each is kept if `resolve` accepts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.graph.nodes import Graph, Stage
from pantile.schedule.directives import StageSchedule, on
from pantile.schedule.draft import Drafts
from pantile.schedule.plan import Plan
from pantile.schedule.resolve import resolve
from pantile.schedule.schedule import Schedule
from pantile.target import Target, host
from pantile.target.kinds import Kind

from .copies import changed, copies, in_panels, in_strips, is_legal, with_copies
from .draws import Draw, Drawer
from .loop_names import loop_name

_FACTORS = [2, 4, 8, 16, 3, 1, 5]
_VECTORS = [4, 8, 16, 2, 32]
_SHAPING = ("pure", "split", "tile", "reorder", "fuse", "vectorize", "unroll", "parallel", "partition")
_EXTENTS = [64, 128]  # of folded storage, which exceed the rows that any window here needs


@st.composite
def schedules(draw: Draw, graph: Graph, strict: bool) -> Schedule:
    """Directives for some stages of `graph` and defaults for the others; sometimes copies of some stages."""
    return scheduled(draw, graph, Scheduler, strict, host())


def scheduled(draw: Draw, graph: Graph, kind: type[Scheduler], strict: bool, target: Target) -> Schedule:
    """A schedule drawn by a scheduler of this class."""
    drawer = Drawer(draw)
    made = copies(drawer, graph) if drawer.chance(25) else in_strips(drawer, graph) if drawer.chance(25) else Schedule()
    made = in_panels(drawer, graph, made) if drawer.chance(25) else made
    copied = changed(graph, made)
    scheduler = kind(draw, copied, strict, target)
    for stage in reversed(copied.stages):  # consumers first: producers are placed in their loops
        if scheduler.number(0, 3) > 0:
            scheduler.schedule_stage(stage)
    schedule = _completable(copied, scheduler.schedule, strict, target)
    return with_copies(graph, made, schedule, strict, target) if made else schedule


def _completable(graph: Graph, schedule: Schedule, strict: bool, target: Target) -> Schedule:
    """Remove stages from a schedule until it is legal with the defaults for the stages that it does not name."""
    for name in [None, *schedule]:
        schedule = schedule if name is None else schedule.without(name)
        if is_legal(graph, schedule, strict, target):
            return schedule
    return Schedule()


class Scheduler(Drawer):
    """Draws directives for a target, and keeps those that are legal so far."""

    def __init__(self, draw: Draw, graph: Graph, strict: bool, target: Target) -> None:
        super().__init__(draw)
        self.graph, self.strict, self.target = graph, strict, target
        self.schedule = Schedule()
        self.drafts = Drafts(graph, strict, target)
        self.plan = self.resolved(self.schedule)
        self.names = 0

    def resolved(self, schedule: Schedule) -> Plan:
        """The plan of a schedule. Raises a UserError if the schedule is illegal."""
        return resolve(self.graph, schedule, strict=self.strict, target=self.target, known=self.drafts)[1]

    def fresh(self, loop: str) -> str:
        self.names += 1
        return loop_name(self, self.graph, f"{loop.replace('.', '_')}_{self.names}")

    def schedule_stage(self, stage: Stage) -> None:
        """Schedule a stage: where it is computed, then its loops, then its memory."""
        if self.number(0, 5) == 0 and self.attempt(lambda: on(stage.name).compute_inline()):
            return
        self.attempt(lambda: on(stage.name).compute_root())
        readers = [self.graph.stage[n] for n in self.graph.consumers[stage.name] if self.loops(n)]
        if readers and self.loops(stage.name) and self.chance(25):
            self.pick(_MOTIFS)(self, stage, self.pick(readers))
            return
        if self.number(0, 2) > 0:
            self.place(stage)
        for k in range(len(stage.definitions)):
            for _ in range(self.number(0, 4)):
                self.shape_loops(stage, k)
        for _ in range(self.pick([0, 0, 1, 2])):
            self.pick(_STORAGE)(self, stage)

    def attempt(self, ask: Callable[[], StageSchedule]) -> bool:
        """Keep directives for a stage if they are legal. Return whether they are."""
        try:
            asked = self.schedule.replace(ask())
            plan = self.resolved(asked)
        except UserError:
            return False
        self.schedule, self.plan = asked, plan
        return True

    def chain(self, stage: Stage) -> StageSchedule:
        return self.schedule.on(stage.name)

    def loops(self, stage: str, definition: int = 0, kind: Kind | None = None) -> list[str]:
        """The loops that a definition has so far; none for an update that other stages compute, such as a scan in
        strips."""
        found = self.plan.stages.get(stage)
        nests = [] if found is None else found.nests[definition : definition + 1]
        return [loop.name for nest in nests for loop in nest.loops if kind in (None, loop.kind)]

    # ---- places

    def place(self, stage: Stage) -> None:
        """Compute a stage at a loop of a later stage, with its memory at that loop or further out."""
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
        if self.attempt(lambda: on(stage.name).compute_at(host, loop)):
            at = self.number(0, 3)
            if at == 0:
                self.attempt(lambda: self.chain(stage).store_root())
            elif at == 1:
                self.attempt(lambda: self.chain(stage).store_at(host, self.pick(loops)))
            if at <= 1 and stage.dims and self.number(0, 4) == 0:
                self.attempt(lambda: self.chain(stage).fold_storage(self.pick(stage.dims), self.pick(_EXTENTS)))

    def share(self, stage: Stage, host: str) -> bool:
        """Give a stage loops of the same shape as those of another stage, and fuse them."""
        alike = [d for d in self.schedule.on(host).directives if d.verb in _SHAPING]
        chain = StageSchedule(stage.name, tuple(alike))
        if not self.attempt(lambda: chain):
            return False
        return self.attempt(lambda: chain.compute_with(host, self.pick(self.loops(host))))

    # ---- loops

    def shape_loops(self, stage: Stage, k: int) -> None:
        loops = self.loops(stage.name, k)
        if loops:
            chain = self.chain(stage)
            self.attempt(lambda: self.pick(_LOOPS)(self, chain.update(k - 1) if k else chain.pure(), loops))


# ---- directives about loops, given the loops so far


def _split(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    loop = s.pick(loops)
    tail = s.pick(["auto", "auto", "shift", "guard", "peel"])
    return chain.split(loop, s.fresh(loop), s.fresh(loop), s.pick(_FACTORS), tail=tail)


def _tile(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    if len(loops) < 2:
        return _split(s, chain, loops)
    at = s.number(0, len(loops) - 2)
    a, b = loops[at : at + 2]
    return chain.tile(a, b, s.fresh(a), s.fresh(b), s.fresh(a), s.fresh(b), s.pick(_FACTORS), s.pick(_FACTORS))


def _reorder(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.reorder(*s.draw(st.permutations(loops)))


def _fuse(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    if len(loops) < 2:
        return _parallel(s, chain, loops)
    at = s.number(0, len(loops) - 2)
    return chain.fuse(loops[at], loops[at + 1], s.fresh(loops[at]))


def _vectorize(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    tail = s.pick(["auto", "auto", "auto", "guard", "shift"])
    return chain.vectorize(loops[-1], s.pick(_VECTORS), tail=tail)


def _vectorize_outer(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    """A vector along another loop, which is then moved innermost."""
    loop = s.pick(loops)
    inner = s.fresh(loop)
    return chain.split(loop, loop, inner, s.pick(_VECTORS)).reorder(*loops, inner).vectorize(inner)


def _unroll(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.unroll(s.pick(loops), s.pick([2, 3, 4, 8]))


def _unroll_whole(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.unroll(s.pick(loops))


def _vectorize_whole(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    """Vectorize a whole loop, whose extent must be stated or turn out to be constant where the stage is computed."""
    return chain.vectorize(loops[-1])


def _parallel(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    factor = s.pick([None, None, 2, 5])
    return chain.parallel(loops[0] if s.number(0, 3) else s.pick(loops), factor)


def _partition(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    return chain.partition(s.pick(loops), s.pick(["never", "always"]))


def _rfactor(s: Scheduler, chain: StageSchedule, loops: list[str]) -> StageSchedule:
    reductions = [n for n in loops if "." in n]
    if not reductions:
        return _split(s, chain, loops)
    factored = list(dict.fromkeys(s.pick(reductions) for _ in range(s.pick([1, 1, 2, 3]))))
    return chain.rfactor(*factored, *(s.fresh("u") for _ in factored))


_LOOPS: list[Callable[[Scheduler, StageSchedule, list[str]], StageSchedule]] = [
    _split, _split, _tile, _tile, _reorder, _fuse, _vectorize, _vectorize, _vectorize, _vectorize_outer, _unroll,
    _unroll_whole, _vectorize_whole, _parallel, _parallel, _partition, _rfactor,
]  # fmt: skip


# ---- directives about memory and variants


def _store_in(s: Scheduler, stage: Stage) -> None:
    s.attempt(lambda: s.chain(stage).store_in(s.pick(["heap", "stack"])))


def _reorder_storage(s: Scheduler, stage: Stage) -> None:
    if stage.dims:
        s.attempt(lambda: s.chain(stage).reorder_storage(*s.draw(st.permutations(stage.dims))))


def _split_storage(s: Scheduler, stage: Stage) -> None:
    """Split storage into panels, sometimes nested, and reorder it."""
    if stage.dims and _stored(s, stage):
        for _ in range(s.pick([1, 1, 2])):
            s.attempt(lambda: _in_panels(s, stage))
        if s.chance(70):
            s.attempt(lambda: s.chain(stage).reorder_storage(*s.draw(st.permutations(_stored(s, stage)))))


def _in_panels(s: Scheduler, stage: Stage) -> StageSchedule:
    dim = s.pick(_stored(s, stage))
    return s.chain(stage).split_storage(dim, s.pick([dim, s.fresh(dim)]), s.fresh(dim), s.pick(_FACTORS))


def _stored(s: Scheduler, stage: Stage) -> Sequence[str]:
    """The dims that a stage has in memory so far."""
    return s.plan.stages[stage.name].storage if stage.name in s.plan.stages else ()


def _nontemporal(s: Scheduler, stage: Stage) -> None:
    s.attempt(lambda: s.chain(stage).nontemporal())


def _prefetch(s: Scheduler, stage: Stage) -> None:
    loops, inputs = s.loops(stage.name), list(s.graph.input)
    if loops and inputs:
        s.attempt(lambda: s.chain(stage).pure().prefetch(s.pick(inputs), s.pick(loops), s.number(1, 4)))


def _specialize(s: Scheduler, stage: Stage) -> None:
    tests = [_test(s) for _ in range(s.pick([1, 1, 2]))]
    if "" not in tests:
        s.attempt(lambda: s.chain(stage).specialize(s.pick([" and ", " or "]).join(tests)))


def _test(s: Scheduler) -> str:
    """A condition on the extent of an input or on a param; empty if there are none."""
    extents = [f"{i.name}.shape[{k}]" for i in s.graph.inputs for k in range(i.ndim)]
    numbers = [p.name for p in s.graph.params if p.dtype.is_int]
    if not extents and not numbers:
        return ""
    e, n = s.pick([*extents, *numbers]), s.pick([1, 2, 4, 8])
    return s.pick([f"{e} >= {n}", f"{e} < {n}", f"{e} % {n} == 0", f"not {e} == {n}"])


_STORAGE: list[Callable[[Scheduler, Stage], None]] = [
    _store_in, _reorder_storage, _reorder_storage, _split_storage, _split_storage, _nontemporal, _prefetch, _specialize,
]  # fmt: skip


# ---- directives for a stage and one of its readers that are seldom drawn together


def _in_an_unrolled_update(s: Scheduler, stage: Stage, host: Stage) -> None:
    """A producer with split loops, inside an unrolled loop and its tail."""
    k = len(host.definitions) - 1
    if s.chance(50):
        s.attempt(lambda: _split(s, s.chain(host).pure(), s.loops(host.name)))
    loops = s.loops(host.name, k)
    if loops:
        loop = s.pick(loops)
        chain = s.chain(host).update(k - 1) if k else s.chain(host).pure()
        copies = s.pick([2, 3, 8])
        s.attempt(lambda: chain.unroll(loop, copies) if s.chance(70) else chain.vectorize(loop, copies))
        s.attempt(lambda: on(stage.name).compute_at(host.name, s.pick([loop, *s.loops(host.name, k)])))
        s.attempt(lambda: _split(s, s.chain(stage).pure(), s.loops(stage.name)))


def _sliding_and_special(s: Scheduler, stage: Stage, host: Stage) -> None:
    """A sliding producer, which keeps earlier values, and specialized versions of loops for some sizes."""
    s.attempt(lambda: _split(s, s.chain(host).pure(), s.loops(host.name)[:1]))
    loops = s.loops(host.name)
    at = s.number(0, len(loops) - 1)
    s.attempt(lambda: on(stage.name).compute_at(host.name, loops[at]))
    s.attempt(lambda: s.chain(stage).store_at(host.name, loops[at - 1]) if at else s.chain(stage).store_root())
    _specialize(s, s.pick([host, host, stage]))
    if s.chance(50):
        s.shape_loops(stage, 0)


def _at_a_fused_loop(s: Scheduler, stage: Stage, host: Stage) -> None:
    s.attempt(lambda: _fuse(s, s.chain(host).pure(), s.loops(host.name)))
    s.attempt(lambda: on(stage.name).compute_at(host.name, s.pick(s.loops(host.name))))
    if s.chance(50):
        s.shape_loops(stage, 0)


_MOTIFS: list[Callable[[Scheduler, Stage, Stage], None]] = [
    _in_an_unrolled_update,
    _sliding_and_special,
    _at_a_fused_loop,
]
