"""What a machine can do at most, measured by small generated loops: its clock, instructions per cycle, bandwidths.

Loops of operations run many chains side by side, each too short to fill the units alone. Reads and writes go over a
buffer that a cache holds, or for memory over one that none does.
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

COPIED_BYTES = 32 << 20, 256 << 20  # bytes, from and to as many others: the fewest and the most
TOUCHED_BYTES = 64 << 20  # read or written by one measurement of a cache, over and over
CHAINS = 12  # of operations that depend on each other: enough to keep all units busy, and they fit the registers
STEPS = 1 << 18
ROUNDS = 4  # in which all loops run in turn; of each the quickest counts, as what else a core does lasts a while
_BLOCK = 8  # vectors read or written per iteration
_SERIAL = 4  # steps of the one chain that tells the clock, per iteration

_Bytes = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rates:
    """The measured rates, as in `Machine`; `caches` are the bandwidths of caches."""

    ghz: Rate
    issue: Issue
    caches: tuple[Rate, ...]
    core_bandwidth: Rate
    bandwidth: Rate
    costs: Mapping[str, float] = field(default_factory=dict)  # those that were measured, too (`calibration`)

    def __post_init__(self) -> None:
        check_fields(self)
        Costs(**self.costs)  # checks them


def measure(cache_sizes: Sequence[int], cores: int, vector_bits: int, rounds: int = ROUNDS) -> Rates:
    """Measure the rates of this machine, which takes a few tenths of a second, and all of its cores."""
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
        caches=tuple([max(r, of_one) for r in reads]),  # what memory sends comes through; others may have emptied one
        core_bandwidth=of_one,
        bandwidth=max(of_one, of_all),
    )


def quickest(
    loops: Mapping[str, Sequence[Callable[[], object]]], rounds: int, report: Callable[[str], None] = lambda _: None
) -> dict[str, float]:
    """The fewest seconds that each takes, whose parts run at once: those of the processor of the part that takes
    longest, so that other processes disturb less. `report` is called with the name of each, the first time."""
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
    """Two arrays that all caches together do not hold."""
    fewest, most = COPIED_BYTES
    held = sizes[-1] + cores * sum(sizes[:-1])
    size = max(fewest, min(held, most))
    return np.ones(size, np.uint8), np.zeros(size, np.uint8)


def _copies(source: _Bytes, target: _Bytes, threads: int) -> list[Callable[[], object]]:
    pairs = zip(np.array_split(source, threads), np.array_split(target, threads), strict=True)
    return [lambda s=s, t=t: np.copyto(t, s) for s, t in pairs]  # type: ignore[misc]


def _sweeps(engine: llvm.ExecutionEngine, name: str, size: int, vector: int) -> tuple[int, Callable[[], object]]:
    """Going over a buffer of about `size` bytes again and again: how many bytes that is, and how to do it."""
    steps = max(1, size // (_BLOCK * vector))
    rounds = max(1, TOUCHED_BYTES // (steps * _BLOCK * vector))
    buffer = np.ones(steps * _BLOCK * vector + vector, np.uint8)  # pages of zeros may all be the same one
    start = -buffer.ctypes.data % vector
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(engine.get_function_address(name))
    return rounds * steps * _BLOCK * vector, lambda: call(buffer.ctypes.data + start, steps, rounds)


def chains(engine: llvm.ExecutionEngine, name: str) -> Callable[[], object]:
    """A loop that `chained` has written, to be called."""
    return ctypes.CFUNCTYPE(ctypes.c_float)(engine.get_function_address(name))


def compiled(text: str) -> llvm.ExecutionEngine:
    """The compiled code of LLVM text, for this machine."""
    return loaded(object_code(text, 3))


# ---- the loops, as LLVM text. An integer step is two operations, so that none can be left out.


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
    """Runs chains of steps side by side; what it returns depends on all of them."""
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
    """Goes over `count` blocks of vectors from `start` on, `rounds` times."""

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
