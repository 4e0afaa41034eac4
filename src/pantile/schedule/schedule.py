"""The schedule of a pipeline: a frozen mapping from stage names to their directives.

It prints as the Python code that makes it, can be saved to and loaded from JSON, and compares and hashes by value. Its
groups are stages that are computed inside of each other's loops.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .. import untrusted_json
from ..dataclass import dataclass
from ..errors import UserError, UserTypeError, here, shown
from .directives import VERBS, Directive, StageSchedule, on
from .names import Named, name_of

FORMAT = 1
_WIDTH = 110
_PLACES = ("compute_at", "compute_with", "compute_root", "compute_inline")


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Schedule(Mapping[str, StageSchedule]):
    """Directives per stage: `pt.Schedule(pt.on("out").parallel("y"), pt.on("blur").compute_at("out", "y"))`.

    The order of the stages is irrelevant; the order of the directives of one stage matters.
    """

    stages: Mapping[str, StageSchedule]

    def __init__(self, *stages: StageSchedule) -> None:
        by_name: dict[str, StageSchedule] = {}
        for s in stages:
            if not isinstance(s, StageSchedule):
                raise UserTypeError(f"a Schedule is made of pt.on(...) chains, not of {shown(s)}", here())
            if s.name in by_name:
                raise UserError(
                    f"stage {shown(s.name)} is scheduled twice; write one chain {s.head}..., or override with .replace",
                    here(),
                )
            by_name[s.name] = s
        object.__setattr__(self, "stages", by_name)

    def on(self, stage: Named) -> StageSchedule:
        """The directives of a stage so far; an empty `pt.on(stage)` if it has none."""
        name = name_of(stage)
        return self.stages.get(name) or on(name)

    def has(self, *verbs: str) -> bool:
        """Whether a stage has a directive with one of these verbs."""
        return any(not s.verbs.isdisjoint(verbs) for s in self.stages.values())

    def replace(self, *stages: StageSchedule) -> Schedule:
        """A copy of the schedule in which these stages have other directives."""
        return Schedule(*{**self.stages, **{s.name: s for s in stages}}.values())

    def without(self, *stages: Named) -> Schedule:
        """A copy of the schedule without any directives for these stages, to which the default then applies."""
        names = {name_of(s) for s in stages}
        return Schedule(*(s for s in self.stages.values() if s.name not in names))

    def __getitem__(self, name: str) -> StageSchedule:
        return self.stages[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stages)

    def __len__(self) -> int:
        return len(self.stages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self.stages == other.stages

    def __hash__(self) -> int:
        return hash(frozenset(self.stages.values()))

    def __repr__(self) -> str:
        if not self.stages:
            return "pt.Schedule()"
        return "pt.Schedule(\n" + "".join(f"    {_chain(s)},\n" for s in self.stages.values()) + ")"

    def to_json(self) -> str:
        """The schedule as JSON text."""
        stages = {s.name: [_to_list(d) for d in s.directives] for s in self.stages.values()}
        return json.dumps({"format": FORMAT, "stages": stages}, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> Schedule:
        """The schedule that `to_json` wrote. Any text is safe: the result is a schedule or an error."""
        return Schedule(*(_read_stage(name, lists) for name, lists in _read(text).items()))


def _chain(s: StageSchedule) -> str:
    """A stage's directives on one line, or one per line if that is too long."""
    text = repr(s)
    return text if len(text) <= _WIDTH else "\n    ".join([s.head, *map(str, s.directives)])


def _to_list(d: Directive) -> list[Any]:
    return [d.verb, *d.args, *([{"tail": d.tail}] if d.tail != "auto" else [])]


# ---- reading JSON, which is untrusted text


def _read(text: str) -> dict[str, Any]:
    """The directives of every stage, as they are written."""
    try:
        data = untrusted_json.loads(text)
    except (ValueError, TypeError) as error:
        raise _not_saved(str(error)) from error
    if not isinstance(data, dict) or type(data.get("format")) is not int or data["format"] != FORMAT:
        raise _not_saved(f'a schedule has "format": {FORMAT}')
    stages = data.get("stages")
    if not isinstance(stages, dict) or len(data) > 2:
        raise _not_saved('besides, it has "stages", an object with a list of directives for each')
    return stages


def _read_stage(name: str, lists: Any) -> StageSchedule:
    chain = on(name)
    if not isinstance(lists, list):
        raise _not_saved(f"stage {shown(name)} has {shown(lists)} instead of a list of directives")
    for d in lists:
        chain = _read_directive(chain, d)
    return chain


def _read_directive(chain: StageSchedule, d: Any) -> StageSchedule:
    if not isinstance(d, list) or not d or not isinstance(d[0], str):
        raise _not_saved(f'{shown(d)} is not a directive, such as ["parallel", "y"]')
    verb, *args = d
    if verb not in VERBS:
        raise _not_saved(f"there is no directive {shown(verb)}")
    options = args.pop() if args and isinstance(args[-1], dict) else {}
    if not options.keys() <= {"tail"} or not all(isinstance(a, (str, int)) for a in args):
        raise _not_saved(f"{shown(d)} has more than names and numbers, and a tail at its end")
    try:
        added: StageSchedule = getattr(chain, verb)(*args, **options)
    except UserError:
        raise
    except TypeError as error:  # too many or too few arguments
        raise _not_saved(f"{shown(d)}: {error}") from error
    return added


def _not_saved(why: str) -> UserError:
    return UserError(f"this is not a saved schedule: {why}", here())


@dataclass(frozen=True)
class Group:
    """A stage at root, the stages computed inside of its loops, and the tiles of its loops."""

    root: str
    members: tuple[str, ...]  # the other stages, in the order of the schedule
    tiles: tuple[tuple[str, int], ...]  # loops that are split, and the extents of the inner parts


def groups(schedule: Schedule) -> list[Group]:
    """The groups of a schedule, in its order. Inlined stages belong to no group."""
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
    """The directive that places a stage, and the stage in whose loops it is placed. The last directive counts."""
    for d in reversed(chain.directives):
        if d.verb in _PLACES:
            return d.verb, str(d.args[0]) if d.args else None
    return "compute_root", None


def _root(schedule: Schedule, name: str) -> str:
    seen = {name}
    while True:
        host = _place(schedule.on(name))[1]
        if host is None or host in seen:  # the latter: an update in the loops of its own pure definition
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
