"""Schedules written by hand for GPUs: what they compute on the simulated one, and the code they become.

Machine code is looked at where NVIDIA's assembler is there: nothing is kept in memory that threads have of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from pantile.apps import APPS
from pantile.apps.tensor_cores import OF_WARPGROUPS, product
from pantile.target import GPUS

from ..codegen.nvptx.assembler import assembled, has_assembler, spilled
from ..long import LONG
from .case import Case, Shapes
from .short import app_and_case
from .test_simulated import LEFT_OUT

BY_HAND = [name for name, app in APPS.items() if app.on_gpu is not None and name not in LEFT_OUT]
# Which take long: results at a size a bit larger than the smallest, code for the newest GPU only.
MUCH_CODE = {
    "iir_blur", "stencil_chain", "interpolate", "interpolate_polymage", "local_laplacian", "lens_blur", "pyramid_blend",
    "pyramid_blend_polymage", "syrk", "vdsr",
} if not LONG else set[str]()  # fmt: skip
# What their inner loops load at once, where that is more than an element.
WIDE = {
    "blur": "ld.global.nc.v2.b16",
    "matmul": "ld.shared.v4.b32",
    "matmul_half": "ld.shared.v4.b32",
    "conv_layer": "ld.shared.v4.b32",
    "interpolate": "ld.global.nc.v4.b32",
    "local_laplacian": "ld.global.nc.v2.b32",
    "camera_pipe": "ld.shared.v2.b8",
}
# Some are compiled for the oldest GPU, too; all of them for every GPU with PANTILE_FUZZ=long.
OLDEST = set(WIDE) - MUCH_CODE
# Whose places are computed in 32 bits. Others have products of coordinates that are limited before they are used.
IN_32_BITS = {"blur", "unsharp", "harris", "interpolate", "matmul", "nl_means", "hist_eq"}
# Parts of these, such as what whole blocks leave over, have places that are known only as they run.
WITH_MEMORY_OF_THREADS = {
    "bilateral_grid", "conv_layer", "covariance", "iir_blur", "mm3", "stencil_chain", "syr2k", "syrk",
}  # fmt: skip
IN_64_BITS = r"(?:mul\.lo|mad\.lo|min|max|setp\.\w+|div|rem|sub)\.[su]64"


def shapes_of(name: str, case: Case) -> Sequence[Shapes]:
    """Each has a variant of its own, to be lowered anew: apps take the smallest and the next by turns."""
    if LONG:
        return case.odd[:1] if case.slow else case.odd[:2]
    is_smallest = case.slow or (name not in MUCH_CODE and BY_HAND.index(name) % 2 == 0)
    return case.odd[:1] if is_smallest else case.odd[1:2]


@pytest.mark.parametrize("name", BY_HAND)
def test_results(name: str) -> None:
    """Whole blocks are in other tests; here arrays are smaller than one, or a bit larger."""
    app, case = app_and_case(name)
    assert app.on_gpu is not None
    p = app.build().with_options(target="cuda-sim").with_schedule(app.on_gpu())
    for shapes in shapes_of(name, case):
        inputs = app.random(shapes)
        case.assert_agrees(inputs, p(**inputs))


@pytest.mark.parametrize("name", [name for name, app in APPS.items() if app.on_tensor_cores is not None])
def test_results_of_tensor_cores(name: str) -> None:
    app, case = app_and_case(name)
    chosen = [app.schedule("expert", GPUS[capability]) for capability in ("sm_75", "sm_80")]
    assert app.on_tensor_cores is not None and app.on_gpu is not None
    assert chosen == [app.on_gpu(), app.on_tensor_cores()]
    p = app.build().with_options(target="cuda-sim").with_schedule(app.on_tensor_cores())
    for shapes in [*case.odd, *([case.large] if case.large and LONG else [])]:
        inputs = app.random(shapes)
        case.assert_agrees(inputs, p(**inputs))


def test_results_of_warpgroups() -> None:
    app, case = app_and_case("matmul_half")
    p = app.build().with_options(target="cuda-sim").with_schedule(product("sums", "out", tiles=OF_WARPGROUPS))
    for shapes in case.odd if LONG else case.odd[:2]:
        inputs = app.random(shapes)
        case.assert_agrees(inputs, p(**inputs))


@pytest.mark.parametrize("name", BY_HAND)
def test_code(name: str) -> None:
    app, _ = app_and_case(name)
    assert app.on_gpu is not None
    p = app.build()
    targets = list(GPUS.items())
    for capability, target in targets if LONG else targets[:: len(targets) - 1] if name in OLDEST else targets[-1:]:
        ptx = p.with_options(target=capability).with_schedule(app.on_gpu()).asm()
        assert f".target {capability}" in ptx and ".visible .entry" in ptx
        assert WIDE.get(name, "ld.global") in ptx
        assert name not in IN_32_BITS or not re.search(IN_64_BITS, ptx)
        if capability == "sm_90":
            assert name in WITH_MEMORY_OF_THREADS or not re.search(r"\.local\b", ptx)
            if has_assembler:
                assert name in WITH_MEMORY_OF_THREADS or spilled(assembled(ptx, target)) == {"0"}
