"""Arrays of other libraries: read in place, results of the caller's kind, in the caller's stream."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.runtime.cuda.results import DeviceArray

from .conftest import picture
from .fake_driver import FakeDriver
from .fake_libraries import FakeCupy, FakeTorch, Interfaced, Packed, Tensor
from .pipelines import doubled

A = picture(33, 66)


def test_torch_in_torch_out(fake: FakeDriver, torch: FakeTorch) -> None:
    torch.stream = 0x70
    result = doubled()(img=torch.tensor(A))
    assert isinstance(result, torch.Tensor) and result.dtype is torch.float32 and (result.seen == 2 * A).all()
    counted = fake.counted()
    assert not counted["cuMemcpyHtoDAsync"] and not counted["cuStreamSynchronize"]
    assert fake.named("cuLaunchKernel")[0][8] == 0x70


@pytest.mark.parametrize("channels", [None, 3])
def test_a_strategy_schedules_for_tensors(torch: FakeTorch, channels: int | None) -> None:
    coordinates = pt.vars("y x") if channels is None else pt.vars("y x c")
    img, out = pt.Input("img", "float32", ndim=len(coordinates)), pt.Func("out")
    out[coordinates] = img[coordinates] * 2
    values = A if channels is None else np.dstack([A] * channels)
    for estimates in (None, {"img": values.shape}):
        p = pt.Pipeline(out, shape=img.shape, target="cuda", schedule="greedy", estimates=estimates)
        assert (p(img=torch.tensor(values)).seen == 2 * values).all()


def test_new_tensors_the_way_compiled_pytorch_makes_them(fake: FakeDriver, torch: FakeTorch) -> None:
    made = []

    def empty(shape: tuple[int, ...], strides: tuple[int, ...], kind: Any) -> Any:
        made.append(shape)
        return torch.empty_strided(shape, strides, dtype=kind, device=0)

    guards = SimpleNamespace(_empty_strided_cuda=empty)
    current = [0]
    torch._C = SimpleNamespace(_dynamo=SimpleNamespace(guards=guards), _cuda_getDevice=lambda: current[0])
    a = picture(40, 70)
    p, img = doubled(), torch.tensor(a)
    assert (p(img=img).seen == 2 * a).all() and made == [(40, 70)]
    current[0] = 1  # it makes tensors on the GPU that is current to PyTorch
    assert (p(img=img).seen == 2 * a).all() and len(made) == 1


def test_a_tensor_that_becomes_another_one(fake: FakeDriver, torch: FakeTorch) -> None:
    """Calls remember how arrays are laid out, not the arrays: one may be resized, transposed or moved in place."""
    p, a, b = doubled(), picture(40, 70), picture(33, 21) + 1
    img, other = torch.tensor(a), torch.tensor(b)
    assert (p(img=img).seen == 2 * a).all()
    img.seen, img.shape, img._address = other.seen, other.shape, other._address
    assert (p(img=img).seen == 2 * b).all()
    img.seen, img.shape = img.seen.T, img.seen.T.shape
    assert (p(img=img).seen == 2 * b.T).all()


def test_tensors_that_begin_anywhere(fake: FakeDriver, torch: FakeTorch) -> None:
    """Alignment is part of how an array is laid out: code for one that begins at 16 bytes is not for its neighbour."""
    whole = picture(8, 129)
    p, held = doubled(), torch.tensor(whole)
    for begin in (0, 1, 2, 0):
        part = Tensor(torch, held.seen[:, begin : begin + 120], held._address + 4 * begin, held.dtype)
        assert (p(img=part).seen == 2 * whole[:, begin : begin + 120]).all()


def test_strides_of_tensors(fake: FakeDriver, torch: FakeTorch) -> None:
    for a in (A.T, A[:, 1:], A[::2], A[:, ::-1]):
        assert (doubled()(img=torch.tensor(a)).seen == 2 * a).all()
        assert doubled().reference(img=torch.tensor(a)).tolist() == (2 * a).tolist()


def test_bfloat16(fake: FakeDriver, torch: FakeTorch) -> None:
    bits = np.full((33, 66), 0x3F80, np.uint16)  # 1.0
    result = doubled("bfloat16")(img=torch.tensor(bits, "bfloat16"))
    assert result.dtype is torch.bfloat16 and (result.seen == 0x4000).all()
    assert (doubled("bfloat16")(img=bits) == 0x4000).all()
    with pytest.raises(pt.UserError, match="holds uint16, but is given an array of bfloat16; convert it, or declare"):
        doubled("uint16")(img=torch.tensor(bits, "bfloat16"))


def test_cupy_in_cupy_out(fake: FakeDriver, cupy: FakeCupy) -> None:
    cupy.stream = 0x90
    out = cupy.array(np.zeros_like(A))
    assert (doubled()(img=cupy.array(A)).seen == 2 * A).all()
    assert doubled()(img=cupy.array(A), out=out) is out and (out.seen == 2 * A).all()
    assert {args[8] for args in fake.named("cuLaunchKernel")} == {0x90}


@pytest.mark.parametrize("a", [A, A.T, A[::2, 1:]])
def test_whoever_says_where_arrays_are(fake: FakeDriver, a: np.ndarray) -> None:
    result = doubled()(img=Interfaced(fake, a, stream=0x110))
    assert isinstance(result, DeviceArray) and (result.numpy() == 2 * a).all() and (np.asarray(result) == 2 * a).all()
    assert fake.named("cuLaunchKernel")[0][8] == 0x110
    assert result.__cuda_array_interface__["stream"] == 0x110
    again = doubled()(img=result)
    assert (again.numpy() == 4 * a).all()
    del result, again
    gc.collect()


def test_whoever_speaks_dlpack(fake: FakeDriver) -> None:
    given = Packed(fake, A, 2)
    result = doubled()(img=given)
    assert given.asked == [1] and (result.numpy() == 2 * A).all()
    assert result.__dlpack_device__() == (2, 0)


def test_results_speak_dlpack(fake: FakeDriver) -> None:
    """Read by our own reader, which is somebody else's."""
    from pantile.runtime.cuda.exchange import by_dlpack

    result = doubled()(img=Packed(fake, A, 2))
    said = by_dlpack(result)
    assert (said.address, said.shape, said.strides, said.type_name) == (
        result.address,
        A.shape,
        A.strides,
        "float32",
    )
    held = fake.memory.held()
    del result
    gc.collect()
    assert fake.memory.held() == held  # the capsule has it
    del said
    gc.collect()
    assert fake.memory.held() < held
    other = doubled()(img=Packed(fake, A, 2))
    other.__dlpack__(stream=0x130)
    assert fake.counted()["cuStreamWaitEvent"] == 1


