"""Slanted reads: a stage that reads a picture along slanted lines is computed in small tiles.

    out[y, x] = img[floor(a*x + b*y), floor(c*x + d*y)]     ->     32 rows and 64 columns at a time

Each of its rows crosses many rows of the picture, each on pages of its own: more pages than the TLB holds. What a tile
reads is about as compact as the tile. The cost model ignores this, since it does not know indices that depend on data,
params or floats.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...analysis.access import accesses
from ...expr.nodes import Expr
from ...expr.visit import names, walk_loads
from ...graph.nodes import Stage
from ...schedule.schedule import Schedule
from ..strategy import Problem
from .groups import groups
from .rolling import Roll, can_roll, chains, rolls

ROWS, COLUMNS = 32, 64  # of a tile
FEWEST = 8  # lanes


def in_tiles(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """Yield schedules with such a stage in tiles, if it is computed by itself, with vectors of several lengths: pixels
    are loaded lane by lane, and general registers can hold the addresses of only a few."""
    alone = [g for g in groups(problem.graph, schedule) if g.output == name and not g.members]
    if not alone or not can_roll(problem, name) or not _is_slanted(problem, problem.graph.stage[name]):
        return
    roll = replace(Roll.of(problem, alone[0]), rows=1, strip=ROWS, tile=COLUMNS, vectors=1)
    if rolls(problem, roll):
        yield schedule.replace(*chains(problem, replace(roll, vectors=2)))
        single = schedule.replace(*chains(problem, roll))
        yield single
        chain = single.on(name)
        vectors = [(k, int(d.args[1])) for k, d in enumerate(chain.directives) if d.verb == "vectorize"]
        yield from (single.replace(chain.with_factor(k, 1, lanes // 2)) for k, lanes in vectors if lanes > FEWEST)


def _is_slanted(problem: Problem, stage: Stage) -> bool:
    """Whether both the row and the column at which a stage reads something depend on its own column, in no affine
    way."""
    across = stage.dims[problem.row(stage.name)]
    for a in accesses(stage, stage.pure):
        column = problem.row(_source(problem, a.buffer))
        places = [(a.indices[k], a.load.indices[k]) for k in (column - 1, column) if len(a.indices) > -column]
        if places and all(form is None and across in names(e) and _is_smooth(problem, e) for form, e in places):
            return True
    return False


def _source(problem: Problem, buffer: str) -> str:
    producer = problem.graph.producer.get(buffer)
    return buffer if producer is None else producer.name


def _is_smooth(problem: Problem, e: Expr) -> bool:
    """Whether neighbouring points have neighbouring indices: all values that an index loads are the same everywhere, or
    computed from such values."""
    pending, seen = [e], set[str]()
    while pending:
        for load in walk_loads(pending.pop()):
            if load.buffer in seen or not any(names(i) for i in load.indices):
                continue
            producer = problem.graph.producer.get(load.buffer)
            if producer is None or producer.updates:
                return False
            seen.add(load.buffer)
            pending += producer.pure.values
    return True
