"""The fast path for a call like the previous one: native code compares the arrays and runs the kernel.

The work of Python for a call, from the layouts of its arrays to the argument block of its kernel, takes longer than the
kernel of a small picture. Instead, one native function reads the C structures of the arrays: whether each is of NumPy's
own class, its type, extents, strides and flags. If nothing has changed, it writes their addresses to a copy of the
block on the stack and calls the kernel without the GIL. If something has changed, or if the byte ranges of an output
and of another array overlap, the call takes the general path in Python.

The structures are part of the binary interfaces of CPython and NumPy, which extensions rely on. They are tested before
they are used.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..forks import Lock
from ..native import loaded, object_code
from ..target import host
from . import cache
from .arguments import KIND_FLAGS, NDArray
from .struct_fields import expand_fields, types

OTHERWISE = -1000  # returned if an array has changed or may overlap another; kernels never return it
_LARGEST_BLOCK = 4096  # bytes
_SIZES = {object: 16, list: 40}  # of structures, in bytes
_Function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)

_STRUCTS = {
    "List": (("references", "i64"), ("class", "ptr"), ("size", "i64"), ("items", "ptr")),
    "Array": (
        ("references", "i64"), ("class", "ptr"), ("data", "i64"), ("ndim", "i32"), ("shape", "ptr"), ("strides", "ptr"),
        ("base", "ptr"), ("dtype", "i64"), ("flags", "i32"),
    ),
    # The header of a kind of call: the number of arrays; the kernel; the number of words of its block; NumPy's class;
    # the block; the number of bytes of numbers in it, and the word where they begin; the functions that release and
    # acquire the GIL; the number of arrays that are inputs.
    "Kind": (
        ("count", "i64"), ("kernel", "ptr"), ("words", "i64"), ("class", "ptr"), ("block", "ptr"), ("bytes", "i64"),
        ("numbers", "i64"), ("save", "ptr"), ("restore", "ptr"), ("inputs", "i64"),
    ),
    # Then a record for each array: the number of axes; a mask of the flags to compare, and their values; the type; the
    # word of the block that holds its address; the offsets from that address where the bytes of its elements begin and
    # end. Its extents and strides follow.
    "Record": (
        ("ndim", "i64"), ("mask", "i64"), ("flags", "i64"), ("dtype", "i64"), ("slot", "i64"), ("begin", "i64"),
        ("end", "i64"),
    ),
}  # fmt: skip
_TEXT = r"""
declare i32 @memcmp(ptr, ptr, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @pantile_enter(ptr %list, ptr %kind, ptr %numbers, i64 %threads) nounwind {
entry:
  %count = load i64, ptr %kind
  %kernel = load ptr, ptr field Kind.kernel of %kind
  %words = load i64, ptr field Kind.words of %kind
  %type = load ptr, ptr field Kind.class of %kind
  %template = load ptr, ptr field Kind.block of %kind
  %nbytes = load i64, ptr field Kind.bytes of %kind
  %nat = load i64, ptr field Kind.numbers of %kind
  %save = load ptr, ptr field Kind.save of %kind
  %restore = load ptr, ptr field Kind.restore of %kind
  %inputs = load i64, ptr field Kind.inputs of %kind
  %first = getelementptr %Kind, ptr %kind, i64 1
  %size = load i64, ptr field List.size of %list
  %same = icmp eq i64 %size, %count
  br i1 %same, label %fill, label %no
fill:
  %items = load ptr, ptr field List.items of %list
  %block = alloca i64, i64 %words, align 16
  %bytes = shl i64 %words, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %block, ptr %template, i64 %bytes, i1 false)
  %at = getelementptr i64, ptr %block, i64 %nat
  call void @llvm.memcpy.p0.p0.i64(ptr %at, ptr %numbers, i64 %nbytes, i1 false)
  %lows = alloca i64, i64 %count, align 16
  %highs = alloca i64, i64 %count, align 16
  br label %loop
loop:
  %k = phi i64 [0, %fill], [%k1, %next]
  %rec = phi ptr [%first, %fill], [%rec1, %next]
  %done = icmp eq i64 %k, %count
  br i1 %done, label %run, label %check
check:
  %objp = getelementptr ptr, ptr %items, i64 %k
  %obj = load ptr, ptr %objp
  %t = load ptr, ptr field Array.class of %obj
  %c0 = icmp eq ptr %t, %type
  br i1 %c0, label %array, label %no
array:
  %nd32 = load i32, ptr field Array.ndim of %obj
  %nd = zext i32 %nd32 to i64
  %wnd = load i64, ptr %rec
  %c1 = icmp eq i64 %nd, %wnd
  %fl32 = load i32, ptr field Array.flags of %obj
  %fl = zext i32 %fl32 to i64
  %mask = load i64, ptr field Record.mask of %rec
  %flm = and i64 %fl, %mask
  %wfl = load i64, ptr field Record.flags of %rec
  %c2 = icmp eq i64 %flm, %wfl
  %d = load i64, ptr field Array.dtype of %obj
  %wd = load i64, ptr field Record.dtype of %rec
  %c3 = icmp eq i64 %d, %wd
  %c12 = and i1 %c1, %c2
  %c123 = and i1 %c12, %c3
  br i1 %c123, label %dims, label %no
dims:
  %nb = shl i64 %nd, 3
  %dimsv = load ptr, ptr field Array.shape of %obj
  %stv = load ptr, ptr field Array.strides of %obj
  %wdims = getelementptr %Record, ptr %rec, i64 1
  %wst = getelementptr i64, ptr %wdims, i64 %nd
  %m1 = call i32 @memcmp(ptr %dimsv, ptr %wdims, i64 %nb)
  %m2 = call i32 @memcmp(ptr %stv, ptr %wst, i64 %nb)
  %m = or i32 %m1, %m2
  %c4 = icmp eq i32 %m, 0
  br i1 %c4, label %place, label %no
place:
  %data = load i64, ptr field Array.data of %obj
  %slot = load i64, ptr field Record.slot of %rec
  %to = getelementptr i64, ptr %block, i64 %slot
  store i64 %data, ptr %to
  %begin = load i64, ptr field Record.begin of %rec
  %low = add i64 %data, %begin
  %lowp = getelementptr i64, ptr %lows, i64 %k
  store i64 %low, ptr %lowp
  %end = load i64, ptr field Record.end of %rec
  %high = add i64 %data, %end
  %highp = getelementptr i64, ptr %highs, i64 %k
  store i64 %high, ptr %highp
  %is_input = icmp ult i64 %k, %inputs
  br i1 %is_input, label %next, label %apart
apart:
  %j = phi i64 [0, %place], [%j1, %beside]
  %is_apart = icmp eq i64 %j, %k
  br i1 %is_apart, label %next, label %beside
beside:
  %lowjp = getelementptr i64, ptr %lows, i64 %j
  %lowj = load i64, ptr %lowjp
  %highjp = getelementptr i64, ptr %highs, i64 %j
  %highj = load i64, ptr %highjp
  %m3 = icmp slt i64 %low, %highj
  %m4 = icmp slt i64 %lowj, %high
  %meets = and i1 %m3, %m4
  %j1 = add i64 %j, 1
  br i1 %meets, label %no, label %apart
next:
  %rec1 = getelementptr i64, ptr %wst, i64 %nd
  %k1 = add i64 %k, 1
  br label %loop
run:
  %state = call ptr %save()
  %rc = call i32 %kernel(ptr %block, i64 %threads)
  call void %restore(ptr %state)
  ret i32 %rc
no:
  ret i32 -1000
}

