"""PyTorch's tensors on the host: they come out as they went in, and are written in place."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pantile as pt

from ..runtime.fake_torch import FakeTorch
from .examples import X, Y, picture, scaled


@pytest.fixture(params=["fake", "real"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "real":
        return pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torch", FakeTorch())
    return sys.modules["torch"]


PIXELS = picture(6, 8, dtype="float32")
TARGETS = ["host", "cuda-sim"]


@pytest.mark.parametrize("target", TARGETS)
def test_tensors_in_tensors_out(torch: Any, target: str) -> None:
    p = scaled(schedule="plain", target=target)
    for given, expected in ((torch.from_numpy(PIXELS), PIXELS), (torch.from_numpy(PIXELS).T, PIXELS.T)):
        found = p(img=given)
        assert type(found) is torch.Tensor and found.dtype == torch.float32
        np.testing.assert_array_equal(found.numpy(), 2 * expected)
    found = p(img=PIXELS)
    assert type(found) is np.ndarray


@pytest.mark.parametrize("target", TARGETS)
def test_a_tensor_is_written_in_place(torch: Any, target: str) -> None:
    p, memory = scaled(schedule="plain", target=target), np.zeros((6, 16), "float32")
    out = torch.from_numpy(memory)[:, ::2]
    assert p(img=torch.from_numpy(PIXELS), out=out) is out
    np.testing.assert_array_equal(memory[:, ::2], 2 * PIXELS)
    assert not memory[:, 1::2].any()
    assert p(img=PIXELS, out=out) is out


def test_two_outputs_of_which_one_is_given(torch: Any) -> None:
    img, f, g = pt.Input("img", "float32", 2), pt.Func("f"), pt.Func("g")
    f[Y, X], g[Y, X] = img[Y, X] + 1, img[Y, X] * 2
    p, out = pt.Pipeline([f, g]), torch.from_numpy(np.zeros_like(PIXELS))
    first, second = p(img=PIXELS, out=(None, out))
    assert second is out and type(first) is torch.Tensor
    np.testing.assert_array_equal(first.numpy(), PIXELS + 1)
    mine = np.zeros_like(PIXELS)
    first, second = p(img=torch.from_numpy(PIXELS), out=[mine, None])
    assert first is mine and type(second) is torch.Tensor


@pytest.mark.parametrize("kind", ["bool", "uint8", "int16", "int32", "int64", "float16", "float64", "uint16", "uint64"])
def test_types(torch: Any, kind: str) -> None:
    img, f = pt.Input("img", kind, 2), pt.Func("f")
    f[Y, X] = img[Y, X]
    pixels = picture(5, 7).astype(kind)
    found = pt.Pipeline(f)(img=torch.from_numpy(pixels))
    assert found.dtype == getattr(torch, kind)
    np.testing.assert_array_equal(found.numpy(), pixels)


def test_bfloat16(torch: Any) -> None:
    img, f = pt.Input("img", "bfloat16", 2), pt.Func("f")
    f[Y, X] = pt.cast("bfloat16", img[Y, X] + img[Y, X])
    p, ones = pt.Pipeline(f), np.full((3, 4), 0x3F80, "int16")
    found = p(img=torch.from_numpy(ones).view(torch.bfloat16))
    assert found.dtype == torch.bfloat16
    assert (found.view(torch.int16).numpy() == 0x4000).all()
    out = torch.from_numpy(np.zeros((3, 4), "int16")).view(torch.bfloat16)
    assert p(img=ones.view("uint16"), out=out) is out
    assert (out.view(torch.int16).numpy() == 0x4000).all()


def test_a_tensor_of_another_class_is_as_large_as_its_memory(torch: Any) -> None:
    class Boasting(torch.Tensor):  # type: ignore[misc]
        @property
        def shape(self) -> Any:
            return (50, 50)

        def stride(self, *_: Any) -> Any:
            return (50, 1)

        def numpy(self, *_: Any, **__: Any) -> Any:
            return np.zeros((50, 50), "float32")

        @classmethod
        def __torch_function__(cls, *_: Any, **__: Any) -> Any:
            return np.zeros((50, 50), "float32")

    room = np.ones((64, 64), "float32")
    out = torch.from_numpy(room)[10:12, 10:12].as_subclass(Boasting)
    p = scaled()
    with pytest.raises(pt.UserError, match=r"out= is an array of shape \(2, 2\)"):
        p(img=np.ones((50, 50), "float32"), out=out)
    assert p(img=np.full((2, 2), 3, "float32"), out=out) is out
    assert room.sum() == 64 * 64 + 4 * 5
    assert (p(img=out).numpy() == 12).all()


def mistakes(torch: Any) -> dict[str, Any]:
    given, p = torch.from_numpy(PIXELS), scaled()
    return {
        r"is given a tensor that requires gradients; pass img.detach\(\)": lambda: p(img=given.requires_grad_()),
        r"is given a tensor of float64; pass img.to\(torch.float32\), or declare it with 'float64'": lambda: p(
            img=torch.from_numpy(PIXELS.astype("float64"))
        ),
        r"holds float32, but is given an array of int16, not float32; pass one of float32 as out=": lambda: p(
            img=given, out=torch.from_numpy(PIXELS.astype("int16"))
        ),
        "would be written into memory of Input 'img'": lambda: p(img=given, out=given),
        "would be written into memory of Input": lambda: p(img=given, out=PIXELS),
    }


@pytest.mark.parametrize("k", range(5))
def test_mistakes(torch: Any, k: int) -> None:
    text, mistake = list(mistakes(torch).items())[k]
    before = PIXELS.copy()
    with pytest.raises(pt.UserError, match=text):
        mistake()
    np.testing.assert_array_equal(PIXELS, before)
