"""Simulated GPUs: the simulator runs the kernels that a device would run, and checks everything that they do.

The simulator runs kernels as loop IR, so that is what an artifact contains. LLVM text and PTX can be inspected as for a
real GPU.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import partial
from math import gcd
from typing import Any

from .. import machine as machines
from ..expr.depth import on_deep_stack
from ..expr.types import DType
from ..ir.nodes import Program
from ..runtime.arguments import alignment, element_strides
from ..runtime.arrays import NumpyArrays
from ..runtime.kernel import out_of_memory
from ..runtime.launches import LaunchPlan, check_near, launches, resident_blocks, scalars_of
from ..simulator import Global, simulate
from ..target import Target
from ..target.description import INDEX_BITS
from ..target.gpu import LONGEST_ACCESS
from .backend import GpuBackend, Values


class SimulatedArrays(NumpyArrays):
    """NumPy arrays treated as if they were on a device: aligned arrays get wider accesses, and code of their own."""

    @staticmethod
    def layouts(arrays: Sequence[Any]) -> tuple[object, ...]:
        aligned = [None if a is None else gcd(a.ctypes.data, LONGEST_ACCESS) for a in arrays]
        return (*NumpyArrays.layouts(arrays), *aligned)

    @staticmethod
    def aligned(seen: Sequence[Any]) -> Sequence[int]:
        return [alignment(a, a.ctypes.data) for a in seen]


class SimulatedCuda(GpuBackend):
    """The backend that simulates all GPUs on any machine. It checks every access, whether or not that is requested."""

    arrays = SimulatedArrays()

    def check(self, target: Target) -> None:
        """Accept every target, since the simulator runs everywhere."""

    def artifact(self, program: Program, text: str, target: Target, debug: bool) -> bytes:
        return pickle.dumps((program, target))

    @on_deep_stack
    def loaded(self, artifact: bytes) -> SimulatedExecutable:
        return SimulatedExecutable(*pickle.loads(artifact))


class SimulatedExecutable:
    """A program whose host part and kernels are interpreted."""

    def __init__(self, program: Program, target: Target) -> None:
        self.program, self.target = program, target

    def prepare(
        self, inputs: Sequence[Any], outputs: Sequence[Any], numbers: Sequence[DType], labels: Mapping[str, str]
    ) -> SimulatedCall:
        return SimulatedCall(self.program, self.target, [*inputs, *outputs], labels)


class SimulatedCall:
    """An interpreted program for calls with arrays of these shapes and strides."""

    enter = None

    def __init__(self, program: Program, target: Target, arrays: Sequence[Any], labels: Mapping[str, str]) -> None:
        self._program, self._target, self._labels = program, target, labels
        self._shapes = [a.shape for a in arrays]
        self._strides = [element_strides(a) for a in arrays]

    @on_deep_stack
    def run(self, arrays: Sequence[Any], numbers: Values, threads: int) -> bool:
        memory = {
            b.name: Global.of_array(self._label(b.name), b.dtype, a, b.writable)
            for b, a in zip(self._program.buffers, arrays, strict=True)
        }
        try:
            self._simulate(self._plan(numbers), memory)
        except MemoryError as error:
            raise out_of_memory() from error
        return True

    def _simulate(self, plan: LaunchPlan, memory: dict[str, Global]) -> None:
        for k, launch in enumerate(plan.launches):
            for a in plan.allocations:
                if a.begin == k < a.end:
                    memory[a.name] = Global.fresh(self._label(a.name), a.dtype, a.elements)
            buffers = [memory[name] for name in launch.buffers]
            simulate(launch.kernel, launch.scalars, buffers, launch.blocks, self._target.index_bits)
            for a in plan.allocations:
                if a.begin < a.end == k + 1:
                    del memory[a.name]

    def _plan(self, numbers: Values) -> LaunchPlan:
        scalars = scalars_of(self._program, self._shapes, self._strides, numbers)
        plan = launches(self._program, scalars, partial(resident_blocks, machines.of_target(self._target)))
        if self._target.index_bits < INDEX_BITS:
            check_near(plan)
        return plan

    def _label(self, name: str) -> str:
        return self._labels.get(name.partition("@")[0], name)
