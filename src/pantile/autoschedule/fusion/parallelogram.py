"""Parallelogram tiles inside overlapped tiles (polymage-plus §5.2), as directives.

before:  each member is computed at the inner tile loop, over all that an inner tile needs
after:   its memory lives as long as the outer tile, so that each inner tile computes only what is new

Inner tiles run one after another, and what one has computed the next one keeps: its region starts where the one before
ended, along the right hyperplane of the outer tile. The last one is shorter: moved inwards, it would go back.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph.nodes import Stage
from ...schedule.directives import Directive, StageSchedule
from ..common.marking import Style
from ..common.tiles import TiledGroup, scheduled
from ..strategy import Problem


def parallelograms(problem: Problem, group: TiledGroup, style: Style) -> tuple[StageSchedule, ...]:
    """The directives of a group with two levels of tiles, those of its output first."""
    host, *members = scheduled(problem, group, style)
    output = problem.graph.stage[group.output]
    tile_loops = [str(d.args[1]) for d in host.directives if _is_tile(d, output)]
    if not tile_loops:  # less is needed of the output than a tile
        return (host, *members)
    cut = [d if d.verb != "split" or _is_tile(d, output) else replace(d, tail="guard") for d in host.directives]
    return (replace(host, directives=tuple(cut)), *(m.store_at(host.name, tile_loops[-1]) for m in members))


def _is_tile(d: Directive, output: Stage) -> bool:
    """Whether it makes outer tiles, not tiles of tiles."""
    return d.verb == "split" and d.args[0] in output.dims
