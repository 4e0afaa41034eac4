"""Apps as loops over arrays, compiled by Numba: rows in parallel, inner loops that LLVM can vectorize."""

import numba


def set_threads(threads: int) -> None:
    """How many it runs on."""
    numba.set_num_threads(threads)
