"""The schedule as frozen data: directives, their legality, and the plan that lowering reads."""

from .default import complete
from .directives import Directive, StageSchedule, on
from .plan import Plan
from .resolve import resolve
from .schedule import Schedule

__all__ = ["Directive", "Plan", "Schedule", "StageSchedule", "complete", "on", "resolve"]
