"""Strips of other lengths: those that leave little over, and fewer and longer ones.

    2000 rows by 64: 32 strips, of which the last one computes 48 rows again, and each computes rows of other stages
    by 250: 8 strips, of which each has as many rows, and a quarter of those that are computed again at their borders

Doubling does not find such lengths, and what is gained is little, but certain: the same loops run less often.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm, prod

from ...schedule.directives import Directive, StageSchedule
from ...schedule.groups import groups
from ...schedule.schedule import Schedule
from ..strategy import Problem

TASKS = 4  # for each thread, at least: others may use a core meanwhile
SCALED = 1.5  # times as many rows are those of a picture of another size
LONGEST = 256  # rows: of more than that, nothing more is gained (`harris`: 640 rows take 2 % longer than 128)


def even_strips(problem: Problem, schedule: Schedule, name: str) -> Iterator[Schedule]:
    """The schedule with other lengths of the strips that a stage goes by in parallel, if it does."""
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
    rows, and its dim. The only parallel loop is the one over strips."""
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
    """The stages that are computed in the loops of another one. Copies are none: they have dims of their own."""
    return (n for g in groups(schedule) if g.root == name for n in g.members if n in problem.graph.stage)


def _is_scaled(problem: Problem, name: str, other: str, dim: str) -> bool:
    """Whether a stage inside has more or fewer rows: whether it slides depends on the first row, which the cost model
    ignores."""
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
