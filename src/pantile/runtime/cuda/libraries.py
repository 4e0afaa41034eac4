"""Arrays of other libraries: views of them, new arrays for results, and the caller's current stream.

PyTorch and CuPy are called directly, which takes a microsecond; other libraries through the protocols of `exchange`. No
library is imported here: that of a given array is already loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ...errors import UserError, UserTypeError
from ...expr.types import BFLOAT16, DType
from ...target.gpu import LONGEST_ACCESS
from ..arguments import Array
from ..array_conversion import check_tensor, is_tensor, not_an_array, plain_tensor
from ..outputs import Shape
from . import exchange
from .device import device
from .driver import out_of_memory
from .exchange import ArrayDescription, in_c_order
from .memory import release_libraries
from .results import DeviceArray
from .views import ArrayLayout, Library, View, layout

Viewer = Callable[[Array, Any], "View | None"]


def view_of(wanted: Array, given: Any) -> View | None:
    """The view of an array on a GPU; None for any other value."""
    kind = type(given)
    return (viewers[kind] if kind in viewers else viewer_of(given))(wanted, given)


def viewer_of(given: Any) -> Viewer:
    """The viewer for the library of an array that may be on a GPU."""
    library = _library_of(given)
    viewer = _nothing if library is None else library.view
    if len(viewers) < _MOST_KINDS:
        viewers[type(given)] = viewer
    return viewer


def _nothing(wanted: Array, given: Any) -> None:
    """The view of a value that is not on a GPU: None."""


def _itself(wanted: Array, given: View) -> View:
    """The view of a view: while a strategy searches for a schedule, a call passes its views on."""
    return given


_MOST_KINDS, _MOST_LAYOUTS = 64, 4096
viewers: dict[type, Viewer] = {**dict.fromkeys((np.ndarray, list, tuple, type(None)), _nothing), View: _itself}


def _library_of(given: Any) -> Library | None:
    kind = type(given)
    if issubclass(kind, np.ndarray):
        return None
    cupy = sys.modules.get("cupy")
    if is_tensor(given):
        return _torch(sys.modules["torch"])
    if cupy is not None and issubclass(kind, getattr(cupy, "ndarray", ())):
        return _cupy(cupy)
    return OTHERS if hasattr(kind, "__dlpack_device__") or hasattr(given, "__cuda_array_interface__") else None


def seen_as(wanted: Array, name: str) -> np.dtype[Any]:
    """The NumPy type of an array whose type has this name; bfloat16 is held as its bits."""
    if name == "bfloat16":
        if wanted.dtype is not BFLOAT16:
            raise UserTypeError(
                f"{wanted.label} holds {wanted.dtype}, but is given an array of bfloat16; convert it, or declare it "
                "with 'bfloat16'"
            )
        return BFLOAT16.numpy
    try:
        return np.dtype(name)
    except TypeError:
        raise UserTypeError(
            f"{wanted.label} holds {wanted.dtype}, but is given an array of {name}; convert it"
        ) from None


def allocated(make: Callable[[], Any], size: int) -> Any:
    """Allocate an array by calling `make`. If memory runs out, let all libraries release their caches and try again."""
    try:
        return make()
    except Exception as error:
        if "OutOfMemory" not in type(error).__name__:
            raise
    release_libraries()
    try:
        return make()
    except Exception as error:
        if "OutOfMemory" not in type(error).__name__:
            raise
        raise out_of_memory(size) from error


# ---- PyTorch


class Torch:
    """Views and allocates PyTorch tensors on a GPU, and finds the current stream of PyTorch."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        # The function that compiled PyTorch code uses; the public one takes longer to parse its arguments.
        raw = getattr(torch, "_C", None)
        of_stream = getattr(raw, "_cuda_getCurrentRawStream", None)
        self.stream = of_stream or (lambda ordinal: torch.cuda.current_stream(ordinal).cuda_stream)
        self._here = getattr(raw, "_cuda_getDevice", None)
        self._empty_here = getattr(getattr(getattr(raw, "_dynamo", None), "guards", None), "_empty_strided_cuda", None)
        names = {t: str(t).removeprefix("torch.") for t in vars(torch).values() if isinstance(t, torch.dtype)}
        self._numpy = {t: np.dtype(name) for t, name in names.items() if _is_numpy(name)}
        self._types = {name: t for t, name in names.items()}
        self._layouts: dict[tuple[Any, ...], ArrayLayout] = {}  # by the attributes of tensors
        self._strides: dict[Shape, tuple[int, ...]] = {}  # of arrays in C order, by shape

    def view(self, wanted: Array, given: Any) -> View | None:
        given = plain_tensor(given)
        if not given.is_cuda:
            return None
        check_tensor(wanted, given)
        kind, address = given.dtype, given.data_ptr()
        if kind not in self._numpy:
            seen_as(wanted, str(kind).removeprefix("torch."))
        key = kind, given.shape, given.stride(), given.get_device(), address % LONGEST_ACCESS
        return View(given, self, self._layouts.get(key) or self._layout(*key, wanted.dtype), address)

    def new(self, wanted: DType, shape: Shape, ordinal: int, stream: int) -> View:
        kind = self._types[wanted.name]
        strides = self._strides.get(shape) or self._strides_of(shape)
        empty = self._empty_here
        if empty is not None and self._here is not None and self._here() == ordinal:
            made = allocated(lambda: empty(shape, strides, kind), 0)
        else:
            made = allocated(lambda: self._torch.empty_strided(shape, strides, dtype=kind, device=ordinal), 0)
        address = made.data_ptr()
        key = kind, shape, strides, ordinal, address % LONGEST_ACCESS
        return View(made, self, self._layouts.get(key) or self._layout(*key, wanted), address)

    def _strides_of(self, shape: Shape) -> tuple[int, ...]:
        if len(self._strides) >= _MOST_LAYOUTS:
            self._strides.clear()
        return self._strides.setdefault(shape, in_c_order(shape, 1))

    def _layout(
        self, kind: Any, shape: Shape, strides: tuple[int, ...], ordinal: int, place: int, t: DType
    ) -> ArrayLayout:
        """The layout with `strides` in elements. A type without NumPy equivalent is held as the wanted one."""
        held = self._numpy.get(kind, t.numpy)
        steps = tuple([s * held.itemsize for s in strides])
        if len(self._layouts) >= _MOST_LAYOUTS:
            self._layouts.clear()
        known = self._layouts[kind, shape, strides, ordinal, place] = layout(ordinal, place, tuple(shape), steps, held)
        return known

    def converted(self, name: str, wanted: DType) -> str:
        return f"{name}.to(torch.{wanted})"

    def contiguous(self, name: str) -> str:
        return f"{name}.contiguous()"


