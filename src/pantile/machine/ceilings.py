"""What a machine can do at most, measured: bytes copied and operations done per second, on a number of threads."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

COPIED_BYTES = 128 << 20  # more than caches hold
CHAINS = 12  # of operations that depend on each other: enough to keep all units busy, and they fit the registers
STEPS = 1 << 22
REPEATS = 7


@dataclass(frozen=True)
class Ceilings:
    """Per second. Operations are on 32 bits; twice as wide ones are half as many."""

    copy_bytes: float  # read and written
    fma_operations: float  # a multiply-add is two
    int_operations: float


def measure(threads: int, vector_bits: int) -> Ceilings:
    """Takes about a second, and the whole machine."""
    with ThreadPoolExecutor(threads) as pool:
        lanes = vector_bits // 32
        engine = _compiled(_kernels(lanes))
        done = CHAINS * STEPS * lanes * threads
        return Ceilings(
            copy_bytes=2 * COPIED_BYTES / _best(pool, _copies(threads)),
            fma_operations=2 * done / _best(pool, [_kernel(engine, "fmas")] * threads),
            int_operations=2 * done / _best(pool, [_kernel(engine, "ints")] * threads),
        )


def _best(pool: ThreadPoolExecutor, parts: Sequence[Callable[[], object]]) -> float:
    """The fewest seconds that running all parts at once takes."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for running in [pool.submit(part) for part in parts]:
            running.result()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _copies(threads: int) -> list[Callable[[], object]]:
    source, target = np.ones(COPIED_BYTES, np.uint8), np.zeros(COPIED_BYTES, np.uint8)
    pairs = zip(np.array_split(source, threads), np.array_split(target, threads), strict=True)
    return [lambda s=s, t=t: np.copyto(t, s) for s, t in pairs]  # type: ignore[misc]


def _kernel(engine: llvm.ExecutionEngine, name: str) -> Callable[[], object]:
    return ctypes.CFUNCTYPE(ctypes.c_float)(engine.get_function_address(name))


def _compiled(text: str) -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return engine


def _kernels(lanes: int) -> str:
    """LLVM text of two functions, each with two operations per chain and step (a multiply-add is two)."""
    floats, ints = f"<{lanes} x float>", f"<{lanes} x i32>"
    fma = f"%n{{k}} = call {floats} @fma({floats} %f, {floats} %f, {floats} %a{{k}})"
    mixed = f"%m{{k}} = add {ints} %a{{k}}, %i\n  %n{{k}} = xor {ints} %m{{k}}, %i"
    text = f"""
declare {floats} @fma({floats}, {floats}, {floats})
@one = global float 1.0
{_function("fmas", floats, fma)}
{_function("ints", ints, mixed)}
"""
    return text.replace("@fma(", f"@llvm.fma.v{lanes}f32(").replace("FLOATS", floats).replace("INTS", ints)


def _function(name: str, vector: str, step: str) -> str:
    """Runs chains of steps side by side; what it returns depends on all of them. FLOATS and INTS are vector types."""
    chains = range(CHAINS)
    starts = "\n  ".join(f"%a{k} = phi {vector} [zeroinitializer, %entry], [%n{k}, %loop]" for k in chains)
    steps = "\n  ".join(step.format(k=k) for k in chains)
    bits = "\n  ".join(f"%b{k} = bitcast {vector} %n{k} to INTS" for k in chains)
    ends = "\n  ".join(f"%s{k} = xor INTS %b{k}, %{'b0' if k == 1 else f's{k - 1}'}" for k in chains[1:])
    return f"""
define float @{name}() {{
entry:
  %one = load volatile float, ptr @one
  %f0 = insertelement FLOATS zeroinitializer, float %one, i32 0
  %f = shufflevector FLOATS %f0, FLOATS poison, INTS zeroinitializer
  %i = bitcast FLOATS %f to INTS
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
  %last = bitcast INTS %s{CHAINS - 1} to FLOATS
  %result = extractelement FLOATS %last, i32 0
  ret float %result
}}"""
