"""Apps as calls of NumPy, whose matrix products are those of the BLAS it was built with."""


def set_threads(threads: int) -> None:
    """The BLAS has read it from the environment; everything else in NumPy runs on one thread."""
    del threads
