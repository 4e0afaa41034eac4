"""Apps as calls of scikit-image, which runs on one thread."""


def set_threads(threads: int) -> None:
    """There is one."""
    del threads
