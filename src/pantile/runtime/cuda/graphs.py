"""The launches of a call as one CUDA graph, which starts in a fraction of the time of separate launches.

A graph is made for each kind of call and stream. If only addresses or params change, only the nodes that use them are
updated. A graph never runs concurrently with itself, so each stream has its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass
from .code import DeviceFunction
from .device import Device
from .driver import checked, launch_failure
from .parameters import Parameters

VARIABLE = "PANTILE_CUDA_GRAPHS"
enabled = os.environ.get(VARIABLE, "1") != "0"  # to measure their benefit


@dataclass(frozen=True)
class KernelLaunch:
    """A kernel on a device, and its number of blocks."""

    function: DeviceFunction
    blocks: int


class Launcher:
    """Starts launches one by one."""

    def __init__(self, device: Device, launches: Sequence[KernelLaunch], parameters: Parameters) -> None:
        self._cu, self._launches, self._parameters = device.cu, launches, parameters
        self._each = [
            (launch.function.handle, launch.blocks, launch.function.entry.threads, launch.function.entry.shared, of)
            for launch, of in zip(launches, parameters.lists, strict=True)
        ]

    def start(self, addresses: Sequence[int], numbers: Sequence[Any], stream: Any) -> None:
        self._parameters.change(addresses, numbers)
        start = self._cu.cuLaunchKernel
        for k, (handle, blocks, threads, shared, parameters) in enumerate(self._each):
            (error,) = start(handle, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, 0)
            if error:
                raise launch_failure(error, int(stream), described(self._launches[k]))


class CudaGraph:
    """Starts all launches at once; `waits` lists the earlier launches that each launch waits for."""

    def __init__(
        self, device: Device, launches: Sequence[KernelLaunch], parameters: Parameters, waits: Sequence[Sequence[int]]
    ) -> None:
        self._cu, self._launches, self._parameters, self._waits = device.cu, launches, parameters, waits
        self._nodes: list[tuple[Any, Any]] = []  # with their parameters for the driver
        self._graph: Any = None
        self._executable: Any = None

    def start(self, addresses: Sequence[int], numbers: Sequence[Any], stream: Any) -> None:
        changed = self._parameters.change(addresses, numbers)
        cu = self._cu
        if self._executable is None:
            self._make()
        else:
            for k in changed:
                node, params = self._nodes[k]
                (error,) = cu.cuGraphExecKernelNodeSetParams(self._executable, node, params)
                if error:
                    raise launch_failure(error, int(stream), described(self._launches[k]))
        (error,) = cu.cuGraphLaunch(self._executable, stream)
        if error:
            raise launch_failure(error, int(stream), f"{len(self._launches)} kernels as a graph")

    def _make(self) -> None:
        cu = self._cu
        self._graph = checked(cu.cuGraphCreate(0))
        self._nodes = []
        for launch, parameters, waits in zip(self._launches, self._parameters.lists, self._waits, strict=True):
            params = _node_parameters(cu, launch, parameters)
            before = [self._nodes[k][0] for k in waits]
            error, node = cu.cuGraphAddKernelNode(self._graph, before, len(before), params)
            if error:
                raise launch_failure(error, 0, described(launch))
            self._nodes.append((node, params))
        self._executable = checked(cu.cuGraphInstantiate(self._graph, 0))

    def __del__(self) -> None:
        if self._executable is not None:
            self._cu.cuGraphExecDestroy(self._executable)  # after it has finished, if it is running
        if self._graph is not None:
            self._cu.cuGraphDestroy(self._graph)


def described(launch: KernelLaunch) -> str:
    entry = launch.function.entry
    shared = f" and {entry.shared:,} bytes of shared memory" if entry.shared else ""
    return f"kernel {entry.kernel}, {launch.blocks:,} blocks of {entry.threads} threads{shared}"


def _node_parameters(cu: Any, launch: KernelLaunch, parameters: int) -> Any:
    params = cu.CUDA_KERNEL_NODE_PARAMS()
    params.func = launch.function.handle
    params.gridDimX, params.gridDimY, params.gridDimZ = launch.blocks, 1, 1
    params.blockDimX, params.blockDimY, params.blockDimZ = launch.function.entry.threads, 1, 1
    params.sharedMemBytes = launch.function.entry.shared
    params.kernelParams = parameters
    params.extra = 0
    return params
