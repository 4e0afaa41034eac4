"""Every app on the simulated GPU, which checks all that threads do, and as PTX for several generations of GPUs."""

from __future__ import annotations

import itertools

import pytest

from pantile.apps import APPS
from pantile.simulator import counting

from ..long import LONG
from .case import Case, Shapes
from .short import app_and_case

# Millions of terms at any size: minutes.
LEFT_OUT = {"vgg16"} if not LONG else set[str]()
# The stages of a V-cycle with many steps and of a W-cycle with few are those of the other multigrids, too.
ALIKE = {f"multigrid_{d}_{cycle}" for d in ("2d", "3d") for cycle in ("w444", "v1000")} if not LONG else set[str]()
# Sums that no two threads share: seconds at more than a few pixels.
FEW = {"syrk", "syr2k", "covariance", "chamfer", "trmm"}
PTX = ("blur", "harris", "camera_pipe", "bilateral_grid", "matmul_half", "hist_eq")
TARGETS = ("sm_70", "sm_75", "sm_80", "sm_90")
# Every third: each app is compiled for some generation, and some app for each; all for all with PANTILE_FUZZ=long.
COMPILED = [*itertools.product(PTX, TARGETS)][:: 1 if LONG else 3]


def shapes_of(name: str, case: Case) -> Shapes:
    """More than a block where that takes no time, and none of it a multiple of anything."""
    return case.odd[0 if case.slow else 1 if name in FEW else 2]


@pytest.mark.parametrize("name", [n for n in APPS if n not in LEFT_OUT | ALIKE])
def test_results(name: str) -> None:
    app, case = app_and_case(name)
    inputs = app.random(shapes_of(name, case))
    with counting() as counts:
        found = app.build().with_options(target="cuda-sim")(**inputs)
    assert counts, "something ran"
    case.assert_agrees(inputs, found)


@pytest.mark.parametrize(("name", "target"), COMPILED)
def test_ptx(name: str, target: str) -> None:
    text = APPS[name].build().asm(target)
    assert f".target {target}" in text and ".visible .entry" in text