define i32 @pantile_is_first(ptr %block, i64 %address) nounwind {
  %first = load i64, ptr %block
  %differs = icmp ne i64 %first, %address
  %code = zext i1 %differs to i32
  ret i32 %code
}
"""


class CallEntry:
    """The fast path of one kind of call, with its argument block, which ends with numbers and one more word."""

    def __init__(
        self, kernel: int, inputs: Sequence[NDArray], outputs: Sequence[NDArray], block: bytes, numbers: int
    ) -> None:
        arrays, words = [*inputs, *outputs], len(block) // 8
        self._block = ctypes.create_string_buffer(block, len(block))
        self._types = [a.dtype for a in arrays]  # kept alive, because the entry has their addresses
        block_address, first_number = ctypes.addressof(self._block), words - 1 - numbers // 8
        kind = [len(arrays), kernel, words, id(np.ndarray), block_address, numbers, first_number, *_GIL, len(inputs)]
        place = 0
        for a, t in zip(arrays, self._types, strict=True):
            kind += [a.ndim, KIND_FLAGS, a.flags.num & KIND_FLAGS, id(t), place, *_bytes_of(a), *a.shape, *a.strides]
            place += 1 + 2 * a.ndim
        self._kind = (ctypes.c_int64 * len(kind))(*kind)
        self.address = ctypes.addressof(self._kind)


def _bytes_of(a: NDArray) -> tuple[int, int]:
    """The offsets from an array's address of the first byte of its elements and of the end of the last one."""
    if a.size == 0:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(a.shape, a.strides, strict=True)]
    return sum(min(0, s) for s in steps), sum(max(0, s) for s in steps) + a.itemsize


