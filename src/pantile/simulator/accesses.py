"""Memory accesses of threads: the interface of all memories, failure reports, and how memory represents values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import RunError
from ..expr.types import DType
from ..reference.operations import from_bfloat_bits, held, to_bfloat_bits
from .active import Active, Array, Touch
from .races import Clash, Epochs


class Around(Protocol):
    """The part of a batch of blocks that memories need."""

    kernel_name: str
    first_block: int
    epoch: int  # the epoch of the last barrier
    epochs: Epochs  # of each block, and of each warp in it
    last_entries: Entries | None


class Entries(NamedTuple):
    """A cached result of `who` for a touch. It is valid while the batch is in the given epoch."""

    touch: Touch
    epoch: int
    found: tuple[Array, Epochs]


class ThreadAccess(NamedTuple):
    """A load or store by all active threads, each of one element or of `lanes` elements, where the mask is set."""

    element: Array
    mask: Array | None
    lanes: int
    active: Active

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape over all lanes of all threads."""
        return self.active.mask.shape if self.lanes == 1 else (*self.active.mask.shape, self.lanes)

    def touch(self) -> Touch:
        return self.active.touch(self.element, self.mask, self.lanes)

    def first(self, wrong: Array) -> tuple[int, int, int] | None:
        """The block, thread and index of the first accessed element for which `wrong` holds."""
        chosen = self.active.lanes(self.mask, self.lanes)
        failing = wrong if chosen is None else wrong & chosen
        if not failing.any():
            return None
        place = tuple(int(n) for n in np.argwhere(np.broadcast_to(failing, self.shape))[0])
        return place[0], place[1], int(np.broadcast_to(self.element, self.shape)[place])

    def masked(self, values: Array, t: DType) -> Array:
        """The loaded values, with 0 where the mask is not set."""
        return values if self.mask is None else np.where(self.mask, values, held(t).type(0))


class Buffer(Protocol):
    """Memory that can be loaded from and stored to."""

    def load(self, access: ThreadAccess) -> Array:
        """Load values in the representation used for computing."""

    def store(self, access: ThreadAccess, value: Array, loop: int) -> None:
        """Store values; `loop` is the number of the thread loop that stores them."""

    def combine(self, access: ThreadAccess, value: Array, name: str) -> None:
        """Combine elements with values atomically; `name` is the operation."""


def failure(around: Around, block: int, thread: int | None, message: str) -> SimulationError:
    """An error in a thread; `block` is counted from the first block of the batch."""
    return SimulationError(around.kernel_name, around.first_block + block, thread, message)


def refuse(around: Around, access: ThreadAccess, wrong: Array, message: Callable[[int], str]) -> None:
    """Raise an error for the first accessed element for which `wrong` holds, if any; `message` is given its index."""
    failing = access.first(wrong)
    if failing is not None:
        block, thread, index = failing
        raise failure(around, block, thread, message(index))


def is_outside(element: Array, elements: int) -> bool:
    """Whether some index is out of bounds."""
    return bool(element.view(f"u{element.itemsize}").max() >= elements)  # negative indices become huge as unsigned


def check_inside(around: Around, access: ThreadAccess, elements: int, done: str, memory: str) -> None:
    """Raise an error if an access is out of bounds."""
    if is_outside(access.element, elements):
        outside = (access.element < 0) | (access.element >= elements)
        refuse(around, access, outside, lambda k: f"{done} at element {k} of {memory}, where it has {elements}")


def who(around: Around, touch: Touch) -> tuple[Array, Epochs]:
    """The block of each entry, counted from the first block of the launch, and its epochs.

    The result is cached for consecutive accesses by the same threads.
    """
    last = around.last_entries
    if last is not None and last.epoch == around.epoch and last.touch.thread is touch.thread:
        return last.found
    found = touch.block + around.first_block, around.epochs.of(touch.block, touch.thread)
    around.last_entries = Entries(touch, around.epoch, found)
    return found


def race(around: Around, name: str, touch: Touch, clash: Clash, verb: str) -> SimulationError:
    """The error for a race, which names the racing entry of the touch."""
    block, thread = int(touch.block[clash.entry]), int(touch.thread[clash.entry])
    done = f"{verb} {name} at element {touch.element[clash.entry]}, {clash.before} by"
    if clash.block != around.first_block + block:
        other = "several blocks" if clash.block < 0 else f"block {clash.block}"
        return failure(around, block, thread, f"{done} {other} in the same launch")
    other = "several threads" if clash.thread is None else f"thread {clash.thread}"
    return failure(around, block, thread, f"{done} {other} without a barrier in between")


def _exchange(data: Array, place: Any, values: Array) -> None:
    data[place] = values


# Atomic operations on elements of an array.
COMBINE: dict[str, Callable[[Array, Any, Array], None]] = {
    "add": np.add.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
    "and": np.bitwise_and.at,
    "or": np.bitwise_or.at,
    "xor": np.bitwise_xor.at,
    "xchg": _exchange,
}


def bits(values: Array) -> Array:
    """The values as integers, to be compared bit by bit."""
    return np.ascontiguousarray(values).view(f"uint{8 * values.itemsize}")


def from_memory(values: Array, t: DType) -> Array:
    return from_bfloat_bits(values) if t.kind == "bfloat" else values


def to_memory(values: Array, t: DType) -> Array:
    return to_bfloat_bits(values) if t.kind == "bfloat" else values


class SimulationError(RunError):
    """A kernel makes an invalid access, has a data race, or waits for threads that never arrive."""

    def __init__(self, kernel: str, block: int, thread: int | None, message: str) -> None:
        self.kernel, self.block, self.thread, self.message = kernel, block, thread, message
        who = f"kernel {kernel}, block {block}" + ("" if thread is None else f", thread {thread}")
        super().__init__(f"{who}: {message}")

    def __reduce__(self) -> tuple[type[SimulationError], tuple[str, int, int | None, str]]:
        return SimulationError, (self.kernel, self.block, self.thread, self.message)
