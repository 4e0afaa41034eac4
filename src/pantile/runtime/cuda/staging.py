"""Host arrays in calls that run on a device: their layout on the device, and the copies to the device and back.

An array without gaps, in any order of axes, keeps its layout. All other arrays are copied in C order.
"""

from __future__ import annotations

import numpy as np

from ..arguments import NDArray
from .device import Device
from .driver import checked
from .exchange import in_c_order


def is_dense(a: NDArray) -> bool:
    """Whether the elements of an array fill a contiguous block of memory."""
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return True
    expected = a.itemsize
    for step, n in sorted((s, n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
        if step != expected:
            return False
        expected *= n
    return True


def laid_out(a: NDArray) -> NDArray:
    """An array with the layout that this one will have on the device, without memory for its elements."""
    if is_dense(a):
        return a
    strides = in_c_order(a.shape, a.itemsize)
    return np.lib.stride_tricks.as_strided(np.empty(1, a.dtype), a.shape, strides)


def send(device: Device, a: NDArray, address: int, stream: int) -> NDArray:
    """Copy an array to the device. Return the copied array, which must not change until the stream is done."""
    if not is_dense(a):
        a = np.ascontiguousarray(a)
    if a.nbytes:
        checked(device.cu.cuMemcpyHtoDAsync(address, a.ctypes.data, a.nbytes, stream))
    return a


def fetch(device: Device, a: NDArray, address: int, stream: int) -> NDArray:
    """Copy a result back. Return the array that receives it, from which `arrived` fills `a`."""
    received = a if is_dense(a) else np.empty(a.shape, a.dtype)
    if a.nbytes:
        checked(device.cu.cuMemcpyDtoHAsync(received.ctypes.data, address, a.nbytes, stream))
    return received


def arrived(a: NDArray, received: NDArray) -> None:
    """Copy a received result to its array. The stream must be done."""
    if received is not a:
        a[...] = received