def entry(
    kernel: int, inputs: Sequence[NDArray], outputs: Sequence[NDArray], block: bytes, numbers: int
) -> CallEntry | None:
    """The fast path of a kind of call; None if such calls cannot have one."""
    if len(block) > _LARGEST_BLOCK or function() is None:
        return None
    return CallEntry(kernel, inputs, outputs, block, numbers)


def function() -> Any:
    """The native function that makes a call: it takes a list of arrays, the address of an entry, the bytes of numbers
    and the number of threads, and returns the kernel's result or `OTHERWISE`. None if Python's structures differ from
    those expected."""
    global _engine, _entered
    if _engine is None:
        with _lock:
            if _engine is None:
                code = cache.fetch(cache.key("entering", str(host()), host().features), lambda: object_code(_text(), 1))
                engine = loaded(code)
                candidate = _Function(engine.get_function_address("pantile_enter"))
                first = engine.get_function_address("pantile_is_first")
                _entered = candidate if _are_structures(candidate, first) else None
                _engine = engine
    return _entered


def _text() -> str:
    return expand_fields(f"{types(_STRUCTS)}\n{_TEXT}", _STRUCTS)


def _address(symbol: Any) -> int:
    return ctypes.cast(symbol, ctypes.c_void_p).value or 0


_GIL = [_address(ctypes.pythonapi.PyEval_SaveThread), _address(ctypes.pythonapi.PyEval_RestoreThread)]
_lock = Lock()
_engine: Any = None
_entered: Any = None


def _are_structures(enter: Any, is_first: int) -> bool:
    """Whether the C structures of arrays are as expected."""
    if sys.implementation.name != "cpython" or any(kind.__basicsize__ != n for kind, n in _SIZES.items()):
        return False
    samples: list[NDArray] = [
        np.zeros(3), np.zeros((4, 5), np.uint8)[::-1, 1:], np.zeros((2, 0)), np.zeros((2, 3, 4), "int16").T,
        np.broadcast_to(np.zeros(3), (2, 3)), np.zeros(3, np.float32), np.zeros(4),
    ]  # fmt: skip
    for a in samples:
        kind = CallEntry(is_first, [a], [], bytes(8 * (2 + 2 * a.ndim)), 0)
        entered = [enter([b], kind.address, b"", b.ctypes.data) for b in samples]
        if entered != [0 if b is a else OTHERWISE for b in samples]:
            return False
    return True
