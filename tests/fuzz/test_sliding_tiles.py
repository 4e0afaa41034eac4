"""Chains of stages that slide down tiles of any height inside strips of any height, compared with the reference.

Neither windows nor strips need be multiples of a tile: first steps are parts of one, and last steps are shorter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import pantile as pt

Y, X = pt.vars("y x")


@dataclass(frozen=True)
class Step:
    """A stage that adds up rows of the previous one, at y * scale + each element of `reach`."""

    reach: tuple[int, ...]
    scale: int
    stored: str  # "strip", "root", or "tile", in which case it does not slide


steps = st.builds(
    Step,
    st.sets(st.integers(-2, 3), min_size=1, max_size=3).map(lambda rows: tuple(sorted(rows))),
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from(["strip", "strip", "strip", "root", "tile"]),
)


@given(
    chain=st.lists(steps, min_size=1, max_size=3),
    strip=st.integers(2, 13),
    tile=st.integers(1, 7),
    tail=st.sampled_from(["guard", "guard", "shift", "auto"]),
    bounded=st.booleans(),
    rows=st.integers(1, 40),
)
def test_results(chain: list[Step], strip: int, tile: int, tail: str, bounded: bool, rows: int) -> None:
    p, least = pipeline(chain, bounded)
    order = {"strip": ("out", "strip"), "tile": ("out", "tile")}
    stages = []
    for k, step in enumerate(chain):
        chosen = pt.on(f"f{k}").compute_at("out", "tile")
        stages.append(chosen.store_root() if step.stored == "root" else chosen.store_at(*order[step.stored]))
    host = pt.on("out").split("y", "strip", "rows", strip).split("rows", "tile", "row", min(tile, strip), tail)
    scheduled = p.with_schedule(pt.Schedule(host, *stages)).with_options(debug=True)
    img = np.random.default_rng(rows).integers(0, 99, (rows + least, 3)).astype(np.float32)
    np.testing.assert_array_equal(scheduled(img=img), p.reference(img=img))


def pipeline(chain: list[Step], bounded: bool) -> tuple[pt.Pipeline, int]:
    """A pipeline of the stages f0, f1, ... and `out`, which reads one row of the last. Without boundary conditions,
    only existing rows of the input are read. Also return how many rows the input must have in addition to `rows`."""
    img = pt.Input("img", "float32", ndim=2)
    below: pt.Input | pt.Func = pt.edge(img, axes=[0]) if bounded else img
    low, factor, high = 0, 1, 0  # the range of input rows that row 0 of a stage reads, and the input rows per row
    for k, step in enumerate(chain):
        f = pt.Func(f"f{k}")
        reads = [below[Y * step.scale + d, X] for d in step.reach]
        f[Y, X] = sum(reads[1:], reads[0]) + float(k)
        low, high = low + factor * step.reach[0], high + factor * step.reach[-1]
        factor *= step.scale
        below = f
    start = 0 if bounded else max(0, -(low // factor))  # the first row that can be computed
    out = pt.Func("out")
    out[Y, X] = below[Y + start, X] * 2.0
    if bounded:
        return pt.Pipeline(out, shape=(img.shape[0], img.shape[1])), 0
    height = (img.shape[0] - 1 - max(high, 0)) // factor + 1 - start
    return pt.Pipeline(out, shape=(height, img.shape[1])), max(high, 0) + factor * (start + 40)
