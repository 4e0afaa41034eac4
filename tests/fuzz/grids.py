"""Random legal schedules for GPUs: blocks, threads, warps and their lanes, the stages that are computed in them, and
the memory of these stages."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from pantile.graph.nodes import Graph, Stage
from pantile.schedule.directives import CACHE_OPERATORS, StageSchedule, on
from pantile.schedule.matrix_product import matrix_product
from pantile.schedule.schedule import Schedule
from pantile.target import Target
from pantile.target.kinds import Kind
from pantile.target.mma import MMAS

from .draws import Draw
from .schedules import Scheduler, scheduled

_BLOCKS = [8, 4, 16, 32, 2, 1, 3, 5, 7, 64]
_LANES = [8, 32, 5, 4, 30, 31, 16, 2, 1]
_WARPS = [(2, 16), (4, 8), (16, 2), (3, 10), (2, 5), (1, 32)]  # rows and columns of lanes
_WHOLE_WARPS = [(1, 32), (2, 16), (4, 8), (16, 2)]
_THREADS = [32, 64, 256, 512, 1024]  # per block
_MEMORIES = ["shared", "shared", "register", "register", "stack", "heap"]


@st.composite
def grids(draw: Draw, graph: Graph, strict: bool, target: Target) -> Schedule:
    """Directives for some stages of `graph` and defaults for the others; sometimes copies of some stages."""
    return scheduled(draw, graph, GridScheduler, strict, target)


class GridScheduler(Scheduler):
    """Schedules consumers in blocks of threads, and producers at root or in the blocks or threads of consumers."""

    def schedule_stage(self, stage: Stage) -> None:
        """Schedule a stage: where it is computed, then its loops, then its memory."""
        if self.may_be_of_tensor_cores(stage) and self.chance(75) and _tensor_cores(self, stage):
            return
        if self.number(0, 5) == 0 and self.attempt(lambda: on(stage.name).compute_inline()):
            return
        self.attempt(lambda: on(stage.name).compute_root())
        if self.number(0, 3) > 0:
            self.place_in_grid(stage)
        for k in range(len(stage.definitions)):
            for _ in range(self.pick([0, 0, 0, 1, 2])):
                self.shape_loops(stage, k)
            if k and self.chance(50) and not stage.dtypes[0].is_float:  # whose sums are rounded, in no certain order
                self.attempt(lambda k=k: self.definition(stage, k).atomic())
            self.pick(_GRIDS)(self, stage, k)
            if self.chance(25):
                self.attempt(lambda k=k: self.definition(stage, k).threads(self.pick(_THREADS)))
            if self.chance(25):
                self.attempt(lambda k=k: self.definition(stage, k).persistent())
            for _ in range(self.pick([0, 0, 1, 2])):
                self.inside_of_threads(stage, k)
        for _ in range(self.pick([0, 1, 1, 2])):
            self.pick(_STORAGE)(self, stage)
        if self.chance(30):
            _beside_lanes(self, stage)

    def may_be_of_tensor_cores(self, stage: Stage) -> bool:
        """Whether a stage is a matrix product with types that tensor cores support."""
        update = stage.updates[0] if len(stage.updates) == 1 and len(stage.dims) == 2 else None
        if update is None or len(update.domain) != 1:
            return False
        made = matrix_product(stage, update, *stage.dims, update.domain[0].name)
        return made is not None and (made.a.dtype.name, made.accumulator.name) in MMAS

    def place_in_grid(self, stage: Stage) -> None:
        """Place a stage, most often at a block or thread of one of its readers."""
        readers = [n for n in self.graph.consumers[stage.name] if self.loops(n)]
        if not readers or self.chance(10):
            self.place(stage)
            return
        host = self.pick(readers)
        k = self.number(0, len(self.graph.stage[host].definitions) - 1)
        loops = self.loops(host, k)
        marked = [n for kind in (Kind.BLOCK, Kind.THREAD, Kind.WARP) for n in self.loops(host, k, kind)[-1:]]
        if not loops or not self.attempt(lambda: on(stage.name).compute_at(host, self.pick([*loops, *marked * 3]))):
            return
        if self.chance(25):
            self.attempt(lambda: self.chain(stage).store_at(host, self.pick([*loops, *marked * 3])))

    def definition(self, stage: Stage, k: int) -> StageSchedule:
        chain = self.chain(stage)
        return chain.update(k - 1) if k else chain.pure()

    def inside_of_threads(self, stage: Stage, k: int) -> None:
        """Vectorize or unroll loops inside of threads."""
        loops = self.loops(stage.name, k)
        if loops:
            loop, count = self.pick([loops[-1], *loops]), self.pick([2, 4, 3, 8])
            chain = self.definition(stage, k)
            ways = [chain.unroll(loop, count), chain.vectorize(loops[-1], count), chain.unroll(loop)]
            self.attempt(lambda: self.pick(ways))


# ---- grids: the loops that are blocks, and those that are threads


def _tiles(s: GridScheduler, stage: Stage, k: int) -> None:
    """Blocks and threads from some loops, each split in two, with the other loops around or inside them."""
    loops = s.loops(stage.name, k)
    if not loops:
        return
    first = s.number(0, len(loops) - 1)
    cut = loops[first : first + s.pick([1, 2, 2, 3])]
    outer, inner = [s.fresh(n) for n in cut], [s.fresh(n) for n in cut]
    rest = [n for n in loops if n not in cut]
    around = rest if s.chance(30) else loops[:first]
    within = [n for n in rest if n not in around]
    threads = inner if s.chance(70) else [*inner, *within]

    def tiled() -> StageSchedule:
        chain = s.definition(stage, k)
        for old, a, b in zip(cut, outer, inner, strict=True):
            chain = chain.split(old, a, b, s.pick(_BLOCKS), tail=s.pick(["auto", "auto", "shift", "guard", "peel"]))
        return chain.reorder(*around, *outer, *inner, *within)

    if s.attempt(tiled):
        for blocks in ([*around, *outer], outer):
            if s.attempt(lambda blocks=blocks: s.definition(stage, k).block(*blocks)):
                break
        s.attempt(lambda: s.definition(stage, k).thread(*threads))


def _warps(s: GridScheduler, stage: Stage, k: int) -> None:
    """Lanes along a loop, warps from blocks of the same or another loop, and rows or columns that a warp iterates
    over."""
    loops = s.loops(stage.name, k)
    if not loops:
        return
    along, across = s.pick([loops[-1], *loops]), s.pick(loops)
    blocks, warps, lanes, rows = (s.fresh(n) for n in (across, across, along, across))
    each = s.fresh(along) if s.chance(30) else None

    def cut() -> StageSchedule:
        chain = s.definition(stage, k).split(along, along, lanes, s.pick(_LANES) * (2 if each else 1))
        inner = [lanes]
        if each is not None:
            chain, inner = chain.split(lanes, lanes, each, 2), [lanes, each]
        outer = [n for n in loops if n != across]
        chain = chain.split(across, blocks, warps, s.pick([4, 2, 1, 3]) * (4 if across != along else 1))
        if across != along and s.chance(70):
            chain = chain.split(warps, warps, rows, s.pick([4, 2, 3, 1]))
            inner = [rows, *inner] if s.chance(80) else [lanes, rows, *inner[1:]]
        return chain.reorder(*outer, blocks, warps, *inner).block(*outer, blocks).warp(warps).lane(lanes)

    if s.attempt(cut) and rows in s.loops(stage.name, k) and s.chance(60):
        s.attempt(lambda: s.definition(stage, k).unroll(rows))


def _warps_of_rows(s: GridScheduler, stage: Stage, k: int) -> None:
    """Lanes over rows and columns; sometimes the points of a lane are a whole width of lanes apart."""
    loops = s.loops(stage.name, k)
    if len(loops) < 2:
        return
    across, along = s.draw(st.permutations(loops))[:2]
    blocks, warps, others = s.fresh(across), s.fresh(across), s.fresh(along)
    rows, columns = s.pick(_WARPS)
    names = [s.fresh(across), s.fresh(across), s.fresh(along), s.fresh(along)]

    def cut() -> StageSchedule:
        below, beside = s.pick([1, 2, 3]), s.pick([1, 2, 3])
        chain = s.definition(stage, k).split(across, blocks, warps, rows * below * s.pick([1, 2, 4]))
        chain = chain.split(along, others, along, columns * beside).split(warps, warps, across, rows * below)
        chain = chain.split(across, names[0], names[1], rows).split(along, names[2], names[3], columns)
        outer = [n for n in loops if n not in (across, along)]
        chain = chain.reorder(*outer, blocks, others, warps, names[0], names[2], names[1], names[3])
        return chain.block(*outer, blocks, others).warp(warps).lane(names[1], names[3])

    if s.attempt(cut):
        for name in (names[0], names[2]):
            s.attempt(lambda name=name: s.definition(stage, k).unroll(name))


def _rows_of_lanes(s: GridScheduler, stage: Stage, k: int) -> None:
    """Lanes for a stage that is computed in a warp; the points of a lane are far apart."""
    loops = s.loops(stage.name, k)
    cut = [n for n in loops[-2:] if n in stage.dims]
    outer, lanes = [s.fresh(n) for n in cut], [s.fresh(n) for n in cut]
    sizes = s.pick(_WARPS) if len(cut) == 2 else (s.pick(_LANES),)

    def apart() -> StageSchedule:
        chain = s.definition(stage, k)
        for old, a, b, n in zip(cut, outer, lanes, sizes, strict=True):
            chain = chain.split(old, a, b, n, tail=s.pick(["guard", "guard", "auto"]))
        return chain.reorder(*outer, *lanes).lane(*lanes)

    if cut and s.attempt(apart):
        for name in outer:
            s.attempt(lambda name=name: s.definition(stage, k).unroll(name))


def _lanes(s: GridScheduler, stage: Stage, k: int) -> None:
    """Make existing loops lane loops, as suits a stage that is computed in a warp."""
    loops = s.loops(stage.name, k)
    if len(loops) > 1 and s.chance(30) and s.attempt(lambda: s.definition(stage, k).lane(*loops[-2:])):
        return
    if loops and not s.attempt(lambda: s.definition(stage, k).lane(loops[-1])):
        s.attempt(lambda: s.definition(stage, k).lane(s.pick(loops)))


def _rows_of_a_block(s: GridScheduler, stage: Stage, k: int) -> None:
    """A loop between blocks and threads, at which other stages may be computed."""
    loops = s.loops(stage.name, k)
    if len(loops) < 2:
        return
    between, cut = s.draw(st.permutations(loops))[:2]
    outer, inner = s.fresh(cut), s.fresh(cut)
    rest = [n for n in loops if n not in (between, cut)]
    s.attempt(lambda: s.definition(stage, k).split(cut, outer, inner, s.pick(_BLOCKS))
              .reorder(outer, between, inner, *rest).block(outer).thread(inner))  # fmt: skip


def _as_they_are(s: GridScheduler, stage: Stage, k: int) -> None:
    """Make existing loops blocks, from the outermost on, and threads, down to the innermost."""
    loops = s.loops(stage.name, k)
    if loops:
        begin = s.number(0, len(loops))
        end = s.number(begin, len(loops))
        chain = s.definition(stage, k)
        if begin and s.chance(70):
            s.attempt(lambda: chain.block(*loops[:begin]))
        if end > begin:
            s.attempt(lambda: s.definition(stage, k).thread(*loops[begin:end]))


def _threads(s: GridScheduler, stage: Stage, k: int) -> None:
    """Make all loops thread loops, as suits a stage that is computed in a block."""
    loops = s.loops(stage.name, k)
    if loops:
        _ = s.attempt(lambda: s.definition(stage, k).thread(*loops)) or s.attempt(
            lambda: s.definition(stage, k).thread(loops[0])
        )


def _tensor_cores(s: GridScheduler, stage: Stage) -> bool:
    """Compute a stage by tensor cores, in the registers of a warp or of a block, if a single stage reads it, at the
    same indices."""
    hosts = [n for n in s.graph.consumers[stage.name] if s.graph.stage[n].dims == stage.dims]
    if len(hosts) != 1:
        return False
    (host,), (rows, columns), (terms,) = hosts, stage.dims, stage.updates[0].domain
    of_block, slices_first, width = s.chance(50), s.chance(50), s.pick([8, 16])
    count, tail = 32 if stage.dtypes[0].is_int else 16, s.pick(["auto", "peel"])

    def of_host() -> StageSchedule:
        chain = on(host).compute_root().tile(rows, columns, "ib", "jb", "ii", "ji", 32, 32)
        chain = _in_lanes(_in_warps(chain, "ii", "ji"), "iw", "jw", "ib", "jb", "wi", "wj")
        return chain.block("ib", "jb").warp("wi", "wj")

    def of_sums() -> StageSchedule:
        chain = on(stage.name).compute_at(host, "jb" if of_block else "wj").store_in("register")
        i, j, warps = ("iw", "jw", ["wi", "wj"]) if of_block else (rows, columns, [])
        chain = _in_warps(chain, rows, columns) if of_block else chain
        chain = _in_lanes(chain, i, j, *warps)
        chain = _in_warps(chain.warp(*warps).update(), rows, columns).warp(*warps) if of_block else chain.update()
        chain = chain.split(i, "io", "row", 16).split(j, "jo", "column", width)
        chain = chain.split(terms.name, "slice", "term", count, tail=tail)
        around = ["slice", *warps] if slices_first else [*warps, "slice"]
        return chain.reorder(*around, "io", "jo", "row", "column", "term").tensor_core("row", "column", "term")

    return s.attempt(of_host) and s.attempt(of_sums)


def _in_lanes(chain: StageSchedule, i: str, j: str, *around: str) -> StageSchedule:
    chain = chain.split(i, "i8", "il", 8).split(j, "j8", "jn", 8).split("jn", "jl", "j2", 2)
    return chain.reorder(*around, "i8", "j8", "il", "jl", "j2").lane("il", "jl").unroll("i8").unroll("j8").unroll("j2")


def _in_warps(chain: StageSchedule, i: str, j: str) -> StageSchedule:
    return chain.split(i, "wi", "iw", 16).split(j, "wj", "jw", 16)


def _nothing(s: GridScheduler, stage: Stage, k: int) -> None:
    """Leave the loops serial: one thread, or each thread that computes the stage, runs them all."""


_GRIDS: list[Callable[[GridScheduler, Stage, int], None]] = [
    _tiles, _tiles, _tiles, _rows_of_a_block, _threads, _threads, _as_they_are, _nothing,
    _warps, _warps, _warps, _warps_of_rows, _warps_of_rows, _lanes, _lanes, _rows_of_lanes,
]  # fmt: skip


# ---- memory


def _store_in(s: GridScheduler, stage: Stage) -> None:
    s.attempt(lambda: s.chain(stage).store_in(s.pick(_MEMORIES)))


def _reorder_storage(s: GridScheduler, stage: Stage) -> None:
    if stage.dims:
        s.attempt(lambda: s.chain(stage).reorder_storage(*s.draw(st.permutations(stage.dims))))


def _store_alike(s: GridScheduler, stage: Stage) -> None:
    """Store a stage in registers and give it the loops of a reader, so that each thread keeps the values that it will
    read."""
    readers = [n for n in s.graph.consumers[stage.name] if n in s.plan.stages and n in s.schedule]
    if not readers or len(stage.definitions) > 1:
        return
    host = s.pick(readers)
    blocks, verbs = s.loops(host, 0, Kind.BLOCK), ("split", "tile", "reorder", "thread", "vectorize")
    chain = StageSchedule(stage.name, tuple(d for d in s.schedule.on(host).directives if d.verb in verbs))
    if blocks:
        _ = s.attempt(lambda: chain.compute_at(host, blocks[-1]).store_in("register")) or s.attempt(
            lambda: on(stage.name).compute_at(host, blocks[-1]).thread(*stage.dims).store_in("register")
        )


def _compute_ahead(s: GridScheduler, stage: Stage) -> None:
    """Compute a stage ahead at a serial loop between the blocks and the threads of a reader, if there is one."""
    ahead = s.pick([1, 1, 2, 3])
    for host in (n for n in s.graph.consumers[stage.name] if n in s.plan.stages):
        for nest in s.plan.stages[host].nests:
            kinds = [x.kind for x in nest.loops]
            first = kinds.index(Kind.BLOCK) if Kind.BLOCK in kinds else len(kinds)
            last = kinds.index(Kind.THREAD) if Kind.THREAD in kinds else len(kinds)
            loops = [x.name for x in nest.loops[first:last] if x.kind is Kind.SERIAL]
            if loops:
                placed = on(stage.name).compute_at(host, s.pick(loops))
                if s.attempt(lambda placed=placed: placed.thread(*stage.dims).compute_ahead(ahead)):
                    return
    s.attempt(lambda: s.chain(stage).compute_ahead(ahead))


def _beside_lanes(s: GridScheduler, stage: Stage) -> None:
    """Compute a stage by the lanes of the warp that reads it, at the warp or at a loop in it, perhaps sliding."""
    readers = [n for n in s.graph.consumers[stage.name] if n in s.plan.stages and s.loops(n, 0, Kind.WARP)]
    if not readers:
        return
    host = s.pick(readers)
    loops, warp = s.loops(host), s.loops(host, 0, Kind.WARP)[-1]
    at = s.pick([warp, *loops[loops.index(warp) :]])
    along = [s.pick([stage.dims[-1], *stage.dims]) if stage.dims else ""]
    along = list(stage.dims[-2:]) if s.chance(40) else along

    def computed(memory: str = "auto") -> StageSchedule:
        chain = on(stage.name).compute_at(host, at).store_in(memory)
        for k in range(len(stage.definitions)):
            chain = (chain.update(k - 1) if k else chain).lane(*along)
        return chain

    if s.chance(40) and s.attempt(lambda: computed("shared")):
        if at != warp and s.chance(60):
            s.attempt(lambda: s.chain(stage).store_at(host, warp))
        elif s.chance(60):
            _in_two_memories(s, stage, along)
    elif s.chance(30) and s.attempt(lambda: on(stage.name).compute_at(host, at)):
        _rows_of_lanes(s, stage, 0)
    elif s.attempt(computed):
        if at != warp and s.chance(60):
            s.attempt(lambda: s.chain(stage).store_at(host, warp))
        if s.chance(50):
            s.attempt(lambda: s.chain(stage).pure().unroll(s.pick(stage.dims)))


def _in_two_memories(s: GridScheduler, stage: Stage, lanes: list[str]) -> None:
    """Store a stage partly in shared memory and partly in registers, with numbers of lanes that make a whole warp."""
    widths = [*s.pick(_WHOLE_WARPS)[: len(lanes)]] if len(lanes) == 2 else [32]
    k = s.number(0, len(lanes) - 1)
    first = s.number(0, 4) + widths[k] * s.number(0, 2)
    s.attempt(lambda: s.chain(stage).pure().registers_from(lanes[k], first, *widths))


def _cache_loads(s: GridScheduler, stage: Stage) -> None:
    """Pick a cache operator for loads of some buffer, which the stage's kernels may or may not read."""
    buffer, operator = s.pick([*s.graph.input, *s.graph.stage]), s.pick(CACHE_OPERATORS)
    s.attempt(lambda: s.chain(stage).cache_loads(buffer, operator))


_STORAGE: list[Callable[[GridScheduler, Stage], None]] = [
    _store_in,
    _store_in,
    _store_in,
    _reorder_storage,
    _store_alike,
    _compute_ahead,
    _compute_ahead,
    _cache_loads,
    _cache_loads,
]
