"""The GPU as PyTorch has it: what :mod:`.gpu_worker` asks of a library."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Tensor = Any
_WARM_CALLS = 3  # before a capture, as PyTorch's documentation has it


def put(array: Any) -> Tensor:
    """A copy on the GPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arrays that cannot be written: nobody does
        return torch.from_numpy(np.ascontiguousarray(array)).cuda()


def get(tensor: Tensor) -> Any:
    """A copy on the host."""
    return tensor.detach().cpu().numpy()


def wait() -> None:
    """Until the GPU has nothing to do."""
    torch.cuda.synchronize()


def elapsed_ms(work: Callable[[], object], calls: int) -> float:
    """How long so many calls take on the GPU, one after the other."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))


def captured(work: Callable[[], object], calls: int) -> Callable[[], object]:
    """So many calls as one CUDA graph."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(_WARM_CALLS):
            work()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            work()
    replay: Callable[[], object] = graph.replay
    return replay
