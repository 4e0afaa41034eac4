"""Many different schedules of an app: those it has by name, and random changes of them, to compare predictions with.

A change takes another factor for a split, a vector or an unrolled loop, or another place for a stage; one that is not
legal is not made.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pantile as pt

from ..apps import App

NAMED = ("expert", "default", *(n for n, s in pt.autoschedule.STRATEGIES.items() if not s.measures))
MOST_PIXELS = 1 << 21  # of an input: enough to leave the caches, little enough to measure hundreds of schedules
MOST_SUMMED = 40  # side of the planes that channels are summed over
LARGEST_VECTOR = 64
_ATTEMPTS = 40  # per schedule that is wanted
_FACTORS = {"split": 1, "tile": 1, "vectorize": 1, "unroll": 1, "parallel": 1}


def reduced(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Shapes like these, but so small that runs are short: long axes of large inputs are halved."""
    found = dict(shapes)
    while max(_points(s) for s in found.values()) > MOST_PIXELS:
        found = {name: tuple(n // 2 if n > 2 * MOST_SUMMED else n for n in s) for name, s in found.items()}
    return found


def _points(shape: tuple[int, ...]) -> int:
    count = 1
    for n in shape:
        count *= n
    return count


def variations(app: App, arguments: Mapping[str, Any], wanted: int, seed: int = 0) -> Iterator[tuple[str, pt.Pipeline]]:
    """So many pipelines under different schedules, each with the name of the one it is a change of."""
    draw = random.Random(f"{app.name} {seed}")
    plain = app.build()
    bits = plain.options.target.vector_bits
    names = dict.fromkeys(map(app.called, NAMED))
    named = {how: plain.with_schedule(app.schedule(how, bits), estimates=arguments) for how in names}
    bases = [(how, p, p.schedule) for how, p in named.items()]
    seen = set()
    count = 0
    for how, p, s in bases:
        if s not in seen:
            seen.add(s)
            count += 1
            yield how, p
    for _ in range(_ATTEMPTS * wanted):
        if count >= wanted:
            return
        how, p, s = draw.choice(bases)
        for _ in range(draw.choice((1, 2, 3, 4))):
            s = changed(draw, s)
        if s in seen:
            continue
        seen.add(s)
        try:
            # A schedule that names only the user's stages is for those, whatever the strategy was asked about.
            other = p.with_schedule(s)
        except pt.PantileError:
            continue
        count += 1
        yield f"{how}*", other


def changed(draw: random.Random, schedule: pt.Schedule) -> pt.Schedule:
    """One stage of it in another way; perhaps not a legal one."""
    stage = draw.choice(list(schedule.values()))
    places = [k for k, d in enumerate(stage.directives) if d.verb in _FACTORS or d.verb in ("compute_at", "store_at")]
    if not places or draw.random() < 0.15:
        return schedule.replace(_elsewhere(draw, stage))
    k = draw.choice(places)
    d = stage.directives[k]
    if d.verb in _FACTORS:
        return schedule.replace(_resized(draw, stage, k))
    return schedule.replace(_elsewhere(draw, stage))


def _resized(draw: random.Random, stage: Any, k: int) -> Any:
    d = stage.directives[k]
    numbers = [j for j, a in enumerate(d.args) if isinstance(a, int)]
    if not numbers:
        return stage
    j = draw.choice(numbers)
    factor = max(1, int(d.args[j] * draw.choice((0.25, 0.5, 2, 4))))
    if d.verb == "vectorize":
        factor = max(2, min(LARGEST_VECTOR, factor))
    args = (*d.args[:j], factor, *d.args[j + 1 :])
    directives = (*stage.directives[:k], type(d)(d.verb, args, d.tail), *stage.directives[k + 1 :])
    return type(stage)(stage.name, directives)


def _elsewhere(draw: random.Random, stage: Any) -> Any:
    """At root, or inlined."""
    places = ("compute_at", "store_at", "compute_root", "compute_inline", "store_root", "compute_with")
    kept = tuple(d for d in stage.directives if d.verb not in places)
    moved = type(stage)(stage.name, kept)
    if draw.random() < 0.3:
        return type(stage)(stage.name, ()).compute_inline()
    return moved.compute_root()
