"""Object code in, callable addresses out: code is linked into this process and lives as long as its handle."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import llvmlite.binding as llvm

from ..errors import InternalError
from ..forks import Lock, check_llvm
from .compile import target_machine
from .target import host


class LoadedCode:
    """A kernel in memory. `address` is that of its function; both end with the last reference to this object."""

    def __init__(self, tracker: llvm.ResourceTracker, name: str) -> None:
        self._tracker = tracker
        self.address: int = tracker[name]


class _Linker:
    """The process's one in-memory linker."""

    def __init__(self) -> None:
        self.jit = llvm.create_lljit_compiler(target_machine(host()), use_jit_link=True)
        self.numbers = itertools.count()


_lock = Lock()
_linker: _Linker | None = None


def load(object_code: bytes, name: str, symbols: Mapping[str, int]) -> LoadedCode:
    """Link a kernel's object code; `symbols` are the addresses of the runtime functions it calls."""
    global _linker
    check_llvm()
    with _lock:
        if _linker is None:
            _linker = _Linker()
        library = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process().export_symbol(name)
        for symbol, address in symbols.items():
            library.import_symbol(symbol, address)
        try:
            return LoadedCode(library.link(_linker.jit, f"pantile.{next(_linker.numbers)}"), name)
        except RuntimeError as error:
            raise InternalError(f"generated code does not link: {error}") from None
