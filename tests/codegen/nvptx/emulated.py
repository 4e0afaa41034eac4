"""Kernels of blocks run by this machine: the same LLVM text, with the machine's threads in the place of a GPU's.

What only GPUs have is replaced in the text: numbers of threads and blocks are arguments, address spaces are one, the
memory of a block is a global array, and a barrier is a function of ours.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from pantile.codegen.compile import compile_object
from pantile.codegen.emit import emit
from pantile.codegen.engine import load
from pantile.codegen.entry import entries
from pantile.expr.nodes import Number
from pantile.ir.nodes import Program
from pantile.target import GPUS, host

from . import emulated_matrices

Array = np.ndarray[Any, np.dtype[Any]]
_SHARED = 1 << 16
_HERE = [
    (r"define ptx_kernel void (@\w+)\([^%]*%frame\)", r"define void \1(ptr %frame, i32 %T, i32 %B)"),
    (r' "nvvm\.reqntid"="\d+"', ""),
    (r"@shared = external addrspace\(3\) global \[0 x i8\]", f"@shared = global [{_SHARED} x i8] zeroinitializer"),
    (r" addrspace\(\d\)", ""),
    (r"addrspacecast ptr (\S+) to ptr", r"bitcast ptr \1 to ptr"),
    (r"call range\([^)]*\) i32 @llvm\.nvvm\.read\.ptx\.sreg\.tid\.x\(\)", "add i32 %T, 0"),
    (r"call range\([^)]*\) i32 @llvm\.nvvm\.read\.ptx\.sreg\.ctaid\.x\(\)", "add i32 %B, 0"),
    (r"@llvm\.nvvm\.barrier\.cta\.sync\.aligned\.all\(i32 0\)", "@wait()"),
    (r"@llvm\.nvvm\.shfl\.sync\.idx\.i32\(i32 -1, (.*), i32 31\) memory\(none\)", r"@exchange(i32 %T, \1)"),
    (r'asm "[^"]*max\.s16[^"]*", "=h,h"\((i16 \S+)\)', r"@llvm.abs.i16(\1, i1 false)"),
    (r'call i16 asm "ld\.global\.c[gs]\.u8 [^"]*", "=h,l"(\(ptr \S+\)) nounwind.*', r"call i16 @byte\1"),
    (r'call (\S+|{.*}) asm "ld\.global\.c[gs]\.[^"]*", "[^"]*"\((ptr \S+)\) nounwind.*', r"load \1, \2, align 1"),
    (r"@llvm\.nvvm\.f2i\.rz\(", "@llvm.fptosi.sat.i32.f32("),
    (r"@llvm\.nvvm\.f2ui\.rz\(", "@llvm.fptoui.sat.i32.f32("),
]


_BYTE = """
define internal i16 @byte(ptr %p) {
  %x = load i8, ptr %p
  %wide = zext i8 %x to i16
  ret i16 %wide
}
"""
# What CPUs without an instruction for it call to round a float to a bfloat; not every system's libraries have it.
_TO_BFLOAT = """
define linkonce_odr bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %upper = lshr i32 %bits, 16
  %odd = and i32 %upper, 1
  %half = add i32 %odd, 32767
  %near = add i32 %bits, %half
  %quiet = or i32 %bits, 4194304
  %nan = fcmp uno float %x, %x
  %rounded = select i1 %nan, i32 %quiet, i32 %near
  %top = lshr i32 %rounded, 16
  %short = trunc i32 %top to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}
"""


def run(
    made: Program, arrays: Mapping[str, Array], scalars: Sequence[Number], blocks: int = 1, *, index_bits: int = 32
) -> None:
    """Run the only kernel of a program on arrays by name."""
    target = replace(GPUS["sm_90"], index_bits=index_bits)
    (entry,), (kernel,) = entries(made, index_bits), made.kernels
    text = emit(made, target) + "\ndeclare void @wait()\ndeclare i32 @exchange(i32, i32, i32)\n" + _TO_BFLOAT + _BYTE
    for pattern, here in _HERE:
        text = re.sub(pattern, here, text)
    text = emulated_matrices.replaced(text)
    barrier = threading.Barrier(entry.threads)
    wait = ctypes.CFUNCTYPE(None)(lambda: barrier.wait() and None)
    given = [0] * entry.threads

    def of_lane(thread: int, value: int, lane: int) -> int:
        given[thread] = value
        barrier.wait()
        found = given[thread // 32 * 32 + lane]
        barrier.wait()
        return found

    exchange = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(of_lane)
    functions = {"wait": wait, "exchange": exchange, **emulated_matrices.callbacks(barrier)}
    addresses = {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in functions.items()}
    code = load([compile_object(text, host())], entry.symbol, addresses)
    function = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int32, ctypes.c_int32)(code.address)
    frame = entry.pack(scalars, [arrays[b.name].ctypes.data for b in kernel.buffers])
    assert len(frame) == entry.size
    with ThreadPoolExecutor(entry.threads) as pool:
        for block in range(blocks):
            list(pool.map(function, [frame] * entry.threads, range(entry.threads), [block] * entry.threads))
