"""The operations on arrays that a call on a GPU needs. NumPy arrays are copied there and back, and arrays on the GPU
are used in place. Results are of the same kind as the first array on a GPU, or NumPy arrays if there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import UserError
from ...target.gpu import LONGEST_ACCESS
from ..arguments import AnyArray, Array, NDArray, alignment
from ..array_conversion import as_array
from ..arrays import New, NumpyArrays
from ..outputs import Shape, as_output, check_apart, one_each
from .device import device
from .libraries import view_of
from .memory import host_array
from .staging import laid_out
from .views import Constant, View


class CudaArrays:
    """NumPy arrays, and `View`s of arrays on a GPU."""

    @staticmethod
    def converted(wanted: Array, value: Any) -> AnyArray:
        seen = view_of(wanted, value)
        return as_array(wanted, value) if seen is None else seen

    @staticmethod
    def constant(table: NDArray) -> AnyArray:
        return Constant(table)

    @staticmethod
    def outputs(wanted: Sequence[Array], out: Any) -> list[Any]:
        if out is None:
            return [None] * len(wanted)
        if len(wanted) == 1 and not isinstance(out, (tuple, list)):
            return [_output(wanted[0], out)]
        return [_output(a, o) for a, o in zip(wanted, one_each(wanted, out), strict=True)]

    @staticmethod
    def layouts(arrays: Sequence[Any]) -> tuple[object, ...]:
        return tuple([a.layout if type(a) is View else _layout_of(a) for a in arrays])

    @staticmethod
    def check_apart(
        outputs: Sequence[Array], given: Sequence[Any], inputs: Sequence[Array], read: Sequence[Any]
    ) -> None:
        if _may_overlap(given, read):
            places, reads = [_place(a) for a in given], [_place(a) for a in read]
            check_apart(outputs, places, inputs, reads)

    @staticmethod
    def in_code(arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        return [laid_out(a) if isinstance(a, np.ndarray) else a for a in arrays]

    @staticmethod
    def aligned(seen: Sequence[Any]) -> Sequence[int]:
        # Copies and new arrays on the device are aligned for the longest accesses.
        return [alignment(a, a.flags.alignment if type(a) is View else LONGEST_ACCESS) for a in seen]

    @staticmethod
    def new(wanted: Sequence[Array], shapes: Sequence[Shape]) -> New:
        return partial(_filled, wanted, shapes)

    @staticmethod
    def results(wanted: Sequence[Array], filled: list[Any], out: Any, given: Mapping[str, Any]) -> list[Any]:
        made = [a.original if type(a) is View else a for a in filled]
        return NumpyArrays.results(wanted, made, out, given)

    @staticmethod
    def on_host(a: Any) -> NDArray:
        if type(a) is Constant:
            return a.table
        return _copied(a) if type(a) is View else a


def _filled(
    wanted: Sequence[Array], shapes: Sequence[Shape], outputs: Sequence[Any] | None, inputs: Sequence[Any]
) -> list[Any]:
    given = [None] * len(wanted) if outputs is None else outputs
    for o in given:
        if o is None:
            break
    else:
        return list(given)
    for home in (*inputs, *given):
        if type(home) is View:
            break
    else:
        return [
            host_array(shape, a.dtype.numpy) if o is None else o
            for a, shape, o in zip(wanted, shapes, given, strict=True)
        ]
    new, ordinal, stream = home.library.new, home.layout.ordinal, home.stream or 0
    return [
        new(a.dtype, shape, ordinal, stream) if o is None else o
        for a, shape, o in zip(wanted, shapes, given, strict=True)
    ]


def _output(wanted: Array, given: Any) -> Any:
    seen = view_of(wanted, given)
    return as_output(wanted, given, "a NumPy array, or one on the GPU,") if seen is None else seen


def _layout_of(a: Any) -> object:
    """The layout of an array; None for a table, which is the same in all calls of a pipeline."""
    return None if a is None or type(a) is Constant else NumpyArrays.layouts((a,))[0]


def _may_overlap(outputs: Sequence[Any], inputs: Sequence[Any]) -> bool:
    """Whether some outputs may overlap other arrays, so that a closer look is needed; NumPy checks arrays on the
    host."""
    taken = [a for a in inputs if type(a) is View]
    for a in outputs:
        if type(a) is View:
            begin, end = a.address + a.layout.low, a.address + a.layout.high
            for b in taken:
                if b.address + b.layout.low < end and begin < b.address + b.layout.high:
                    return True
            taken.append(a)
        elif a is not None:
            return True
    return False


def _place(a: Any) -> Any:
    """A NumPy array with the address of this array, for comparisons: host and device addresses never coincide."""
    if type(a) is View:
        return a.stand_in()
    return a.table if type(a) is Constant else a


def _copied(view: View) -> NDArray:
    """Copy an array on a device to the host, after its stream has finished."""
    low, high = view.span()
    memory = np.empty(high - low, np.uint8)
    on = device(view.ordinal)
    entered = on.enter()
    try:
        (error,) = on.cu.cuCtxSynchronize()
        if not error and high > low:
            (error,) = on.cu.cuMemcpyDtoH(memory.ctypes.data, low, high - low)
        if error:
            raise UserError(f"an array on {on} cannot be read ({getattr(error, 'name', error)})")
    finally:
        on.leave(entered)
    array: NDArray = np.ndarray(view.shape, view.dtype, memory, view.address - low, view.strides)
    return array
