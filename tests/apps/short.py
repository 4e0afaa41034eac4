"""Apps of many stages that are alike, with fewer of each kind: compiling or simulating all of them takes seconds.

Each still has a first, a middle and a last level, layer or sweep, and stages of every kind that its schedules know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pantile.apps import (
    APPS,
    interpolate,
    lens_blur,
    local_laplacian,
    multigrid,
    vdsr,
    vgg16,
)
from pantile.apps.app import App

from ..long import LONG
from .case import Case
from .cases import CASES
from .cases import lens_blur as lens_blur_case
from .cases import multigrid as multigrid_case
from .cases import vgg16 as vgg16_case

VDSR_LAYERS, MULTIGRID_LEVELS, SWEEPS = 4, 3, 3
CHAIN, LAPLACIAN_DEPTH, INTERPOLATE_DEPTH = 4, local_laplacian.FINE + 2, interpolate.COARSE + 2
GROUPS, DENSE = ((64, 2), (128, 3)), (256, 128, 40)


def _given(function: Callable[..., Any] | None, **parameters: int) -> Callable[..., Any] | None:
    return None if function is None else partial(function, **parameters)


def _shortened(name: str, **parameters: int) -> tuple[App, Case]:
    """An app whose functions all take these parameters, as its formula does."""
    app, case = APPS[name], CASES[name]
    shorter = replace(
        app,
        build=partial(app.build, **parameters),
        expert=_given(app.expert, **parameters),
        on_gpu=_given(app.on_gpu, **parameters),
    )
    return shorter, replace(case, formula=partial(case.formula, **parameters))


def _multigrid(cycle: multigrid.Cycle) -> tuple[App, Case]:
    fewer = multigrid.Cycle(
        cycle.dims, cycle.recursions, *(min(n, SWEEPS) for n in (cycle.before, cycle.coarsest, cycle.after))
    )
    app = replace(
        APPS[cycle.name],
        build=partial(multigrid.build, fewer, levels=MULTIGRID_LEVELS),
        expert=partial(multigrid.expert, fewer, levels=MULTIGRID_LEVELS),
    )
    return app, replace(CASES[cycle.name], formula=partial(multigrid_case.multigrid, fewer, levels=MULTIGRID_LEVELS))


def _vdsr() -> tuple[App, Case]:
    def shapes(*img: int) -> dict[str, tuple[int, ...]]:
        return vdsr.shapes(*img, layers=VDSR_LAYERS)

    app = replace(
        APPS["vdsr"],
        build=partial(vdsr.build, VDSR_LAYERS),
        expert=partial(vdsr.expert, layers=VDSR_LAYERS),
        on_gpu=partial(vdsr.on_gpu, VDSR_LAYERS),
        sizes={"small": shapes(1, 24, 28), "paper": shapes(1, 256, 256)},
    )
    odd = tuple(shapes(*img) for img in ((1, 1, 1), (2, 3, 9), (1, 5, 11)))
    return app, replace(CASES["vdsr"], odd=odd, large=shapes(1, 19, 37))


def _vgg16() -> tuple[App, Case]:
    def shapes(*img: int) -> dict[str, tuple[int, ...]]:
        return vgg16.shapes(*img, groups=GROUPS, dense=DENSE)

    app = replace(
        APPS["vgg16"],
        build=partial(vgg16.build, GROUPS, DENSE),
        expert=partial(vgg16.expert, groups=GROUPS),
        on_gpu=partial(vgg16.on_gpu, GROUPS),
        sizes={"small": shapes(1, 4, 4), "paper": shapes(4, 224, 224)},
    )
    odd = (shapes(1, 4, 4), shapes(1, 5, 7), shapes(3, 4, 11))
    formula = partial(vgg16_case.vgg16, groups=GROUPS)
    return app, replace(CASES["vgg16"], formula=formula, odd=odd, large=shapes(2, 7, 18))


def _lens_blur() -> tuple[App, Case]:
    app, case = _shortened("lens_blur", levels=lens_blur.COARSE + 3)
    odd = (lens_blur_case.shapes(64, 67), lens_blur_case.shapes(69, 65), lens_blur_case.shapes(67, 78))
    return app, replace(case, odd=odd)


SHORT: dict[str, tuple[App, Case]] = {
    "stencil_chain": _shortened("stencil_chain", stages=CHAIN),
    "interpolate": _shortened("interpolate", depth=INTERPOLATE_DEPTH),
    "interpolate_polymage": _shortened("interpolate_polymage", depth=INTERPOLATE_DEPTH),
    "local_laplacian": _shortened("local_laplacian", depth=LAPLACIAN_DEPTH),
    "pyramid_blend": _shortened("pyramid_blend", levels=3),
    "pyramid_blend_polymage": _shortened("pyramid_blend_polymage", levels=3),
    "lens_blur": _lens_blur(),
    "vdsr": _vdsr(),
    "vgg16": _vgg16(),
    **{cycle.name: _multigrid(cycle) for cycle in multigrid.CYCLES},
}


def app_and_case(name: str) -> tuple[App, Case]:
    """What most tests run of an app; all of it with PANTILE_FUZZ=long."""
    return SHORT[name] if name in SHORT and not LONG else (APPS[name], CASES[name])
