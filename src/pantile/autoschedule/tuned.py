"""tuned: the schedule that `pantile tune` has measured to be fastest, or that of `auto` if there is none.

The winners are kept on disk, which `schedule_cache` reads and strategies do not. `Given` is a schedule that was found
before, in place of a search.
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from ..dataclass import dataclass
from ..schedule.schedule import Schedule, groups, is_inlined
from .auto import Auto
from .strategy import Found, GroupReport, Problem, Report, Strategy


@dataclass(frozen=True)
class Tuned(Strategy):
    """The schedule that `Pipeline.tune` has found to be the fastest, or that of `auto` for calls that were not
    tuned."""

    name: ClassVar[str] = "tuned"
    measures: ClassVar[bool] = True
    by_size: ClassVar[bool] = True

    def find(self, problem: Problem) -> Found:
        """Find the schedule of `auto`, for calls that were not tuned."""
        return Auto().find(problem)


@dataclass(frozen=True)
class Given(Strategy):
    """A schedule that is given for the stages that strategies schedule. `remark` says where it comes from."""

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
