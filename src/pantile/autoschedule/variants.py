"""Strategies with other parameters than their own, and names by which pipelines know them, to be compared."""

from __future__ import annotations

from . import dp
from .polymage_gpu import PRINTED, PolymageGpu
from .posttile import MINFUSE, PostTile
from .strategy import Strategy

VARIANTS: dict[str, Strategy] = {
    **dp.VARIANTS,
    "polymage_gpu-printed": PolymageGpu(cost=PRINTED),
    "posttile-minfuse": PostTile(fusion=MINFUSE),
}
