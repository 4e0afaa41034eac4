"""Parallelogram tiles inside overlapped tiles (polymage-plus §5.2), as directives.

before:  each member is computed at the inner tile loop, over all that an inner tile needs
after:   its memory lives as long as the outer tile, so that each inner tile computes only what is new

Inner tiles run one after another, and what one has computed the next one keeps: its region starts where the one before
ended, along the right hyperplane of the outer tile. That takes inner tiles of one size, so outer ones are made of whole
inner ones: for 42 rows in steps of 5, 40 rows. Where an outer one is cut off, so is the last inner one: moved inwards,
it would go back.
"""

from __future__ import annotations

from dataclasses import replace

from ...graph.nodes import Stage
from ...schedule.directives import Directive, StageSchedule
from ..common.tiles import Group, Style, scheduled
from ..strategy import Problem


def parallelograms(problem: Problem, group: Group, style: Style) -> tuple[StageSchedule, ...]:
    """The directives of a group with two levels of tiles, those of its output first."""
    outer, inner = group.tiles
    whole = {dim: n // inner[dim] * inner[dim] if dim in inner else n for dim, n in outer.items()}
    host, *members = scheduled(problem, Group(group.output, group.members, (whole, inner)), style)
    output = problem.graph.stage[group.output]
    tile_loops = [str(d.args[1]) for d in host.directives if _is_tile(d, output)]
    cut = [d if d.verb != "split" or _is_tile(d, output) else replace(d, tail="guard") for d in host.directives]
    return (replace(host, directives=tuple(cut)), *(m.store_at(host.name, tile_loops[-1]) for m in members))


def _is_tile(d: Directive, output: Stage) -> bool:
    """Whether it makes outer tiles, not tiles of tiles."""
    return d.verb == "split" and d.args[0] in output.dims
