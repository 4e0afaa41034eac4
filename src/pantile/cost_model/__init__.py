"""One price for any schedule: predicted seconds, and their causes."""

from __future__ import annotations

from .model import Sizes, price, price_plan
from .result import Causes, Price, StagePrice
from .roofline import Limits, arithmetic_seconds, limits

__all__ = ["Causes", "Limits", "Price", "Sizes", "StagePrice", "arithmetic_seconds", "limits", "price", "price_plan"]
