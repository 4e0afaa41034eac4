"""Why a schedule is as it is: groups, tiles, levels, cost terms and remarks, shown by `pt.Pipeline.explain()`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ..dataclass import dataclass
from ..schedule.schedule import Schedule

Number = float | int


@dataclass(frozen=True)
class GroupReport:
    """Stages that run together. `costs` are the strategy's terms, by the names its paper gives them."""

    output: str
    members: tuple[str, ...] = ()  # the others, producers first
    levels: tuple[Mapping[str, int], ...] = ()  # of tiles, outermost first: loop -> extent
    costs: Mapping[str, Number] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alternative:
    """A schedule that was considered and lost: where it comes from, what it was predicted to take, and on what it
    would spend more than the one that won."""

    name: str
    schedule: Schedule
    seconds: float
    why: str = ""


@dataclass(frozen=True)
class Report:
    """What a strategy decided, and what about the whole it counted or could not do."""

    strategy: str
    machine: str
    parameters: Mapping[str, object]
    groups: tuple[GroupReport, ...]
    inlined: tuple[str, ...] = ()
    counts: Mapping[str, Number] = field(default_factory=dict)  # such as "states explored"
    remarks: tuple[str, ...] = ()  # such as stages scheduled on their own, and why
    alternatives: tuple[Alternative, ...] = ()  # the best ones that lost, cheapest first

    def __str__(self) -> str:
        lines = [f"{self.strategy} for {self.machine}: {_number(len(self.groups), 'group')}"]
        lines += _listed("parameters", [f"{k}={v}" for k, v in self.parameters.items()])
        lines += _listed("inlined", self.inlined)
        lines += _listed("counts", [f"{k} {_short(v)}" for k, v in self.counts.items()])
        short = all(len(g.costs) <= 1 and not g.remarks for g in self.groups)
        for k, group in enumerate(self.groups, 1):
            lines += ["; ".join(map(str.strip, _group(k, group)))] if short else ["", *_group(k, group)]
        return "\n".join([*lines, *([""] if self.remarks else []), *self.remarks])


def _group(number: int, group: GroupReport) -> list[str]:
    lines = [f"group {number}: {', '.join([*group.members, group.output])}"]
    for k, level in enumerate(group.levels, 1):
        sizes = " x ".join(f"{loop} {extent}" for loop, extent in level.items())
        lines.append(f"  tiles{f' of level {k}' if len(group.levels) > 1 else ''}: {sizes}")
    if not group.levels:
        lines.append("  not tiled")
    lines += [f"  {name}: {_short(value)}" for name, value in group.costs.items()]
    return [*lines, *(f"  {remark}" for remark in group.remarks)]


def _listed(title: str, parts: list[str] | tuple[str, ...]) -> list[str]:
    return [f"{title}: {', '.join(parts)}"] if parts else []


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _short(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{value:.4g}"
