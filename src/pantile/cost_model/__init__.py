"""The cost model: the seconds that a call is predicted to take under any schedule, and what they are spent on."""

from __future__ import annotations

from .model import Sizes, plan_cost, predict_cost
from .result import Causes, Cost, Limits, StageCost, arithmetic_seconds, limits

__all__ = [
    "Causes",
    "Limits",
    "Cost",
    "Sizes",
    "StageCost",
    "arithmetic_seconds",
    "limits",
    "plan_cost",
    "predict_cost",
]
