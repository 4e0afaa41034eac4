"""The closure of a kernel: one slot per captured value, in order of first use."""

from __future__ import annotations

from collections.abc import Iterable

from ..dataclass import dataclass
from ..errors import InternalError

SLOT = 8


@dataclass(frozen=True)
class ClosureSlot:
    """A slot of a closure: the value's name in the kernel, its LLVM type, and its byte offset."""

    name: str
    type_: str
    byte: int


class Closure:
    """The frame of a kernel's function: the values that its code uses, of those that the kernel captures."""

    def __init__(self, kernel: str, captures: Iterable[str]) -> None:
        self._kernel = kernel
        self._captures = frozenset(captures)
        self.slots: list[ClosureSlot] = []
        self.size = 0

    def place(self, name: str, type_: str) -> int:
        if name not in self._captures:
            raise InternalError(f"{self._kernel} uses {name}, which it does not capture")
        byte = self.size
        self.slots.append(ClosureSlot(name, type_, byte))
        self.size += _room(type_)
        return byte


def _room(type_: str) -> int:
    """The size of a slot: enough for any scalar, or for the lanes of a vector of the widest type."""
    return SLOT * (int(type_[1:].split(" ")[0]) if type_.startswith("<") else 1)
