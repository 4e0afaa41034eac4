"""The peak rates of a GPU, measured by small kernels: its clock under load, and the bandwidths of its memories.

Each kernel is PTX for all supported GPUs, and runs several times; the fastest run counts.

clock   keeps a multiprocessor busy with arithmetic, and records cycles and nanoseconds
shared  reads shared memory without bank conflicts, and records cycles and nanoseconds
copy    copies global memory

The results of the first two loops are stored under a condition that never holds, so that the assembler does not remove
the loops. All elements of vectors are used, because otherwise only some of them would be loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...parameters import Rate, check_fields
from ...target.gpu import LONGEST_ACCESS, MOST_THREADS
from .code import image
from .device import Device
from .driver import checked
from .memory import pool

COPIED_BYTES = 512 << 20  # fewer on a GPU with little memory
STEPS = 1 << 16  # of the loops of `clock` and `shared`, which take some milliseconds
ROUNDS = 8
UNROLLED = 16  # operations of a thread per step of a loop
COPIES = 4  # loads, and stores, per thread of `copy`
COPYING_THREADS = 256  # per block of `copy`
_CHAINS = 4  # of dependent operations


@dataclass(frozen=True)
class GpuRates:
    """The measured rates, as in `Gpu` and its `Multiprocessor`."""

    ghz: Rate
    bandwidth: Rate
    shared_per_cycle: Rate

    def __post_init__(self) -> None:
        check_fields(self)


def measure(device: Device, progress: Callable[[str], None] = lambda _: None) -> GpuRates:
    """Measure the rates in a fraction of a second. `progress` is called with the current step."""
    entered = device.enter()
    try:
        kernels = _Kernels(device)
        progress("measuring clock")
        ghz = max(kernels.ghz() for _ in range(ROUNDS))
        progress("measuring shared memory")
        shared = max(kernels.shared_per_cycle() for _ in range(ROUNDS))
        progress("measuring global memory")
        return GpuRates(ghz, kernels.bandwidth(ROUNDS), shared)
    finally:
        device.leave(entered)


class _Kernels:
    """The kernels of `PTX`, on a device whose context is current."""

    def __init__(self, device: Device) -> None:
        self._device, self._cu = device, device.cu
        self._module = checked(device.cu.cuModuleLoadData(image(device, PTX)))
        self._stream = device.own_stream()
        self._pool = pool(device)

    def ghz(self) -> float:
        """The cycles per nanosecond while all multiprocessors compute."""
        cycles, nanoseconds = self._timed("clock", self._device.multiprocessors, 0)
        return cycles / nanoseconds

    def shared_per_cycle(self) -> float:
        """The bytes of shared memory that the threads of a block read per cycle."""
        cycles, _ = self._timed("shared", 1, MOST_THREADS * LONGEST_ACCESS)
        return STEPS * UNROLLED * MOST_THREADS * LONGEST_ACCESS / cycles

    def bandwidth(self, rounds: int) -> float:
        """The bytes per second, read and written together, of the fastest of several copies."""
        of_block = COPYING_THREADS * COPIES * LONGEST_ACCESS
        blocks = max(1, min(COPIED_BYTES, self._device.memory // 8) // of_block)
        size = blocks * of_block
        memory = self._pool.take(2 * size, self._stream)
        try:
            arguments = ctypes.c_uint64(memory), ctypes.c_uint64(memory + size)
            return 2 * size / min(self._seconds("copy", blocks, arguments) for _ in range(rounds))
        finally:
            self._pool.give(memory, self._stream)

    def _timed(self, kernel: str, blocks: int, shared: int) -> tuple[int, int]:
        """The cycles and nanoseconds recorded by the first block of a launch."""
        noted = np.zeros(2, np.uint64)
        memory = self._pool.take(noted.nbytes, self._stream)
        try:
            arguments = ctypes.c_uint64(memory), ctypes.c_uint32(STEPS)
            self._launch(kernel, blocks, MOST_THREADS, shared, arguments)
            checked(self._cu.cuMemcpyDtoHAsync(noted.ctypes.data, memory, noted.nbytes, self._stream))
            self._device.wait(self._stream)
        finally:
            self._pool.give(memory, self._stream)
        return int(noted[0]), int(noted[1])

    def _seconds(self, kernel: str, blocks: int, arguments: tuple[Any, ...]) -> float:
        """The seconds of a launch, by events before and after it."""
        begin, end = (checked(self._cu.cuEventCreate(0)) for _ in range(2))
        try:
            checked(self._cu.cuEventRecord(begin, self._stream))
            self._launch(kernel, blocks, COPYING_THREADS, 0, arguments)
            checked(self._cu.cuEventRecord(end, self._stream))
            self._device.wait(self._stream)
            return float(checked(self._cu.cuEventElapsedTime(begin, end))) / 1e3
        finally:
            self._cu.cuEventDestroy(begin)
            self._cu.cuEventDestroy(end)

    def _launch(self, kernel: str, blocks: int, threads: int, shared: int, arguments: tuple[Any, ...]) -> None:
        function = checked(self._cu.cuModuleGetFunction(self._module, kernel.encode()))
        addresses = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        given = ctypes.addressof(addresses)
        (error,) = self._cu.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, self._stream, given, 0)
        checked((error, None))


def _lines(*lines: str) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _timed(name: str, registers: str, before: str, step: str, after: str) -> str:
    """PTX of a kernel whose first thread records the time of a loop; `after` computes a condition that never holds."""
    return f"""
