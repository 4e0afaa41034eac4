"""Parallelogram tiles inside overlapped tiles (polymage-plus §5.2), as directives.

before:  each member is computed at the inner tile loop, over all that an inner tile needs
after:   its memory lives as long as the outer tile, so that each inner tile computes only what is new

Inner tiles run one after another, and what one has computed the next one keeps: its region starts where the one before
ended, along the right hyperplane of the outer tile.
"""

from __future__ import annotations

from ..graph.nodes import Stage
from ..schedule.directives import StageSchedule


def parallelograms(output: Stage, part: tuple[StageSchedule, ...]) -> tuple[StageSchedule, ...]:
    """`part` has the directives of a group with two levels of tiles, those of its output first."""
    host, *members = part
    outer = [str(d.args[1]) for d in host.directives if d.verb == "split" and d.args[0] in output.dims]
    return (host, *(m.store_at(host.name, outer[-1]) for m in members))
