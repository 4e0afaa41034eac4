"""One price for any schedule: predicted seconds, and their causes."""

from __future__ import annotations

from .model import Sizes, plan_cost, price
from .result import Causes, Cost, StageCost
from .roofline import Limits, arithmetic_seconds, limits

__all__ = ["Causes", "Limits", "Cost", "Sizes", "StageCost", "arithmetic_seconds", "limits", "price", "plan_cost"]
