"""Warp shuffles."""

from __future__ import annotations

import numpy as np

from ..target.gpu import WARP_SIZE
from .accesses import Around, failure
from .active import Active, Array


def from_lane(value: Array, lane: Array, active: Active, around: Around) -> Array:
    """For each active thread, the value of the lane that it names in its warp.

    All 32 threads must be active: a GPU waits for them, or moves undefined values.
    """
    mask = active.mask
    _check_whole(mask, around)
    wanted = np.broadcast_to(lane, mask.shape)
    wrong = active.first((wanted < 0) | (wanted >= WARP_SIZE))
    if wrong is not None:
        said = f"asks for the value of lane {wanted[wrong]}; a warp has lanes 0 .. {WARP_SIZE - 1}"
        raise failure(around, *wrong, said)
    first = np.arange(mask.shape[1]) // WARP_SIZE * WARP_SIZE
    source = first + np.clip(wanted, 0, WARP_SIZE - 1)
    everywhere = np.broadcast_to(value, (*mask.shape, *value.shape[2:]))
    return np.take_along_axis(everywhere, source if value.ndim == 2 else source[:, :, None], axis=1)


def _check_whole(mask: Array, around: Around) -> None:
    warps = mask.reshape(mask.shape[0], -1, WARP_SIZE)
    broken = np.argwhere(warps.any(axis=2) != warps.all(axis=2))
    if not len(broken):
        return
    block, warp = (int(n) for n in broken[0])
    present, absent = (warp * WARP_SIZE + int(np.argmax(m)) for m in (warps[block, warp], ~warps[block, warp]))
    text = f"takes part in a shuffle in which thread {absent} of its warp is not active"
    raise failure(around, block, present, text)
