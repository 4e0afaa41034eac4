"""What kernels of hand-written schedules for GPUs load: whole pixels, vectors of what is beside each other."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import pytest

from ..apps.short import app_and_case


@cache
def kernels(name: str) -> dict[str, str]:
    """PTX of each kernel of an app, by the stage that it computes."""
    app, _ = app_and_case(name)
    assert app.on_gpu is not None
    text = app.build().with_options(target="sm_90").with_schedule(app.on_gpu()).asm()
    found = re.split(r"\.visible \.entry k\d+_", text)[1:]
    return {re.split(r"_[a-z]+_block", kernel)[0]: kernel for kernel in found}


def loads(kernel: str, space: str = "global") -> Counter[str]:
    return Counter(re.findall(rf"ld\.{space}\.(?:nc\.)?(\S+)", kernel))


@pytest.mark.parametrize("stage", ["d2", "d3"])
def test_pixels_of_interpolate_are_vectors(stage: str) -> None:
    kernel = kernels("interpolate")[stage]
    assert set(loads(kernel)) == set(loads(kernel, "shared")) | {"v4.b32"} == {"v4.b32"}
    assert set(re.findall(r"st\.(?:global|shared)\.(\S+)", kernel)) == {"v4.b32"}


def test_curves_of_local_laplacian_are_vectors() -> None:
    """Each pixel of 10 rows and 8 columns looks up one vector of its curves; gray is loaded two pixels at a time."""
    kernel = kernels("local_laplacian")["g1"]
    assert set(loads(kernel)) == {"v4.b32", "v2.b32"} and loads(kernel)["v4.b32"] <= 2 * 80
    assert "div" not in kernel.replace("div.u32", "")


def test_samples_of_lens_blur_are_vectors() -> None:
    """Four samples at a time, in each of two versions."""
    assert loads(kernels("lens_blur")["out"])["v4.b32"] >= 8
