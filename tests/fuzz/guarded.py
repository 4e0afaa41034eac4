"""Arrays that adjoin an inaccessible page, so that an access outside of them ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)


def guarded(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy with the same strides, whose memory ends where an inaccessible page begins (or begins where one ends)."""
    page = mmap.PAGESIZE
    before, size = _extent(array)
    room = -(-max(size, 1) // page) * page
    block = mmap.mmap(-1, room + 2 * page)
    view = np.frombuffer(block, np.uint8)
    for start in (0, page + room):
        _forbid(view.ctypes.data + start, page)
    first = page + room - size if at_end else page
    copy: np.ndarray = np.ndarray(array.shape, array.dtype, view[: page + room], first + before, array.strides)
    copy[...] = array
    return copy


def _extent(array: np.ndarray) -> tuple[int, int]:
    """The number of bytes of an array before its first element, and the total number."""
    if array.size == 0:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    before = -sum(r for r in reach if r < 0)
    return before, before + sum(r for r in reach if r > 0) + array.itemsize


def _forbid(address: int, size: int) -> None:
    no_access = 0
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), no_access) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
