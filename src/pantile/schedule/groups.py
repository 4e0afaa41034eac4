"""Which stages of a schedule are computed together: those inside each other's loops, by where they are placed."""

from __future__ import annotations

from ..dataclass import dataclass
from .directives import StageSchedule
from .schedule import Schedule

_PLACES = ("compute_at", "compute_with", "compute_root", "compute_inline")


@dataclass(frozen=True)
class Group:
    """A stage at root, what is computed inside its loops, and how its loops are cut."""

    root: str
    members: tuple[str, ...]  # the others, in the order of the schedule
    tiles: tuple[tuple[str, int], ...]  # loops that are split, and the extents of the parts inside


def groups(schedule: Schedule) -> list[Group]:
    """The groups of a schedule, in its order; inlined stages belong to none."""
    members: dict[str, list[str]] = {}
    for name, chain in schedule.items():
        if not is_inlined(chain):
            root = _root(schedule, name)
            members.setdefault(root, [])
            if name != root:
                members[root].append(name)
    return [Group(root, tuple(others), _tiles(schedule.on(root))) for root, others in members.items()]


def is_inlined(chain: StageSchedule) -> bool:
    """Whether the stage is computed wherever it is read."""
    return _place(chain) == ("compute_inline", None)


def _place(chain: StageSchedule) -> tuple[str, str | None]:
    """The directive that places a stage, and the stage in whose loops it is placed; the last directive counts."""
    for d in reversed(chain.directives):
        if d.verb in _PLACES:
            return d.verb, str(d.args[0]) if d.args else None
    return "compute_root", None


def _root(schedule: Schedule, name: str) -> str:
    seen = {name}
    while True:
        host = _place(schedule.on(name))[1]
        if host is None or host in seen:  # the latter is an update with its own pure definition
            return name
        seen.add(host)
        name = host


def _tiles(chain: StageSchedule) -> tuple[tuple[str, int], ...]:
    """The loops of the pure definition that are split, with their factors."""
    tiles: list[tuple[str, int]] = []
    for d in chain.directives:
        if d.verb == "update":
            break
        if d.verb in ("split", "tile"):
            n = len(d.args) // 4
            tiles += [(str(d.args[k]), int(d.args[3 * n + k])) for k in range(n)]
    return tuple(tiles)
