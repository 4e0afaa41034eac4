"""Measures the peak rates of this machine by small generated loops: its clock, instructions per cycle, and bandwidths.

Loops of operations run many independent dependency chains, since one chain alone cannot fill the units. Reads and
writes sweep over a buffer that fits in the measured cache; to measure memory, the buffer exceeds all caches.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from math import inf
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from ..dataclass import dataclass
from ..native import loaded, object_code
from ..parameters import Rate, check_fields
from .description import Costs, Issue

COPIED_BYTES = 32 << 20, 256 << 20  # the minimum and maximum number of bytes in each of the two copied arrays
TOUCHED_BYTES = 64 << 20  # bytes that one measurement of a cache reads or writes, over and over
CHAINS = 12  # independent dependency chains: enough to keep all units busy, and few enough to fit in registers
STEPS = 1 << 18
ROUNDS = 4  # each round runs all loops; a loop's fastest run counts, since other work on a core lasts for a while
_BLOCK = 8  # vectors read or written per iteration
_SERIAL = 4  # steps per iteration of the one chain that measures the clock

_Bytes = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rates:
    """The measured rates, as in `Machine`; `caches` are the bandwidths of caches."""

    ghz: Rate
    issue: Issue
    caches: tuple[Rate, ...]
    core_bandwidth: Rate
    bandwidth: Rate
    costs: Mapping[str, float] = field(default_factory=dict)  # the measured fields of Costs (`calibration`)

    def __post_init__(self) -> None:
        check_fields(self)
        Costs(**self.costs)  # checks them


def measure(cache_sizes: Sequence[int], cores: int, vector_bits: int, rounds: int = ROUNDS) -> Rates:
    """Measure the rates of this machine. This takes a few tenths of a second and occupies all cores."""
    lanes, vector = vector_bits // 32, vector_bits // 8
    engine = compiled(_kernels(lanes))
    source, target = _beyond_caches(cache_sizes, cores)
    sweeps = {f"reads of L{k}": _sweeps(engine, "reads", size // 2, vector) for k, size in enumerate(cache_sizes, 1)}
    written, write = _sweeps(engine, "writes", cache_sizes[0] // 2, vector)
    took = quickest(
        {
            **{name: [chains(engine, name)] for name in ("clock", "fmas", "ints")},
            **{name: [read] for name, (_, read) in sweeps.items()},
            "writes": [write],
            "copies": _copies(source, target, 1),
            "all copies": _copies(source, target, cores),
        },
        rounds,
    )
    cycle = took["clock"] / (2 * _SERIAL * STEPS)
    reads = [count / took[name] for name, (count, _) in sweeps.items()]
    of_one, of_all = (2 * source.size / took[name] for name in ("copies", "all copies"))
    return Rates(
        ghz=1e-9 / cycle,
        issue=Issue(
            fma=CHAINS * STEPS * cycle / took["fmas"],
            int=2 * CHAINS * STEPS * cycle / took["ints"],
            load=reads[0] * cycle / vector,
            store=written / took["writes"] * cycle / vector,
        ),
        # All data from memory pass through the caches, so these are at least as fast; other processes may evict lines.
        caches=tuple([max(r, of_one) for r in reads]),
        core_bandwidth=of_one,
        bandwidth=max(of_one, of_all),
    )


def quickest(
    loops: Mapping[str, Sequence[Callable[[], object]]], rounds: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, float]:
    """The time in seconds of the fastest run of each loop, whose parts run concurrently. The time of a run is the CPU
    time of its longest part, which other processes disturb less than elapsed time. `report` is called with the name of
    each loop before its first run."""
    seconds = dict.fromkeys(loops, inf)
    for number in range(rounds):
        for name, parts in loops.items():
            if number == 0:
                report(name)
            seconds[name] = min(seconds[name], _seconds(parts))
    return seconds


def _seconds(parts: Sequence[Callable[[], object]]) -> float:
    if len(parts) == 1:
        return _processor_time(parts[0])
    with ThreadPoolExecutor(len(parts)) as pool:
        return max(pool.map(_processor_time, parts))


def _processor_time(part: Callable[[], object]) -> float:
    start = time.thread_time()
    part()
    return time.thread_time() - start


def _beyond_caches(sizes: Sequence[int], cores: int) -> tuple[_Bytes, _Bytes]:
    """Two arrays that exceed all caches together."""
    fewest, most = COPIED_BYTES
    held = sizes[-1] + cores * sum(sizes[:-1])
    size = max(fewest, min(held, most))
    return np.ones(size, np.uint8), np.zeros(size, np.uint8)


def _copies(source: _Bytes, target: _Bytes, threads: int) -> list[Callable[[], object]]:
    pairs = zip(np.array_split(source, threads), np.array_split(target, threads), strict=True)
    return [lambda s=s, t=t: np.copyto(t, s) for s, t in pairs]  # type: ignore[misc]


def _sweeps(engine: llvm.ExecutionEngine, name: str, size: int, vector: int) -> tuple[int, Callable[[], object]]:
    """Prepare repeated sweeps over a buffer of about `size` bytes. Return the number of bytes accessed, and a function
    that runs the sweeps."""
    steps = max(1, size // (_BLOCK * vector))
    rounds = max(1, TOUCHED_BYTES // (steps * _BLOCK * vector))
    buffer = np.ones(steps * _BLOCK * vector + vector, np.uint8)  # zero pages may share memory
    start = -buffer.ctypes.data % vector
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(engine.get_function_address(name))
    return rounds * steps * _BLOCK * vector, lambda: call(buffer.ctypes.data + start, steps, rounds)


def chains(engine: llvm.ExecutionEngine, name: str) -> Callable[[], object]:
    """A function that calls a loop generated by `chained`."""
    return ctypes.CFUNCTYPE(ctypes.c_float)(engine.get_function_address(name))


def compiled(text: str) -> llvm.ExecutionEngine:
    """Compile LLVM text for this machine."""
    return loaded(object_code(text, 3))


# ---- the loops, as LLVM text. An integer step has two operations, so that LLVM cannot optimize any of them away.


def _kernels(lanes: int) -> str:
    floats, ints = f"<{lanes} x float>", f"<{lanes} x i32>"
    fma = f"%n{{k}} = call {floats} @llvm.fma.v{lanes}f32({floats} %f, {floats} %f, {floats} %a{{k}})"
    mixed = "%m{k} = add TYPE %a{k}, %i\n  %n{k} = xor TYPE %m{k}, %i"
    links = ["a0", *(f"t{j}" for j in range(1, _SERIAL)), "n0"]
    serial = "\n  ".join(
        f"%m{j} = add i32 %{links[j]}, %i\n  %{links[j + 1]} = xor i32 %m{j}, %i" for j in range(_SERIAL)
    )
    return f"""
