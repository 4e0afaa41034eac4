"""The requested schedule of a pipeline: a schedule, a strategy, or the name of one.

The default is named by PANTILE_SCHEDULE, or else is `auto`. "plain" is the schedule that names no stage
(`schedule.default`): it needs no search, and is the same for all sizes. A strategy schedules for CPUs, for GPUs or for
both; the default on GPUs is "plain".
"""

from __future__ import annotations

import os

from . import autoschedule
from .autoschedule import STRATEGIES, Auto, Strategy
from .errors import UserError, UserTypeError, shown
from .schedule.schedule import Schedule
from .target import Target

VARIABLE = "PANTILE_SCHEDULE"
PLAIN = "plain"


def requested(schedule: Schedule | Strategy | str | None, target: Target) -> Schedule | Strategy:
    """The schedule or strategy that `schedule=` stands for."""
    if schedule is None:
        return Schedule() if target.has_blocks else _by_default()
    chosen = _named(schedule) if isinstance(schedule, str) else schedule
    if not isinstance(chosen, (Schedule, Strategy)):
        kind = UserError if isinstance(schedule, str) else UserTypeError
        raise kind(
            f"schedule={shown(schedule)} is not a schedule; pass pt.Schedule(pt.on(...)...), or one of {_names()}"
        )
    if isinstance(chosen, Strategy):
        _check_target(chosen, target)
    return chosen


def _check_target(strategy: Strategy, target: Target) -> None:
    """Refuse a strategy that does not know machines of the target's kind."""
    if target.has_blocks and not strategy.for_gpus:
        raise UserError(
            f"schedule={strategy.name!r} finds schedules for CPUs, and the pipeline is for {target}; pass "
            "'greedy', 'posttile', 'autogpu' or 'polymage_gpu', a pt.Schedule of block and thread loops, or nothing: "
            "then each stage is a kernel"
        )
    if not target.has_blocks and not strategy.for_cpus:
        raise UserError(
            f"schedule={strategy.name!r} finds schedules for GPUs, and the pipeline is for {target}; write "
            "target='cuda' or target='cuda-sim', or pass another schedule"
        )


def _by_default() -> Schedule | Strategy:
    name = os.environ.get(VARIABLE)
    if not name:
        return Auto()
    chosen = _named(name)
    if chosen is None:
        raise UserError(
            f"the environment variable {VARIABLE}={shown(name)} is not a schedule; set it to one of {_names()}, or "
            "unset it"
        )
    return chosen


def _named(name: str) -> Schedule | Strategy | None:
    if name == PLAIN:
        return Schedule()
    return STRATEGIES[name]() if name in STRATEGIES else autoschedule.VARIANTS.get(name)


def _names() -> str:
    return ", ".join(map(repr, (PLAIN, *STRATEGIES)))
