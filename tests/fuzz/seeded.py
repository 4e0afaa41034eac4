"""Draws one value of a Hypothesis strategy from a seed, without the search of Hypothesis.

Draws are uniform, unlike those of Hypothesis itself, and depend only on the seed: a seed yields the same case whatever
other cases are drawn and whatever modules are loaded.
"""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import PrimitiveProvider

from .draws import Draw

_MOST_CHOICES = 1 << 20  # a case needs some hundreds


def seeded(seed: int | str) -> Draw:
    """A function that draws from strategies, with the same values for the same seed."""
    data = ConjectureData(random=None, provider=_Uniform(Random(seed)), max_choices=_MOST_CHOICES)
    return data.draw


class _Uniform(PrimitiveProvider):
    """Uniform choices of the kinds that our strategies make."""

    def __init__(self, random: Random) -> None:
        super().__init__(None)
        self.random = random

    def draw_boolean(self, p: float = 0.5) -> bool:
        return self.random.random() < p

    def draw_integer(self, min_value: int | None = None, max_value: int | None = None, **more: Any) -> int:
        assert min_value is not None and max_value is not None, "integers need bounds here"
        return self.random.randint(min_value, max_value)

    def _refuse(self, *args: Any, **more: Any) -> Any:
        """Reject draws that our strategies never make, since they would need a distribution."""
        raise TypeError("floats, strings and bytes are picked from lists here: use sampled_from")

    draw_float = draw_string = draw_bytes = _refuse
