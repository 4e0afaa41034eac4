"""Strategies with other than their default parameters, for comparison, by the names under which pipelines know them."""

from __future__ import annotations

from . import dp
from .autogpu import NONE, OVERLAP, AutoGpu
from .polymage_gpu import BLOCK, PRINTED, REGISTER, WARP, PolymageGpu
from .posttile import MINFUSE, PostTile
from .strategy import Strategy

VARIANTS: dict[str, Strategy] = {
    **dp.VARIANTS,
    **{f"autogpu-{fusion}": AutoGpu(fusion=fusion) for fusion in (NONE, OVERLAP)},
    **{f"polymage_gpu-{tiles}": PolymageGpu(tiles=tiles) for tiles in (BLOCK, WARP, REGISTER)},
    "polymage_gpu-printed": PolymageGpu(cost=PRINTED),
    "posttile-minfuse": PostTile(fusion=MINFUSE),
}
