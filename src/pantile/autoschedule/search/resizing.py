"""Resizing: one factor of a schedule, of a tile, a vector, an unrolled loop or a task, becomes twice or half as large.

Among vectors of equal cost, those that fill a cache line are better for outputs: whole lines are written faster.

Strips may have other lengths, too: lengths that leave little over, or fewer and longer strips.

    2000 rows by 64: 32 strips, of which the last one computes 48 rows again, and each computes rows of other stages
    by 250: 8 strips, of which each has as many rows, and a quarter of those that are computed again at their borders

Doubling does not find such lengths. The gain is small but certain: the same loops run less often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import lcm, prod

from ...schedule.directives import WITH_FACTORS, Directive, StageSchedule
from ...schedule.schedule import Schedule, groups
from ..strategy import Problem

WIDEST = 64  # lanes
TASKS = 4  # for each thread, at least: others may use a core meanwhile
SCALED = 1.5  # times as many rows: a picture of another size
LONGEST = 256  # rows: longer strips gain nothing more (`harris`: 640 rows take 2 % longer than 128)


def resizings(
    schedule: Schedule, extents: Callable[[str], Mapping[str, int]] = lambda name: {}
) -> Iterator[tuple[str, Schedule]]:
    """Yield the stage that is changed, and the schedule. `extents` are those of a stage's dims, as far as known: a
    factor that covers a whole dim does not grow."""
    for chain in schedule.values():
        known = extents(chain.name)
        for k, d in enumerate(chain.directives):
            if d.verb in WITH_FACTORS:
                for j, factor in enumerate(d.args):
                    if isinstance(factor, int):
                        covers = factor >= known.get(str(d.args[0]), factor + 1)
                        for other in (factor // 2,) if covers else (factor * 2, factor // 2):
                            if other >= 2 and (d.verb != "vectorize" or other <= WIDEST):
                                yield chain.name, schedule.replace(chain.with_factor(k, j, other))


def filling_lines(problem: Problem, schedule: Schedule, output: str) -> Schedule | None:
    """Return the schedule of an output with twice as many lanes, if these fill a cache line."""
    chain, line = schedule.on(output), problem.cpu.l1.line
    for k, d in enumerate(chain.directives if problem.row(output) == -1 else ()):
        if d.verb == "update":
            break
        if d.verb == "vectorize" and len(d.args) > 1:
            lanes = 2 * int(d.args[1])
            fills = lanes * problem.graph.stage[output].dtypes[0].bytes == line
            return schedule.replace(chain.with_factor(k, 1, lanes)) if fills else None
    return None


def even_strips(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """Yield the schedule with other lengths of the strips that a stage computes in parallel, if it does."""
    chain = schedule.on(name)
    if "compute_root" not in chain.verbs or "update" in chain.verbs or not problem.facts.is_limited(name):
        return
    strips = _split(problem, chain, name)
    if strips is None:
        return
    k, rows, step, dim = strips
    if any(_is_scaled(problem, name, other, dim) for other in _inside(problem, schedule, name)):
        return
    _, inner, length = chain.directives[k].args[1:]
    unit = lcm(prod(_factors(chain.directives[k + 1 :], str(inner))), 1 + step % 2)
    count = -(-rows // int(length))
    least = max(TASKS * problem.cpu.threads, -(-rows * step // LONGEST))
    lengths = (-(-rows // n // unit) * unit for n in dict.fromkeys((count, least)) if n <= count)
    for other in dict.fromkeys(lengths):
        if other != length:
            yield schedule.replace(chain.with_factor(k, 3, other))


def _split(problem: Problem, chain: StageSchedule, name: str) -> tuple[int, int, int, str] | None:
    """The index of the directive that makes strips, the trip count of the loop that it splits, the step of that loop in
    rows, and its dim. The only parallel loop must be the one over strips."""
    extents = dict(zip(problem.graph.stage[name].dims, problem.facts.extents(name), strict=True))
    steps, dims = dict.fromkeys(extents, 1), {d: d for d in extents}
    shared = [d for d in chain.directives if d.verb == "parallel"]
    if len(shared) != 1 or len(shared[0].args) > 1:
        return None
    for k, d in enumerate(chain.directives):
        if d.verb == "fuse":
            return None
        if d.verb == "split":
            loop, outer, inner, factor = (str(d.args[0]), str(d.args[1]), str(d.args[2]), int(d.args[3]))
            rows, step = extents[loop], steps[loop]
            if outer == shared[0].args[0]:
                return k, rows, step, dims[loop]
            extents |= {outer: -(-rows // factor), inner: factor}
            steps |= {outer: step * factor, inner: step}
            dims |= {outer: dims[loop], inner: dims[loop]}
    return None


def _inside(problem: Problem, schedule: Schedule, name: str) -> Iterator[str]:
    """The stages that are computed in the loops of another one, without copies, which have dims of their own."""
    return (n for g in groups(schedule) if g.root == name for n in g.members if n in problem.graph.stage)


def _is_scaled(problem: Problem, name: str, other: str, dim: str) -> bool:
    """Whether a stage inside has more or fewer rows: then it depends on the first row whether it slides, which the cost
    model ignores."""
    dims = problem.graph.stage[other].dims
    if dim not in dims:
        return False
    here, there = (problem.facts.extents(n)[problem.graph.stage[n].dims.index(dim)] for n in (name, other))
    return max(here, there) > SCALED * min(here, there)


def _factors(directives: tuple[Directive, ...], loop: str) -> Iterator[int]:
    """The factors by which a loop is split further."""
    for d in directives:
        if d.verb in ("split", "unroll", "vectorize") and d.args[0] == loop:
            yield from (a for a in d.args if isinstance(a, int))