def test_out_of_another_library_waits_for_both(fake: FakeDriver, torch: FakeTorch, cupy: FakeCupy) -> None:
    torch.stream, cupy.stream = 0x70, 0x90
    out = cupy.array(np.zeros_like(A))
    assert doubled()(img=torch.tensor(A), out=out) is out and (out.seen == 2 * A).all()
    waits = [args[0] for args in fake.named("cuStreamWaitEvent")]
    assert waits == [0x70, 0x90] and fake.named("cuLaunchKernel")[0][8] == 0x70


def test_numpy_and_device_arrays_together(fake: FakeDriver, torch: FakeTorch) -> None:
    out = torch.tensor(np.zeros_like(A))
    assert doubled()(img=A, out=out) is out and (out.seen == 2 * A).all()
    back = np.zeros_like(A)
    assert doubled()(img=torch.tensor(A), out=back) is back and (back == 2 * A).all()


# ---- mistakes: the same as with NumPy's arrays


def wrong(torch: FakeTorch, what: str) -> Any:
    p, tensor = doubled(), torch.tensor
    if what == "type":
        return p(img=tensor(A.astype("float64")))
    if what == "axes":
        return p(img=tensor(A[0]))
    if what == "gradient":
        given = tensor(A)
        given.requires_grad = True
        return p(img=given)
    if what == "shape of out":
        return p(img=tensor(A), out=tensor(A[1:]))
    if what == "type of out":
        return p(img=tensor(A), out=tensor(A.astype("int32")))
    if what == "same memory":
        both = tensor(A)
        return p(img=both, out=both)
    if what == "overlapping out":
        return p(img=tensor(A), out=tensor(np.broadcast_to(A[0], A.shape)))
    if what == "no array":
        return p(img=tensor(A), out=[[1]])
    if what == "another device":
        return p(img=tensor(A), out=tensor(np.zeros_like(A), ordinal=1))
    raise AssertionError


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("type", r"holds float32, but is given an array of float64, not float32; pass img.to\(torch.float32\), or"),
        ("axes", r"Input 'img' .* has 2 axes, but is given an array of shape \(66,\); index or reshape it"),
        ("gradient", r"is given a tensor that requires gradients; pass img.detach\(\)"),
        ("shape of out", r"output 'doubled' .* has the shape \(33, 66\), but out= is an array of shape \(32, 66\)"),
        ("type of out", "holds float32, but is given an array of int32"),
        ("same memory", "output 'doubled' .* would be written into memory of Input 'img'"),
        ("overlapping out", "cannot be written into an array whose elements overlap"),
        ("no array", "cannot be written into list; pass a NumPy array, or one on the GPU, as out="),
        ("another device", "is on GPU 1, but Input 'img' .* on GPU 0; a call runs on one GPU"),
    ],
)
def test_mistakes(fake: FakeDriver, torch: FakeTorch, what: str, text: str) -> None:
    with pytest.raises(pt.UserError, match=text):
        wrong(torch, what)
    assert not fake.named("cuLaunchKernel")


