"""Bands: a scan down the columns of a picture, by a number of columns at a time.

    f[c, y, x] = img[c, y, x]
    f[c, r.y, x] = (f[c, r.y - 1, x] + f[c, r.y, x]) / 2

    pt.on("f")...update(0).split("x", "x_o", "x_i", 256).reorder("c", "x_o", "r.y", "x_i").vectorize("x_i", 8)
        .parallel("c").parallel("x_o")                              blocks: there are more columns to share than planes

    pt.on("f").compute_at("out", "x_o").vectorize("x", 32)          bands of what reads it: all passes of the scan find
        .update(0).vectorize("x", 32).reorder("c", "x", "r.y", "x_v")     the whole height of a band in the L2 cache

Partial rows are slower than whole ones, which the cost model knows: if there are enough planes for all threads, rows
stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...cost_model.traffic import USED
from ...dataclass import dataclass
from ...expr.nodes import Var
from ...expr.visit import names, same
from ...graph.nodes import Definition, Stage
from ...schedule.directives import StageSchedule, on
from ...schedule.names import fresh
from ...schedule.schedule import Schedule
from ...schedule.stage_default import lanes
from ...schedule.updates import is_independent, keeps_to, pure_dims
from ..common.marking import unrolled, vector
from ..common.tiles import marking
from ..strategy import Problem

TASKS = (1, 2, 4)  # for each core
MOST_VECTORS = 8  # of columns that are scanned together
STEPS = 4  # of a scan that are unrolled, and the prefetch distance in rows


def bands(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """Yield the schedule with a scan in blocks and in bands, if the stage is one."""
    stage, chain = problem.graph.stage[name], schedule.on(name)
    if not is_scan(stage):
        return
    for width in _widths(problem, stage) if "compute_root" in chain.verbs else ():
        yield schedule.replace(_in_blocks(problem, stage, chain, width))
    reader = Reader.of(problem, stage)
    if reader is not None:
        source = _source(problem, schedule, stage)
        for width in _cached_widths(problem, stage):
            yield schedule.replace(*_in_bands(problem, stage, source, reader, width))


def is_scan(stage: Stage) -> bool:
    """Whether all updates stay in their columns, and move along these from row to row."""
    last = stage.dims[-1:]
    return bool(stage.updates and stage.ndim > 1) and all(
        is_independent(stage, u, *last) and keeps_to(stage, u, last) and u.domain and _reads_elsewhere(stage, u)
        for u in stage.updates
    )


def _reads_elsewhere(stage: Stage, update: Definition) -> bool:
    own = [e.indices for e in update.loads if e.buffer in stage.buffers]
    return any(not all(map(same, indices, update.indices)) for indices in own)


def _lanes(problem: Problem, stage: Stage) -> int:
    return lanes(stage, stage.pure, problem.target)


def _planes(stage: Stage, update: Definition) -> list[str]:
    return [d for d in pure_dims(stage, update)[:-1] if is_independent(stage, update, d)]


# ---- blocks


def _widths(problem: Problem, stage: Stage) -> Iterator[int]:
    """The widths of blocks that give each core a few tasks."""
    extents = dict(zip(stage.dims, problem.facts.extents(stage.name), strict=True))
    each, planes = _lanes(problem, stage), 1
    for d in _planes(stage, stage.updates[0]):
        planes *= extents[d]
    columns = extents[stage.dims[-1]]
    counts = (-(-tasks * problem.cpu.threads // planes) for tasks in TASKS)
    widths = (-(-columns // count // each) * each for count in counts if count > 1)
    yield from dict.fromkeys(width for width in widths if each <= width < columns)


def _in_blocks(problem: Problem, stage: Stage, start: StageSchedule, width: int) -> StageSchedule:
    chain = start.without_updates()
    x, each = stage.dims[-1], _lanes(problem, stage)
    for k, update in enumerate(stage.updates):
        steps = [r.name for r in update.domain]
        taken = {*stage.dims, *steps}
        outer, inner = (fresh(x + suffix, taken.__contains__) for suffix in ("_o", "_i"))
        shared = [*_planes(stage, update), outer]
        row = vector(inner, each)
        chain = chain.update(k).split(x, outer, inner, width)
        chain = marking(problem).nest(chain, [row], [*shared, *steps, inner, row.part], shared)
    return chain


# ---- bands


@dataclass(frozen=True)
class Reader:
    """The reader of a scan: `across` is its dim along the columns of the scan, `planes` are those along its planes."""

    stage: Stage
    across: str
    planes: tuple[str, ...]

    @staticmethod
    def of(problem: Problem, scan: Stage) -> Reader | None:
        """The only reader of a scan, if it is a picture that is computed in any order and reads one value of the scan
        for each point."""
        graph = problem.graph
        if len(graph.consumers[scan.name]) != 1 or scan.name in graph.output:
            return None
        stage = graph.stage[graph.consumers[scan.name][0]]
        loads = [e for d in stage.definitions for e in d.loads if e.buffer in scan.buffers]
        if stage.updates or stage.ndim < 2 or not problem.facts.is_limited(stage.name):
            return None
        *others, last = loads[0].indices
        planes = [i for d, i in zip(scan.dims, others, strict=False) if d in _planes(scan, scan.updates[0])]
        if not isinstance(last, Var) or not all(isinstance(i, Var) for i in planes):
            return None
        around = [i.name for i in planes if isinstance(i, Var)]
        apart = [last.name, *around]
        if len(set(apart)) < len(apart) or not set(apart) <= set(stage.dims) or last.name not in stage.dims[-2:]:
            return None
        same_place = all(all(map(same, e.indices, loads[0].indices)) for e in loads)
        scanned = [i for i in others if not (isinstance(i, Var) and i.name in around)]
        free = not any(set(apart) & names(i) for i in scanned)
        return Reader(stage, last.name, tuple(around)) if same_place and free else None


def _cached_widths(problem: Problem, stage: Stage) -> Iterator[int]:
    """The widths of bands of the whole height that the L2 cache holds."""
    rows = 1
    extents = dict(zip(stage.dims, problem.facts.extents(stage.name), strict=True))
    for d in stage.dims[:-1]:
        rows *= extents[d] if d not in _planes(stage, stage.updates[0]) else 1
    width = _lanes(problem, stage)
    room = USED * problem.cpu.l2.size
    while width < extents[stage.dims[-1]] and width * rows * sum(t.bytes for t in stage.dtypes) <= room:
        yield width
        width *= 2


def _in_bands(problem: Problem, scan: Stage, source: str | None, reader: Reader, width: int) -> Iterator[StageSchedule]:
    stage, each = reader.stage, _lanes(problem, reader.stage)
    last = stage.dims[-1]
    taken = set(stage.dims)
    band = fresh(reader.across + "_o", taken.__contains__)
    inner = fresh(reader.across + "_i", taken.__contains__)
    others = [d for d in stage.dims if d not in (*reader.planes, reader.across)]
    chain = on(stage.name).compute_root().split(reader.across, band, inner, width)
    shared = [*reader.planes, band]
    if reader.across == last:
        columns = vector(inner, each)
        chain = marking(problem).nest(chain, [columns], [*shared, *others, inner, columns.part], shared)
    else:  # transposed: by tiles of a line of the cache
        line = max(each, problem.cpu.l1.line // stage.dtypes[0].bytes)
        row = fresh(reader.across + "_r", taken.__contains__)
        chain, columns = chain.split(inner, inner, row, min(each, width)), vector(last, line)
        order = [*shared, *others, inner, row, columns.part]
        chain = marking(problem).nest(chain, [columns, unrolled(row)], order, shared)
    yield chain
    begin = on(scan.name).compute_at(stage.name, band)
    yield _down(problem, scan, begin if source is None else begin.prefetch(source, scan.dims[-2], STEPS), width)


def _down(problem: Problem, scan: Stage, chain: StageSchedule, width: int) -> StageSchedule:
    """The scan for one band, in which values are passed from row to row in registers."""
    x, marks = scan.dims[-1], marking(problem)
    columns = vector(x, min(width, MOST_VECTORS * _lanes(problem, scan)))
    chain = marks.nest(chain, [columns, unrolled(scan.dims[-2], STEPS)])
    for k, update in enumerate(scan.updates):
        *outer, last = [r.name for r in update.domain]
        steps = unrolled(last, STEPS)
        order = [*_planes(scan, update), *outer, x, last, steps.part, columns.part]
        chain = marks.nest(chain.update(k), [columns, steps], order)
    return chain


def _source(problem: Problem, schedule: Schedule, scan: Stage) -> str | None:
    """The buffer that a scan starts from, if it is stored as a whole and the scan reads it as it is, row by row."""
    if len(scan.pure.loads) != 1:
        return None
    load = scan.pure.loads[0]
    taken = [isinstance(i, Var) and i.name == d for d, i in zip(scan.dims, load.indices, strict=False)]
    writer = problem.graph.producer.get(load.buffer)
    is_stored = writer is None or "compute_root" in schedule.on(writer.name).verbs
    return load.buffer if is_stored and len(load.indices) == scan.ndim and all(taken) else None
