"""Stages that tiles bring nothing to: they read whatever they read along their own rows, and no value far apart.

    out[y, x, c] = 255 - img[y, x, c]              streams
    out[y, x] = img[y - 1, x] + img[y + 1, x]      streams: the rows between are in a cache still
    out[y, x] = img[x, y]                          does not: the lines that a row touches serve the next rows
    out[c, y, x] = gray[y, x] * gain[c]            does not: a tile of gray serves all c

Computed by whole rows, they leave memory to the prefetchers, and rows start less often.
"""

from __future__ import annotations

from ...analysis.access import Access, accesses
from ..strategy import Problem


def streams(problem: Problem, name: str) -> bool:
    """Whether a stage, computed by itself, runs through all that it reads in the order of memory."""
    stage = problem.graph.stage[name]
    reads = accesses(stage, stage.pure)
    return bool(stage.dims) and not stage.updates and all(_follows(problem, name, a) for a in reads)


def _follows(problem: Problem, name: str, read: Access) -> bool:
    """Whether a read moves with every dim of the stage but its channels, and along its rows as the stage does."""
    if any(i is None for i in read.indices):
        return False
    dims = [None if i is None else i.dim for i in read.indices]
    stage = problem.graph.stage[name]
    row = stage.dims[problem.row(name)]
    along = dims[problem.row(problem.facts.source(read.buffer)) :]
    around = stage.dims[: stage.dims.index(row) + 1]
    moving = [d for d, n in zip(around, problem.facts.extents(name), strict=False) if n > 1]
    return row in along and row not in dims[: -len(along)] and set(moving) <= set(dims)