def test_interleaved_channels_do_not_overlap(fake: FakeDriver, torch: FakeTorch) -> None:
    from .fake_libraries import memory_of

    both, address = memory_of(fake, np.stack([A, A], -1))
    img = Tensor(torch, both[..., 0], address, torch.float32)
    out = Tensor(torch, both[..., 1], address + 4, torch.float32)
    doubled()(img=img, out=out)
    assert (out.seen == 2 * A).all() and (img.seen == A).all()


def test_a_read_only_array_is_no_output(fake: FakeDriver) -> None:
    locked = Interfaced(fake, np.zeros_like(A))
    locked.__cuda_array_interface__["data"] = (locked.__cuda_array_interface__["data"][0], True)
    with pytest.raises(pt.UserError, match="cannot be written into a read-only array"):
        doubled()(img=Interfaced(fake, A), out=locked)


def test_a_masked_array_is_refused(fake: FakeDriver) -> None:
    with pytest.raises(pt.UserError, match="it has a mask, which would be ignored"):
        doubled()(img=Interfaced(fake, A, mask=object()))


# ---- arrays that say what is not true


def test_a_tensor_of_another_class_is_as_large_as_its_memory(fake: FakeDriver, torch: FakeTorch) -> None:
    class Boasting(Tensor):
        shape = property(lambda self: (99, 99), lambda self, value: None)
        is_cuda = property(lambda self: False)  # type: ignore[assignment]

        def stride(self) -> tuple[int, ...]:
            return (99, 1)

        def data_ptr(self) -> int:
            return 16

    made = torch.tensor(A)
    given, out = (Boasting(torch, t.seen, t._address, t.dtype) for t in (made, torch.tensor(np.zeros_like(A))))
    assert (doubled()(img=given).seen == 2 * A).all()
    assert doubled()(img=made, out=out) is out and (out.seen == 2 * A).all()


def test_an_array_of_a_class_derived_from_cupys_exports_its_memory(fake: FakeDriver, cupy: FakeCupy) -> None:
    packed = Packed(fake, A, 2)

    class Boasting(cupy.ndarray):
        __dlpack__, __dlpack_device__ = packed.__dlpack__, packed.__dlpack_device__

    given = Boasting(packed.seen, 16)
    given.shape, given.strides = (99, 99), (396, 4)
    result = doubled()(img=given)
    assert type(result) is cupy.ndarray and (result.seen == 2 * A).all()


def test_results_keep_their_extents(fake: FakeDriver) -> None:
    result = doubled()(img=Interfaced(fake, A))
    for name, value in (("shape", (99, 99)), ("strides", (396, 4)), ("address", 16), ("dtype", None)):
        with pytest.raises(AttributeError, match=f"the {name} of an array on a GPU cannot be changed"):
            setattr(result, name, value)
    assert (doubled()(img=result).numpy() == 4 * A).all()


@pytest.mark.parametrize("changed", [{"shape": (33, -66)}, {"strides": (4,)}, {"shape": (33.5, 66)}, {"shape": None}])
def test_an_array_that_says_nonsense_of_itself(fake: FakeDriver, changed: dict[str, Any]) -> None:
    with pytest.raises(pt.UserError, match="is given Interfaced, which is not an array: "):
        doubled()(img=Interfaced(fake, A, **changed))


def test_an_output_of_a_class_derived_from_numpys_is_as_large_as_its_memory(fake: FakeDriver) -> None:
    class Boasting(np.ndarray[Any, Any]):
        shape = property(lambda self: A.shape)  # type: ignore[assignment]
        strides = property(lambda self: A.strides)  # type: ignore[assignment]

        def __dlpack_device__(self) -> Any:
            raise AssertionError("nobody needs to ask")

    out = np.zeros((2, 2), np.float32).view(Boasting)
    with pytest.raises(pt.UserError, match=r"but out= is an array of shape \(2, 2\)"):
        doubled()(img=A, out=out)
    whole = np.zeros_like(A).view(Boasting)
    assert doubled()(img=A, out=whole) is whole and (np.asarray(whole) == 2 * A).all()
