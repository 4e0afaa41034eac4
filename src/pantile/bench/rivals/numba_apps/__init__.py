"""Apps as loops over arrays that Numba compiles at the first call: rows in parallel, inner loops for vectors."""

import numba


def set_threads(threads: int) -> None:
    """How many it runs on."""
    numba.set_num_threads(threads)