.visible .entry {name}(.param .u64 noted, .param .u32 steps) .maxntid {MOST_THREADS}, 1, 1
{{
    .reg .pred %more, %first, %impossible;
    .reg .u32 %step, %steps, %thread, %block, %number;
    .reg .u64 %address, %cycles, %cycles_then, %time, %time_then;
{registers}
    ld.param.u64 %address, [noted];
    ld.param.u32 %steps, [steps];
    cvta.to.global.u64 %address, %address;
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %step, 0;
{before}
    bar.sync 0;
    mov.u64 %time, %globaltimer;
    mov.u64 %cycles, %clock64;
LOOP:
{step}
    add.u32 %step, %step, 1;
    setp.lt.u32 %more, %step, %steps;
    @%more bra LOOP;
    bar.sync 0;
    mov.u64 %cycles_then, %clock64;
    mov.u64 %time_then, %globaltimer;
{after}
    @%impossible st.global.u32 [%address], %number;
    add.u32 %number, %thread, %block;
    setp.eq.u32 %first, %number, 0;
    sub.u64 %cycles_then, %cycles_then, %cycles;
    sub.u64 %time_then, %time_then, %time;
    @%first st.global.u64 [%address], %cycles_then;
    @%first st.global.u64 [%address + 8], %time_then;
    ret;
}}
"""


_CLOCK = _timed(
    "clock",
    _lines(f".reg .f32 %f<{_CHAINS}>, %half, %one;"),
    _lines(
        "mov.f32 %half, 0f3F000000;",
        "mov.f32 %one, 0f3F800000;",
        *(f"cvt.rn.f32.u32 %f{k}, %thread;" for k in range(_CHAINS)),
    ),
    _lines(*(f"fma.rn.f32 %f{k % _CHAINS}, %f{k % _CHAINS}, %half, %one;" for k in range(UNROLLED))),
    _lines(
        *(f"add.f32 %f0, %f0, %f{k};" for k in range(1, _CHAINS)),
        "mov.b32 %number, %f0;",
        "setp.eq.u32 %impossible, %number, 1;",
    ),
)

_SHARED = _timed(
    "shared",
    _lines(".reg .u32 " + ", ".join(f"%{x}<{UNROLLED}>" for x in "abcd") + ", %place;"),
    _lines(
        "mov.u32 %place, block_memory;",
        f"mad.lo.u32 %place, %thread, {LONGEST_ACCESS}, %place;",
        "st.shared.v4.u32 [%place], {%thread, %thread, %thread, %thread};",
        "mov.u32 %number, 0;",
    ),
    _lines(
        *(f"ld.volatile.shared.v4.u32 {{%a{k}, %b{k}, %c{k}, %d{k}}}, [%place];" for k in range(UNROLLED)),
        *(f"xor.b32 %number, %number, %{x}{k};" for k in range(UNROLLED) for x in "abcd"),
    ),
    _lines("setp.eq.u32 %impossible, %number, 1;"),
)


def _copied(instruction: str) -> str:
    """PTX of the loads or stores of a thread of `copy`. For each of them, the accesses of a block are contiguous."""
    distance = COPYING_THREADS * LONGEST_ACCESS
    values = [f"{{%a{k}, %b{k}, %c{k}, %d{k}}}" for k in range(COPIES)]
    return _lines(*(instruction.format(k * distance, v) for k, v in enumerate(values)))


_COPY = f"""
.visible .entry copy(.param .u64 source, .param .u64 destination)
{{
    .reg .u32 %a<{COPIES}>, %b<{COPIES}>, %c<{COPIES}>, %d<{COPIES}>, %thread, %block;
    .reg .u64 %from, %to, %offset, %start;
    ld.param.u64 %from, [source];
    ld.param.u64 %to, [destination];
    cvta.to.global.u64 %from, %from;
    cvta.to.global.u64 %to, %to;
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mul.wide.u32 %start, %block, {COPYING_THREADS * COPIES * LONGEST_ACCESS};
    mul.wide.u32 %offset, %thread, {LONGEST_ACCESS};
    add.u64 %offset, %offset, %start;
    add.u64 %from, %from, %offset;
    add.u64 %to, %to, %offset;
{_copied("ld.global.v4.u32 {1}, [%from + {0}];")}
{_copied("st.global.v4.u32 [%to + {0}], {1};")}
    ret;
}}
"""

PTX = f"""\
.version 6.4
.target sm_70
.address_size 64
.extern .shared .align {LONGEST_ACCESS} .b8 block_memory[];
{_CLOCK}{_SHARED}{_COPY}"""
