"""Apps of many stages that are alike, with fewer of each kind: the simulator takes seconds for all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pantile.apps import APPS, lens_blur, stencil_chain, vdsr
from pantile.apps.app import App

from ..long import LONG
from .case import Case
from .cases import CASES
from .cases import lens_blur as lens_blur_case
from .cases import stencil_chain as stencil_chain_case
from .cases import vdsr as vdsr_case

STAGES, LAYERS, LEVELS = 4, 4, 7

SHORT: dict[str, tuple[App, Case]] = {
    "stencil_chain": (
        replace(
            APPS["stencil_chain"],
            build=partial(stencil_chain.build, STAGES),
            on_gpu=partial(stencil_chain.on_gpu, STAGES),
        ),
        replace(CASES["stencil_chain"], formula=partial(stencil_chain_case.stencil_chain, stages=STAGES)),
    ),
    "vdsr": (
        replace(APPS["vdsr"], build=partial(vdsr.build, LAYERS), on_gpu=partial(vdsr.on_gpu, LAYERS)),
        replace(
            CASES["vdsr"],
            odd=tuple(vdsr_case.shapes(*img, layers=LAYERS) for img in ((1, 1, 1), (2, 3, 9), (1, 5, 11))),
        ),
    ),
    "lens_blur": (
        replace(APPS["lens_blur"], build=partial(lens_blur.build, LEVELS), on_gpu=partial(lens_blur.on_gpu, LEVELS)),
        replace(
            CASES["lens_blur"],
            formula=partial(lens_blur_case.lens_blur, levels=LEVELS),
            odd=(lens_blur_case.shapes(64, 67), lens_blur_case.shapes(69, 65), lens_blur_case.shapes(67, 78)),
        ),
    ),
}


def app_and_case(name: str) -> tuple[App, Case]:
    """What the simulator runs of an app; all of it with PANTILE_FUZZ=long."""
    return SHORT[name] if name in SHORT and not LONG else (APPS[name], CASES[name])
