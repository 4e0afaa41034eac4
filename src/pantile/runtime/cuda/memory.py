"""Device memory, which is allocated and freed in stream order, and host memory for fast copies.

Memory that calls free stays in the pool for later calls of any pipeline. If an allocation fails, the pool and other
libraries release unused memory, and it is tried once more.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import weakref
from math import prod
from typing import Any

import numpy as np

from ...forks import Lock
from ..arguments import NDArray
from ..outputs import Shape, maker
from .device import Device, current
from .driver import OUT_OF_MEMORY, checked, failure, out_of_memory

_ALL = (1 << 64) - 1
_lock = Lock()


class Pool:
    """The memory pool of one device, whose context must be current."""

    def __init__(self, device: Device) -> None:
        self._cu = device.cu
        self._pool = _create_pool(device) if device.has_pools else None

    def take(self, size: int, stream: int) -> int:
        """Allocate this many bytes for work in this stream; return their address."""
        error, address = self._allocated(size, stream)
        if error == OUT_OF_MEMORY:
            self.release()
            error, address = self._allocated(size, stream)
        if error:
            raise out_of_memory(size) if error == OUT_OF_MEMORY else failure(error)
        return int(address)

    def give(self, address: int, stream: int) -> None:
        """Free an allocation after all work in the stream."""
        if self._pool is not None:
            (error,) = self._cu.cuMemFreeAsync(address, stream)
            if not error:
                return
        # Pools are not supported, or the stream is gone; this waits for all uses of the memory.
        self._cu.cuMemFree(address)

    def release(self) -> None:
        """Release all unused memory of this pool and of other libraries in this process."""
        checked(self._cu.cuCtxSynchronize())
        if self._pool is not None:
            checked(self._cu.cuMemPoolTrimTo(self._pool, 0))
        release_libraries()

    def _allocated(self, size: int, stream: int) -> tuple[Any, Any]:
        if self._pool is None:
            error, address = self._cu.cuMemAlloc(size)
        else:
            error, address = self._cu.cuMemAllocFromPoolAsync(size, self._pool, stream)
        return error, address


_pools: dict[Device, Pool] = {}


def pool(device: Device) -> Pool:
    """The memory pool of a device, whose context is current."""
    known = _pools.get(device)
    if known is None:
        with _lock:
            known = _pools.get(device) or _pools.setdefault(device, Pool(device))
    return known


def _create_pool(device: Device) -> Any:
    """A pool that keeps unused memory, unlike the device's default pool, which releases it at each synchronization."""
    cu = device.cu
    where = cu.CUmemLocation()
    where.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    where.id = device.ordinal
    properties = cu.CUmemPoolProps()
    properties.allocType = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location = where
    pool = checked(cu.cuMemPoolCreate(properties))
    threshold = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    checked(cu.cuMemPoolSetAttribute(pool, threshold, cu.cuuint64_t(_ALL)))
    return pool


def release_libraries() -> None:
    """Make other libraries release their unused memory."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    with contextlib.suppress(Exception):
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.empty_cache()
    with contextlib.suppress(Exception):
        if cupy is not None:
            cupy.get_default_memory_pool().free_all_blocks()


# ---- of the host

_SMALL = 1 << 16  # bytes up to which copies of pageable memory are as fast as those of pinned memory
_MOST_PINNED = 512 << 20  # bytes of pinned memory
_free: dict[int, list[int]] = {}  # addresses by size
_pinned = 0


def host_array(shape: Shape, dtype: np.dtype[Any]) -> NDArray:
    """An uninitialized host array for results. It is in pinned memory, to which copies are fast, up to a total
    limit."""
    size = prod(shape) * dtype.itemsize
    address = 0 if size <= _SMALL else _pinned_block(block := 1 << (size - 1).bit_length())
    if not address:
        return maker(shape, dtype)()
    memory = (ctypes.c_char * size).from_address(address)
    weakref.finalize(memory, _give_back, address, block)
    array: NDArray = np.ndarray(shape, dtype, memory)  # type: ignore[arg-type]  # supports the buffer protocol
    return array


def _pinned_block(size: int) -> int:
    """The address of a block of pinned memory of this size; 0 if there is none left."""
    global _pinned
    with _lock:
        blocks = _free.get(size)
        if blocks:
            return blocks.pop()
        if _pinned + size > _MOST_PINNED:
            return 0
        on = current()
        entered = on.enter()
        error, address = on.cu.cuMemAllocHost(size)
        on.leave(entered)
        if error:
            return 0
        _pinned += size
    return int(address)


def _give_back(address: int, size: int) -> None:
    with _lock:
        _free.setdefault(size, []).append(address)
