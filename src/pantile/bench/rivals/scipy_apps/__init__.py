"""Apps as calls of SciPy's ndimage, which runs on one thread."""


def set_threads(threads: int) -> None:
    """There is one."""
    del threads
