"""Random choices, as all generators here make them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass
class Drawer:
    """Makes random choices by a function that draws from strategies."""

    draw: Draw

    def pick(self, options: Sequence[T]) -> T:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def chance(self, percent: int) -> bool:
        """True with this probability; shrinks towards False."""
        return self.number(0, 99) >= 100 - percent
