"""tuned: what `pantile tune` has measured to be fastest; until then, what `auto` finds.

The winners are kept on disk, which strategies do not read: `schedule_cache` does. `Given` is how a schedule that
somebody has found before takes the place of a search."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from ..dataclass import dataclass
from ..schedule.schedule import Schedule, groups, is_inlined
from .auto import Auto
from .strategy import Found, GroupReport, Problem, Report, Strategy


@dataclass(frozen=True)
class Tuned(Strategy):
    """What `Pipeline.tune` has found to be the quickest, and what `auto` finds for calls that were not tuned."""

    name: ClassVar[str] = "tuned"
    measures: ClassVar[bool] = True
    by_size: ClassVar[bool] = True

    def find(self, problem: Problem) -> Found:
        """Find the schedule of `auto`, where nothing was tuned."""
        return Auto().find(problem)


@dataclass(frozen=True)
class Given(Strategy):
    """This schedule, of the stages that strategies schedule; `remark` says where it comes from."""

    name: ClassVar[str] = "given"
    schedule: Schedule = field(default_factory=Schedule)
    remark: str = ""
    called: str = "given"

    def find(self, problem: Problem) -> Found:
        """Return the schedule that was given, without searching, and a report on it."""
        together = tuple(
            GroupReport(g.root, g.members, (dict(g.tiles),) if g.tiles else ()) for g in groups(self.schedule)
        )
        inlined = tuple(name for name, chain in self.schedule.items() if is_inlined(chain))
        remarks = (self.remark,) if self.remark else ()
        return Found(self.schedule, Report(self.called, problem.machine.name, {}, together, inlined, {}, remarks))
