"""One price for any schedule: predicted seconds, and their causes."""

from __future__ import annotations

from .pricing import Causes, Price, Sizes, StagePrice, price, price_plan

__all__ = ["Causes", "Price", "Sizes", "StagePrice", "price", "price_plan"]
