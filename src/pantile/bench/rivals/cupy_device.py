"""The GPU as CuPy has it: what :mod:`.gpu_worker` asks of a library."""

from collections.abc import Callable
from typing import Any

import cupy

_WARM_CALLS = 3


def put(array: Any) -> Any:
    """A copy on the GPU."""
    return cupy.ascontiguousarray(cupy.asarray(array))


def get(array: Any) -> Any:
    """A copy on the host."""
    return cupy.asnumpy(array)


def wait() -> None:
    """Until the GPU has nothing to do."""
    cupy.cuda.Device().synchronize()


def elapsed_ms(work: Callable[[], object], calls: int) -> float:
    """How long so many calls take on the GPU, one after the other."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    wait()
    start.record()
    for _ in range(calls):
        work()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(start, end))


def captured(work: Callable[[], object], calls: int) -> Callable[[], object]:
    """So many calls as one CUDA graph."""
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        for _ in range(_WARM_CALLS):
            work()
        stream.synchronize()
        stream.begin_capture()
        try:
            for _ in range(calls):
                work()
        finally:
            graph = stream.end_capture()
    return lambda: graph.launch(cupy.cuda.get_current_stream())
