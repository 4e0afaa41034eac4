"""The schedule of a pipeline: a frozen mapping from stage names to their directives.

It prints as the Python that makes it, saves to JSON and loads from it, compares and hashes by value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UserError, here
from .directives import VERBS, Directive, Named, StageSchedule, name_of, on

FORMAT = 1
_WIDTH = 110


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Schedule(Mapping[str, StageSchedule]):
    """Directives per stage: `pt.Schedule(pt.on("out").parallel("y"), pt.on("blur").compute_at("out", "y"))`.

    The order of the stages has no meaning; that of the directives of one stage has.
    """

    stages: Mapping[str, StageSchedule]

    def __init__(self, *stages: StageSchedule) -> None:
        by_name: dict[str, StageSchedule] = {}
        for s in stages:
            if not isinstance(s, StageSchedule):
                raise UserError(f"a Schedule is made of pt.on(...) chains, not of {s!r}", here())
            if s.name in by_name:
                raise UserError(
                    f"stage {s.name!r} is scheduled twice; write one chain {s.head}..., or override with .replace",
                    here(),
                )
            by_name[s.name] = s
        object.__setattr__(self, "stages", by_name)

    def on(self, stage: Named) -> StageSchedule:
        """What is asked of a stage so far; a fresh `pt.on(stage)` if nothing is."""
        name = name_of(stage)
        return self.stages.get(name) or on(name)

    def replace(self, *stages: StageSchedule) -> Schedule:
        """The same schedule with these stages' directives in the place of what they had."""
        return Schedule(*{**self.stages, **{s.name: s for s in stages}}.values())

    def without(self, *stages: Named) -> Schedule:
        """The same schedule with nothing asked of these stages (the default applies to them)."""
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
        """The schedule that `to_json` wrote."""
        try:
            data = json.loads(text)
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f'a schedule has "format": {FORMAT}')
            return Schedule(*(_from_lists(name, lists) for name, lists in data["stages"].items()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"this is not a saved schedule: {error}", here()) from error


def _chain(s: StageSchedule) -> str:
    """A stage's directives on one line, or one per line if that is too long."""
    text = repr(s)
    return text if len(text) <= _WIDTH else "\n    ".join([s.head, *map(str, s.directives)])


def _to_list(d: Directive) -> list[Any]:
    return [d.verb, *d.args, *([{"tail": d.tail}] if d.tail != "auto" else [])]


def _from_lists(name: str, lists: list[list[Any]]) -> StageSchedule:
    chain = on(name)
    for verb, *args in lists:
        if verb not in VERBS:
            raise ValueError(f"there is no directive {verb!r}")
        options = args.pop() if args and isinstance(args[-1], dict) else {}
        chain = getattr(chain, verb)(*args, **options)
    return chain
