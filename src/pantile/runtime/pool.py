"""The thread pool that runs kernels, its cached code, and the number of threads of a pipeline."""

from __future__ import annotations

from ..errors import UserError, UserTypeError, shown
from ..target import host
from . import cache
from .threads import MAX_THREADS, ThreadPool, compile_pool, pool


def shared_pool() -> ThreadPool:
    """The process's pool, started on first use."""
    try:
        return pool(_object_code)
    except ValueError as error:  # the value in the environment
        raise UserError(str(error)) from None


def _object_code() -> bytes:
    return cache.fetch(cache.key("thread pool", str(host()), host().features), compile_pool)


def get_num_threads() -> int:
    """The number of threads of a pipeline unless a call overrides it: by default one per core, or the value of the
    environment variable PANTILE_NUM_THREADS."""
    return shared_pool().get_num_threads()


def set_num_threads(count: int) -> None:
    """Set the number of threads of pipelines, including the calling one."""
    shared_pool().set_num_threads(checked_num_threads(count))


def checked_num_threads(count: object) -> int:
    """The number of threads of a call."""
    if type(count) is not int or not 1 <= count <= MAX_THREADS:
        kind = UserError if type(count) is int else UserTypeError
        raise kind(f"the number of threads is {shown(count)}; pass an integer of 1 to {MAX_THREADS}")
    return count
