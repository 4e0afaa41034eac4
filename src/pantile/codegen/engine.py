"""Links object code into this process. The code lives as long as its handle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm

from ..errors import InternalError
from ..forks import Lock, check_llvm
from ..target import host
from .compile import target_machine


class LoadedCode:
    """A kernel in memory.

    `address` is that of its function. The code stays loaded until the last reference to this object is gone.
    """

    def __init__(self, tracker: llvm.ResourceTracker, name: str) -> None:
        self._tracker = tracker
        self.address: int = tracker[name]


class _Linker:
    """An in-memory linker.

    Each kernel is linked as a library (2.7 KiB) that lives as long as the linker. Therefore, a linker is replaced after
    some kernels, and ends with the last kernel that it linked.
    """

    MOST = 64

    def __init__(self) -> None:
        self.jit = llvm.create_lljit_compiler(target_machine(host()), use_jit_link=True)
        self.linked = 0

    def link(self, library: llvm.JITLibraryBuilder) -> llvm.ResourceTracker:
        self.linked += 1
        return library.link(self.jit, f"pantile.{self.linked}")


_lock = Lock()
_linker: _Linker | None = None


def load(objects: Sequence[bytes], name: str, symbols: Mapping[str, int]) -> LoadedCode:
    """Link a kernel's object code, in one or more parts; `symbols` has the addresses of the runtime's functions."""
    global _linker
    check_llvm()
    library = llvm.JITLibraryBuilder().add_current_process().export_symbol(name)
    for code in objects:
        library.add_object_img(code)
    for symbol, address in symbols.items():
        library.import_symbol(symbol, address)
    with _lock:
        if _linker is None or _linker.linked >= _Linker.MOST:
            _linker = _Linker()
        try:
            return LoadedCode(_linker.link(library), name)
        except RuntimeError as error:
            raise InternalError(f"generated code does not link: {error}") from None
