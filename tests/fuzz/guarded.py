"""Arrays that lie against a page nobody may touch, so that an access outside of them ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)


def guarded(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A C-contiguous copy that ends where a forbidden page starts (or starts where one ends)."""
    page = mmap.PAGESIZE
    room = -(-max(array.nbytes, 1) // page) * page
    block = mmap.mmap(-1, room + 2 * page)
    view = np.frombuffer(block, np.uint8)
    for start in (0, page + room):
        _forbid(view.ctypes.data + start, page)
    first = page + room - array.nbytes if at_end else page
    copy = view[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _forbid(address: int, size: int) -> None:
    no_access = 0
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), no_access) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
