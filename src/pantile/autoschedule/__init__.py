"""Strategies that find schedules, one file each: `pt.Pipeline(..., schedule="greedy")`.

A strategy with other parameters than its own is given as a value: `schedule=pt.autoschedule.Greedy(load_cost=20)`.
"""

from __future__ import annotations

from .naive import Naive
from .report import GroupReport, Report
from .strategy import Found, Problem, Strategy

STRATEGIES: dict[str, type[Strategy]] = {s.name: s for s in (Naive,)}

__all__ = ["STRATEGIES", "Found", "GroupReport", "Naive", "Problem", "Report", "Strategy"]
