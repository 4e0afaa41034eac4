"""One price for any schedule: predicted seconds, and their causes."""

from __future__ import annotations

from .limits import Limits, arithmetic_seconds, limits
from .pricing import Sizes, price, price_plan
from .result import Causes, Price, StagePrice

__all__ = ["Causes", "Limits", "Price", "Sizes", "StagePrice", "arithmetic_seconds", "limits", "price", "price_plan"]
