"""The time that a call takes at least on this machine: moving its bytes, or doing its operations, at the full rate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pantile as pt

from ..machine import detect
from ..machine.ceilings import Ceilings, measure
from .quiet import NOTICEABLE, busy_cores

FILE_NAME = "ceilings.json"


@dataclass(frozen=True)
class Bound:
    """Milliseconds to move the bytes, and to do the operations."""

    memory_ms: float
    arithmetic_ms: float

    @property
    def ms(self) -> float:
        """Both happen at once: the longer of the two."""
        return max(self.memory_ms, self.arithmetic_ms)

    @property
    def limit(self) -> str:
        """Which of the two it is."""
        return "memory" if self.memory_ms >= self.arithmetic_ms else "arithmetic"


def bound(pipeline: pt.Pipeline, arguments: Mapping[str, object], ceilings: Ceilings) -> Bound:
    """Of a call of the pipeline."""
    work = pipeline.work(**arguments)
    rates = {
        "fma": ceilings.fma_operations,
        "float": ceilings.fma_operations / 2,  # as many instructions, each of which does one operation
        "int": ceilings.int_operations,
    }
    arithmetic = sum(n * bits / 32 / rates[kind] for (kind, bits), n in work.operations.items())
    return Bound(1e3 * work.bytes / ceilings.copy_bytes, 1e3 * arithmetic)


def host_ceilings(threads: int) -> Ceilings:
    """Of this machine: measured when first asked for, then kept beside the compiled code."""
    folder = pt.cache.info().directory
    vector_bits = host_vector_bits()
    key = f"{detect().cpu}, {vector_bits} bits, {threads} threads"
    known = _read(folder)
    if key in known:
        return Ceilings(**known[key])
    busy = busy_cores()
    found = measure(threads, vector_bits)
    if folder is not None and (busy is None or busy <= NOTICEABLE):  # a busy machine shows less than it can do
        (folder / FILE_NAME).write_text(json.dumps({**known, key: asdict(found)}, indent=2) + "\n")
    return found


def host_vector_bits() -> int:
    """The width of vectors that code is compiled for."""
    (x,) = pt.vars("x")
    nothing = pt.Func("nothing")
    nothing[x] = 0
    return pt.Pipeline(nothing, shape=(1,)).options.target.vector_bits


def _read(folder: Path | None) -> dict[str, dict[str, float]]:
    """What was measured before; a file that is not there, or not ours, is nothing."""
    try:
        text = "" if folder is None else (folder / FILE_NAME).read_text()
        found = json.loads(text or "{}")
        return {key: asdict(Ceilings(**rates)) for key, rates in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
