"""`pantile devices`: the GPUs that pipelines can run on."""

from __future__ import annotations

from argparse import Namespace

from ..runtime.cuda.device import devices, driver_version


def run(_: Namespace) -> int:
    """Print the GPUs; if there are none, the error says what is missing."""
    all_of_them, version = devices(), driver_version()
    for d in all_of_them:
        capability = "sm_{}{}".format(*d.capability)
        print(
            f"GPU {d.ordinal}: {d.name}, {capability}, {d.multiprocessors} multiprocessors, "
            f"{d.memory / (1 << 30):.1f} GiB, up to {d.most_shared // 1024} KiB of shared memory in a block"
        )
    print(f"driver: CUDA {version}; target='cuda' is GPU 0 unless another one is current")
    return 0
