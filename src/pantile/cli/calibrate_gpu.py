"""`pantile calibrate --gpu`: measure a GPU, and print the results."""

from __future__ import annotations

from ..apps.names import WrongArgument
from ..runtime.cuda.device import count, device
from ..runtime.cuda.machine import calibrate
from .progress import show_progress


def calibrate_gpu(number: int) -> int:
    """Measure the GPU, save and print the result, and return the exit code."""
    if number >= count():
        raise WrongArgument(f"there is no GPU {number}; pantile devices lists the available ones")
    gpu = calibrate(device(number), show_progress)
    show_progress("")
    has, capability = gpu.multiprocessor, ".".join(map(str, gpu.capability))
    print(
        f"{gpu.name}, compute capability {capability}, {gpu.multiprocessors} multiprocessors of {has.cores} cores, "
        f"{gpu.ghz:.2f} GHz"
    )
    print(
        f"GB/s: global memory {gpu.bandwidth / 1e9:.0f}; bytes per cycle of a multiprocessor: shared memory "
        f"{has.shared_per_cycle:.0f}"
    )
    return 0