declare {floats} @llvm.fma.v{lanes}f32({floats}, {floats}, {floats})
@one = global float 1.0
{chained("clock", "<1 x float>", "<1 x i32>", "i32", serial, 1, "%i = bitcast float %one to i32")}
{chained("fmas", floats, ints, floats, fma, CHAINS, "")}
{chained("ints", floats, ints, ints, mixed, CHAINS, f"%i = bitcast {floats} %f to {ints}")}
{_read_loop(ints)}
{_write_loop(ints)}
"""


def chained(name: str, floats: str, ints: str, kind: str, step: str, count: int, operand: str) -> str:
    """LLVM text of a function that runs independent chains of steps; its result depends on all of them."""
    numbers = range(count)
    zero = "0" if kind == "i32" else "zeroinitializer"
    starts = "\n  ".join(f"%a{k} = phi {kind} [{zero}, %entry], [%n{k}, %loop]" for k in numbers)
    steps = "\n  ".join(step.format(k=k).replace("TYPE", kind) for k in numbers)
    bits = "\n  ".join(f"%b{k} = bitcast {kind} %n{k} to {ints}" for k in numbers)
    ends = "\n  ".join(f"%s{k} = xor {ints} %b{k}, %{'b0' if k == 1 else f's{k - 1}'}" for k in numbers[1:])
    last = "b0" if count == 1 else f"s{count - 1}"
    return f"""
define float @{name}() {{
entry:
  %one = load volatile float, ptr @one
  %f0 = insertelement {floats} zeroinitializer, float %one, i32 0
  %f = shufflevector {floats} %f0, {floats} poison, {ints} zeroinitializer
  {operand}
  br label %loop
loop:
  %step = phi i64 [0, %entry], [%next, %loop]
  {starts}
  {steps}
  %next = add i64 %step, 1
  %more = icmp ult i64 %next, {STEPS}
  br i1 %more, label %loop, label %exit
exit:
  {bits}
  {ends}
  %last = bitcast {ints} %{last} to {floats}
  %result = extractelement {floats} %last, i32 0
  ret float %result
}}"""


def _read_loop(ints: str) -> str:
    block = range(_BLOCK)
    sums = [f"%a{k} = phi {ints} [zeroinitializer, %row], [%n{k}, %loop]" for k in block]
    steps = [
        f"%p{k} = getelementptr {ints}, ptr %here, i64 {k}\n  %v{k} = load {ints}, ptr %p{k}\n"
        f"  %n{k} = xor {ints} %v{k}, %a{k}"
        for k in block
    ]
    keep = [f"store volatile {ints} %n{k}, ptr %kept" for k in block]
    return _sweep("reads", ints, sums, steps, keep)


def _write_loop(ints: str) -> str:
    steps = [
        f"%p{k} = getelementptr {ints}, ptr %here, i64 {k}\n  store {ints} zeroinitializer, ptr %p{k}"
        for k in range(_BLOCK)
    ]
    return _sweep("writes", ints, [], steps, [])


def _sweep(name: str, ints: str, sums: Sequence[str], steps: Sequence[str], keep: Sequence[str]) -> str:
    """LLVM text of a function that sweeps `rounds` times over `count` blocks of vectors, beginning at `start`."""

    def lines(parts: Sequence[str]) -> str:
        return "\n  ".join(parts)

    return f"""
define void @{name}(ptr %start, i64 %count, i64 %rounds) {{
entry:
  %kept = alloca {ints}
  br label %row
row:
  %round = phi i64 [0, %entry], [%again, %done]
  br label %loop
loop:
  %at = phi i64 [0, %row], [%next, %loop]
  {lines(sums)}
  %first = mul i64 %at, {_BLOCK}
  %here = getelementptr {ints}, ptr %start, i64 %first
  {lines(steps)}
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  {lines(keep)}
  %again = add i64 %round, 1
  %goes_on = icmp ult i64 %again, %rounds
  br i1 %goes_on, label %row, label %exit
exit:
  ret void
}}"""
