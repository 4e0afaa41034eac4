"""Calls on a real GPU, where there is one, and with real libraries, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import picture
from .pipelines import blur, chain, diamond, doubled

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.mark.parametrize("make", [doubled, blur, lambda: chain(30)])
def test_arrays_of_numpy(make) -> None:
    img, p = picture(257, 513) % 3, make()
    assert np.allclose(p(img=img), p.reference(img=img), rtol=1e-5)


def test_params() -> None:
    img, p = picture(257, 513), diamond()
    for gain in (1.5, 0.0, 4.0):
        assert np.allclose(p(img=img, gain=gain), p.reference(img=img, gain=gain), rtol=1e-5)


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    img, p = picture(257, 513), blur()
    with torch.cuda.stream(torch.cuda.Stream()):
        result = p(img=torch.from_numpy(img).cuda())
        assert result.is_cuda and np.allclose(result.cpu().numpy(), p.reference(img=img), rtol=1e-5)
    half = torch.ones(64, 64, dtype=torch.bfloat16, device="cuda")
    assert (doubled("bfloat16")(img=half) == 2).all()


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy")
    img, p = picture(257, 513), blur()
    result = p(img=cupy.asarray(img))
    assert isinstance(result, cupy.ndarray) and np.allclose(result.get(), p.reference(img=img), rtol=1e-5)
