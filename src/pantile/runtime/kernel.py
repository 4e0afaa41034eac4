"""A compiled kernel: from object code to a function of an argument block."""

from __future__ import annotations

import ctypes
import itertools
import json
from collections.abc import Callable, Mapping, Sequence

from ..codegen.engine import load
from ..dataclass import dataclass
from ..errors import RunError
from .threads import OUT_OF_MEMORY, shared_pool

Report = ctypes.c_int64 * 8
_Function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64)  # releases the GIL while it runs
_ACTIONS = {1: "read", 2: "written"}


@dataclass(frozen=True)
class ObjectCode:
    """The result of compiling: the code in one or more parts, the name of its function, and the buffers whose
    out-of-bounds accesses it reports, in order, if it `reports` any."""

    symbol: str
    buffers: tuple[str, ...]
    reports: bool
    code: tuple[bytes, ...]

    def to_bytes(self) -> bytes:
        head = json.dumps([self.symbol, self.buffers, self.reports, [len(part) for part in self.code]])
        return b"".join([head.encode(), b"\n", *self.code])

    @staticmethod
    def from_bytes(data: bytes) -> ObjectCode:
        head, code = data.split(b"\n", 1)
        symbol, buffers, reports, lengths = json.loads(head)
        ends = itertools.accumulate(lengths)
        parts = tuple(code[end - length : end] for length, end in zip(lengths, ends, strict=True))
        return ObjectCode(symbol, tuple(buffers), reports, parts)


class LinkedKernel:
    """Code linked into this process. It stays loaded as long as this object lives."""

    def __init__(self, compiled: ObjectCode) -> None:
        self.buffers, self.reports = compiled.buffers, compiled.reports
        self._code = load(compiled.code, compiled.symbol, shared_pool().symbols)
        self.address = self._code.address
        # (argument block, number of threads) -> 0, or an error code (see `failure`).
        self.function: Callable[[bytes, int], int] = _Function(self._code.address)


def out_of_memory() -> RunError:
    """The error for a failed allocation of memory."""
    return RunError("out of memory: the intermediate values of this pipeline do not fit")


def failure(code: int, report: Sequence[int], buffers: Sequence[str], labels: Mapping[str, str]) -> RunError:
    """The error for a nonzero exit code. `labels` describe buffers."""
    if code == OUT_OF_MEMORY:
        return out_of_memory()
    action, number, index, low, high = report[:5]
    name = buffers[number]
    return RunError(
        f"{labels.get(name, name)} is {_ACTIONS[action]} at element {index} of its memory, which has elements "
        f"{low} .. {high}; if a pt.within promised otherwise, the promise does not hold"
    )
