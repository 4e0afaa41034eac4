"""The differences between two schedules, in a few words."""

from __future__ import annotations

from collections.abc import Iterator

from ..schedule.directives import Directive, StageSchedule
from ..schedule.schedule import Schedule

MOST_STAGES, MOST_CHANGES = 2, 2
_PLACES = ("compute_inline", "compute_root", "compute_at", "compute_with")


def differences(mine: Schedule, other: Schedule) -> str:
    """The directives of `other` for the stages whose schedules differ."""
    names = [name for name in dict.fromkeys((*mine, *other)) if mine.on(name) != other.on(name)]
    # The compute level matters most.
    names.sort(key=lambda name: _place(mine.on(name)) == _place(other.on(name)))
    texts = [_stage(mine.on(name), other.on(name)) for name in names[:MOST_STAGES]]
    if len(names) > MOST_STAGES:
        rest = len(names) - MOST_STAGES
        texts.append(f"{rest} more stage{'s' if rest > 1 else ''}")
    return "; ".join(texts) or "the same loops"


def _stage(mine: StageSchedule, other: StageSchedule) -> str:
    changes = list(_changes(mine, other))
    more = ", ..." if len(changes) > MOST_CHANGES else ""
    return f"{mine.name}: {', '.join(changes[:MOST_CHANGES])}{more}"


def _changes(mine: StageSchedule, other: StageSchedule) -> Iterator[str]:
    """The directives that only the other schedule has; then those that it lacks."""
    if _place(mine) != _place(other):
        yield _words(_place(other))
    described = (*_PLACES, "reorder")
    added = [d for d in other.directives if d not in mine.directives and d.verb not in described]
    removed = [d for d in mine.directives if d not in other.directives and d.verb not in described]
    for d in added:
        before = next((m for m in removed if _without_numbers(m) == _without_numbers(d)), None)
        yield _words(d) if before is None else f"{_words(d)} (not {_numbers(before)})"
    changed = {_without_numbers(d) for d in added}
    yield from (f"no {_words(d)}" for d in removed if _without_numbers(d) not in changed)
    orders = [[d for d in chain.directives if d.verb == "reorder"] for chain in (mine, other)]
    if not added and not removed and orders[0] != orders[1]:  # otherwise names of loops differ anyway
        yield "loops in another order"


def _place(chain: StageSchedule) -> Directive:
    """The place where a stage is computed, by its last directive."""
    return next((d for d in reversed(chain.directives) if d.verb in _PLACES), Directive("compute_root", ()))


def _words(d: Directive) -> str:
    args = [str(a) for a in d.args]
    match d.verb:
        case "compute_inline":
            return "inlined"
        case "compute_root":
            return "computed at root"
        case "compute_at" | "store_at" | "compute_with":
            verb = d.verb.replace("compute_", "computed ").replace("store_", "stored ")
            return f"{verb} {'.'.join(args)}"
        case "split" | "tile":
            n = len(args) // 4
            return f"{', '.join(args[:n])} split by {' x '.join(args[3 * n :])}"
        case "vectorize" | "unroll" | "parallel" if len(args) == 2:
            return f"{d.verb} {args[0]} by {args[1]}"
    return " ".join([d.verb, *args])


def _without_numbers(d: Directive) -> tuple[object, ...]:
    return (d.verb, *(a for a in d.args if isinstance(a, str)), d.tail)


def _numbers(d: Directive) -> str:
    return " x ".join(str(a) for a in d.args if not isinstance(a, str))
