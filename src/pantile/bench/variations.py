"""Many different schedules of an app: those it has by name, and random changes of them, to compare predictions with.

A change takes another factor for a split, a vector or an unrolled loop, or another place for a stage; one that is not
legal is not made.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import pantile as pt

from ..apps import App

NAMED = ("expert", "plain", *(n for n, s in pt.autoschedule.STRATEGIES.items() if s.for_cpus and not s.measures))
MOST_POINTS = 1 << 21  # of an input: enough to leave the caches of a core, and quick to run
SHORT = 80  # axes that are left as they are
LARGEST_VECTOR = 64
_ATTEMPTS = 40  # per schedule that is wanted
_WITH_FACTORS = ("split", "tile", "vectorize", "unroll", "parallel")
_PLACES = ("compute_at", "store_at", "compute_root", "compute_inline", "store_root", "compute_with")


def reduced(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Shapes like these, but so small that runs are short: long axes are halved, of all inputs alike."""
    result = dict(shapes)
    while max(map(prod, result.values())) > MOST_POINTS:
        smaller = {name: tuple(n // 2 if n > SHORT else n for n in shape) for name, shape in result.items()}
        if smaller == result:
            break
        result = smaller
    return result


def variations(app: App, arguments: Mapping[str, Any], wanted: int, seed: int = 0) -> Iterator[tuple[str, pt.Pipeline]]:
    """So many pipelines under different schedules, each with the name of the one it is a change of."""
    draw = random.Random(f"{app.name} {seed}")
    plain = app.build()
    bases: list[tuple[str, pt.Pipeline]] = []
    seen: set[pt.Schedule] = set()
    for how in dict.fromkeys(map(app.called, NAMED)):
        p = plain.with_schedule(app.schedule(how, plain.options.target), estimates=arguments)
        if p.schedule not in seen:
            seen.add(p.schedule)
            bases.append((how, p))
    yield from bases
    for _ in range(_ATTEMPTS * wanted):
        if len(seen) >= wanted:
            return
        how, p = draw.choice(bases)
        schedule = p.schedule
        for _ in range(draw.choice((1, 2, 3, 4, 6, 8))):
            schedule = changed(draw, schedule)
        if schedule in seen:
            continue
        try:
            other = p.with_schedule(schedule)
        except pt.PantileError:
            continue
        seen.add(schedule)
        yield f"{how}, changed", other


def changed(draw: random.Random, schedule: pt.Schedule) -> pt.Schedule:
    """One stage of it in another way; perhaps not a legal one."""
    stage = draw.choice(list(schedule.values()))
    places = [k for k, d in enumerate(stage.directives) if d.verb in (*_WITH_FACTORS, "compute_at", "store_at")]
    k = draw.choice(places) if places and draw.random() > 0.15 else None
    if k is None or stage.directives[k].verb not in _WITH_FACTORS:
        return schedule.replace(_at_root_or_inlined(draw, stage))
    if stage.directives[k].verb == "vectorize" and draw.random() < 0.2:  # element by element
        return schedule.replace(replace(stage, directives=(*stage.directives[:k], *stage.directives[k + 1 :])))
    return schedule.replace(_resized(draw, stage, k))


def _resized(draw: random.Random, stage: pt.StageSchedule, k: int) -> pt.StageSchedule:
    """With another factor in one of its directives."""
    d = stage.directives[k]
    numbers = [j for j, a in enumerate(d.args) if isinstance(a, int)]
    if not numbers:
        return stage
    j = draw.choice(numbers)
    factor = max(1, int(int(d.args[j]) * draw.choice((0.125, 0.25, 0.5, 2, 4, 8))))
    if d.verb == "vectorize":
        factor = max(2, min(LARGEST_VECTOR, factor))
    return stage.with_factor(k, j, factor)


def _at_root_or_inlined(draw: random.Random, stage: pt.StageSchedule) -> pt.StageSchedule:
    """At root, or inlined."""
    if draw.random() < 0.3:
        return pt.on(stage.name).compute_inline()
    others = tuple(d for d in stage.directives if d.verb not in _PLACES)
    return replace(stage, directives=others).compute_root()
