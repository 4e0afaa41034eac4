"""The process's thread pool, which provides the functions of `pool_ir` that generated kernels call.

A kernel calls, as external symbols,

    i32  pantile_parallel_for(ptr body, ptr closure, i64 count, i64 scratch_bytes, i64 num_threads)
    ptr  pantile_scratch_push(i64 bytes)
    void pantile_scratch_pop(ptr memory)

where `body` is `i32 (ptr closure, i64 index, ptr scratch)`. The body runs once for each index below count, on up to
num_threads threads including the caller. A body that returns nonzero ends the region: tasks that have not begun are
skipped, and the first such code is the result. Bodies must not return `OUT_OF_MEMORY` (-1), which the pool returns if a
thread that runs tasks cannot get scratch memory.

Scratch memory is a stack per thread, 64-byte aligned, with undefined contents. Popping also frees what was pushed
later; pushing 0 bytes returns null, as does running out of memory; popping null does nothing.

There is one pool per process, whose code is cached.

Do not fork inside a body. A fork anywhere else is fine, and the child starts workers of its own.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType

import llvmlite.binding as llvm

from pantile.forks import Lock
from pantile.machine.host import usable_cores
from pantile.native import loaded, object_code
from pantile.runtime.pool_ir import EXPORTS, pool_ir
from pantile.runtime.pool_ir.platform import MAX_THREADS, OUT_OF_MEMORY

from ..errors import UserError, UserTypeError, shown
from ..target import host
from . import cache

__all__ = ["MAX_THREADS", "OUT_OF_MEMORY", "ThreadPool", "compile_pool", "pool"]

THREADS_VARIABLE = "PANTILE_NUM_THREADS"


class ThreadPool:
    """The loaded pool. There is one per process, and `pool()` returns it."""

    def __init__(self, code: bytes) -> None:
        self.symbols: Mapping[str, int] = MappingProxyType(_load(code))
        self._num_threads = _default_num_threads()
        self._start()
        for name, address in self.symbols.items():
            llvm.add_symbol(name, address)

    def _start(self) -> None:
        refused = ctypes.CFUNCTYPE(ctypes.c_int32)(self.symbols["pantile_pool_init"])()
        if refused:
            raise OSError(refused, f"the thread pool could not start: {os.strerror(refused)}")
        _call_in_forked_children(self.symbols["pantile_pool_after_fork"])

    def get_num_threads(self) -> int:
        """The number of threads that a pipeline uses, including the calling one."""
        return self._num_threads

    def set_num_threads(self, count: int) -> None:
        self._num_threads = _checked_num_threads(count, "set_num_threads")

    def workers(self) -> int:
        """The number of native threads started so far. They start on demand, and never end."""
        return int(ctypes.CFUNCTYPE(ctypes.c_int64)(self.symbols["pantile_pool_workers"])())


def compile_pool() -> bytes:
    """The pool's object code for this machine, which may be cached for `pool` in later processes."""
    # The text is already optimal, and optimizing it would triple the compile time.
    return object_code(pool_ir(llvm.get_process_triple()), 0)


_pool: ThreadPool | None = None
_pool_lock = Lock()


def pool(compiled: Callable[[], bytes] = compile_pool) -> ThreadPool:
    """The process's pool, loaded on the first call from the result of `compiled`; later calls ignore it."""
    global _pool
    if _pool is None:
        with _pool_lock:
            if _pool is None:
                _pool = ThreadPool(compiled())
    return _pool


def _load(code: bytes) -> dict[str, int]:
    """Link the object into this process permanently, since sleeping workers are inside its code until the process
    ends."""
    engine = loaded(code)
    addresses = {name: engine.get_function_address(name) for name in EXPORTS}
    engine.detach()
    return addresses


def _call_in_forked_children(handler: int) -> None:
    """Register libc's fork hook instead of Python's: it also covers libraries that fork on their own."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "pthread_atfork"):
        refused = libc.pthread_atfork(None, None, ctypes.c_void_p(handler))
    else:  # glibc links pthread_atfork statically; this is what it calls
        register = libc["__register_atfork"]
        refused = register(None, None, ctypes.c_void_p(handler), None)
    if refused:
        raise OSError(refused, f"the thread pool could not prepare for fork: {os.strerror(refused)}")


def _default_num_threads() -> int:
    """The number of threads from the environment variable, or else one per core that this process may use."""
    text = os.environ.get(THREADS_VARIABLE, "")
    if not text:
        return min(usable_cores(), MAX_THREADS)
    if not text.strip().isdecimal():
        raise ValueError(f"{THREADS_VARIABLE} must be a number of threads, not {text!r}")
    return _checked_num_threads(int(text), THREADS_VARIABLE)


def _checked_num_threads(count: int, source: str) -> int:
    if not 1 <= count <= MAX_THREADS:
        raise ValueError(f"{source} needs 1 to {MAX_THREADS} threads, not {count}")
    return count


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
    """Check a number of threads that a user has given."""
    if type(count) is not int or not 1 <= count <= MAX_THREADS:
        kind = UserError if type(count) is int else UserTypeError
        raise kind(f"the number of threads is {shown(count)}; pass an integer of 1 to {MAX_THREADS}")
    return count
