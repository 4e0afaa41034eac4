"""Streams: one per thread for calls with arrays of the host only, and waiting between streams."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .driver import checked

if TYPE_CHECKING:
    from .device import Device

_NO_TIMING = 2  # of an event
_NON_BLOCKING = 1  # of a stream: no synchronization with the default stream

_own = threading.local()


def own_stream(device: Device) -> int:
    """The stream of this thread on the device, whose context is current."""
    streams: dict[int, tuple[int, object]] | None = getattr(_own, "streams", None)
    if streams is None:
        streams = _own.streams = {}
    if device.ordinal not in streams:
        made = checked(device.cu.cuStreamCreate(_NON_BLOCKING))
        streams[device.ordinal] = int(made), made
    return streams[device.ordinal][0]


def wait(device: Device, stream: int, others: Iterable[int]) -> None:
    """Make further work in a stream wait for the current work of the others."""
    cu = device.cu
    for other in others:
        event = checked(cu.cuEventCreate(_NO_TIMING))
        try:
            checked(cu.cuEventRecord(event, other))
            checked(cu.cuStreamWaitEvent(stream, event, 0))
        finally:
            cu.cuEventDestroy(event)  # the driver keeps it while something waits for it