def _is_numpy(name: str) -> bool:
    """Whether NumPy has a type by this PyTorch name. bfloat16 is excluded, because it is held as bits even if some
    package has added it to NumPy."""
    try:
        return name != "bfloat16" and bool(np.dtype(name).name == name)
    except TypeError:
        return False


# ---- CuPy


class Cupy:
    """CuPy arrays, which hold bfloat16 as uint16."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy

    def stream(self, ordinal: int) -> int:
        return int(self._cupy.cuda.get_current_stream().ptr)

    def view(self, wanted: Array, given: Any) -> View | None:
        if type(given) is not self._cupy.ndarray:  # a subclass may override attributes, but exports its memory
            return _by_protocol(self, wanted, given)
        held = seen_as(wanted, "bfloat16") if given.dtype.name == "bfloat16" else given.dtype
        address = given.data.ptr
        return View(given, self, layout(given.device.id, address, given.shape, given.strides, held), address)

    def new(self, wanted: DType, shape: Shape, ordinal: int, stream: int) -> View:
        with self._cupy.cuda.Device(ordinal):
            made = allocated(lambda: self._cupy.empty(shape, wanted.numpy), 0)
        address = made.data.ptr
        return View(made, self, layout(ordinal, address, shape, made.strides, wanted.numpy), address)

    def converted(self, name: str, wanted: DType) -> str:
        return f"{name}.astype({wanted.numpy.name!r})"

    def contiguous(self, name: str) -> str:
        return f"cupy.ascontiguousarray({name})"


# ---- everybody else


class OtherLibrary:
    """Any other library that supports DLPack or the CUDA array interface. Results are our own arrays."""

    def view(self, wanted: Array, given: Any) -> View | None:
        if type(given) is DeviceArray:
            held = seen_as(wanted, given.dtype.name)
            laid_out = layout(given.device, given.address, given.shape, given.strides, held)
            return View(given, self, laid_out, given.address, given.stream)
        return _by_protocol(self, wanted, given)

    def new(self, wanted: DType, shape: Shape, ordinal: int, stream: int) -> View:
        made = DeviceArray(device(ordinal), shape, wanted, stream)
        laid_out = layout(ordinal, made.address, made.shape, made.strides, wanted.numpy)
        return View(made, self, laid_out, made.address, stream)

    def stream(self, ordinal: int) -> int:
        return 0

    def converted(self, name: str, wanted: DType) -> str:
        return f"{name} converted to {wanted}"

    def contiguous(self, name: str) -> str:
        return f"a contiguous copy of {name}"


def _by_protocol(library: Library, wanted: Array, given: Any) -> View | None:
    """The view of an array that a protocol exports; None if the array is not on a GPU."""
    try:
        exported = _exchanged(given)
        if exported is None:
            return None
        held = seen_as(wanted, exported.type_name)
    except UserError:
        raise
    except Exception as error:
        raise not_an_array(wanted, given, error) from error
    laid_out = layout(exported.ordinal, exported.address, exported.shape, exported.strides, held, exported.writeable)
    return View(given, library, laid_out, exported.address, exported.stream, exported.keeps)


def _exchanged(given: Any) -> ArrayDescription | None:
    """Describe an array by a protocol: by DLPack if possible, since that reports when the array is ready."""
    if hasattr(given, "__dlpack_device__"):
        return exchange.by_dlpack(given) if exchange.is_on_gpu(given) else None
    return exchange.by_interface(given)


OTHERS = OtherLibrary()
_torch, _cupy = cache(Torch), cache(Cupy)  # one for each library
