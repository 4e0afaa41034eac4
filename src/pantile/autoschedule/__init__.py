"""Strategies that find schedules, one file each: `pt.Pipeline(..., schedule="greedy")`.

A strategy with other parameters than its own is given as a value: `schedule=pt.autoschedule.Greedy(load_cost=20)`.
"""

from __future__ import annotations

from .auto import Auto
from .dp import ABLATION, AS_PRINTED, Dp
from .greedy import Greedy, TunedGreedy
from .kernel import Kernel
from .naive import Naive
from .polymage import Polymage, TunedPolymage
from .posttile import PostTile
from .report import Alternative, GroupReport, Report
from .reuse import Reuse
from .strategy import Found, Problem, Strategy
from .tuned import Given, Tuned

STRATEGIES: dict[str, type[Strategy]] = {
    s.name: s for s in (Naive, Greedy, TunedGreedy, Dp, Polymage, TunedPolymage, PostTile, Kernel, Reuse, Auto, Tuned)
}
# Strategies with other parameters than their own that have names, to be compared with them.
VARIANTS: dict[str, Strategy] = {**ABLATION, **AS_PRINTED}

__all__ = [
    "STRATEGIES", "VARIANTS", "Alternative", "Auto", "Dp", "Found", "Given", "Greedy", "GroupReport", "Kernel", "Naive",
    "Polymage", "PostTile", "Problem", "Report", "Reuse", "Strategy", "Tuned", "TunedGreedy", "TunedPolymage",
]  # fmt: skip
