"""Strategies that find schedules, one file each: `pt.Pipeline(..., schedule="greedy")`.

A strategy with parameters other than the default ones is given as a value:
`schedule=pt.autoschedule.Greedy(load_cost=20)`. Strategies that `auto` does not use are imported when they are first
named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

from ..lazy_imports import imported_later
from .auto import Auto
from .greedy import Greedy, TunedGreedy
from .kernel import Kernel
from .naive import Naive
from .reuse import Reuse
from .search.resizing import resizings
from .strategy import Alternative, Found, GroupReport, Problem, Report, Strategy, size_class
from .tuned import Given, Tuned

if TYPE_CHECKING:
    from .autogpu import AutoGpu
    from .dp import Dp
    from .polymage import Polymage, TunedPolymage
    from .polymage_gpu import PolymageGpu
    from .posttile import PostTile
    from .variants import VARIANTS
else:
    __getattr__, __dir__ = imported_later(
        __name__,
        autogpu="AutoGpu",
        dp="Dp",
        polymage="Polymage TunedPolymage",
        polymage_gpu="PolymageGpu",
        posttile="PostTile",
        variants="VARIANTS",
    )


class _Strategies(Mapping[str, type[Strategy]]):
    """All strategies by name."""

    _CLASSES: ClassVar = {
        "naive": "Naive",
        "greedy": "Greedy",
        "greedy_tuned": "TunedGreedy",
        "dp": "Dp",
        "polymage": "Polymage",
        "polymage_tuned": "TunedPolymage",
        "posttile": "PostTile",
        "kernel": "Kernel",
        "reuse": "Reuse",
        "autogpu": "AutoGpu",
        "polymage_gpu": "PolymageGpu",
        "auto": "Auto",
        "tuned": "Tuned",
    }

    def __getitem__(self, name: str) -> type[Strategy]:
        strategy: type[Strategy] = getattr(sys.modules[__name__], self._CLASSES[name])
        return strategy

    def __iter__(self) -> Iterator[str]:
        return iter(self._CLASSES)

    def __len__(self) -> int:
        return len(self._CLASSES)


STRATEGIES = _Strategies()

__all__ = [
    "STRATEGIES", "VARIANTS", "Alternative", "Auto", "AutoGpu", "Dp", "Found", "Given", "Greedy", "GroupReport",
    "Kernel", "Naive", "Polymage", "PolymageGpu", "PostTile", "Problem", "Report", "Reuse", "Strategy", "Tuned",
    "TunedGreedy", "TunedPolymage", "resizings", "size_class",
]  # fmt: skip
