"""Random products by warpgroups, of random sizes and in random tiles: compares the simulator with the reference."""

from __future__ import annotations

import numpy as np
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.target.wgmma import COLUMNS

from ..long import LONG
from ..matrices import Product, Warpgroups, by_warpgroups
from .isolate import isolated, isolated_together

CUTS = st.builds(
    Warpgroups,
    columns=st.sampled_from(COLUMNS[:8]),
    terms=st.sampled_from((16, 32, 48)),
    rows=st.integers(1, 2),
    beside=st.integers(1, 2),
    ahead=st.integers(0, 3),
    padding=st.integers(0, 2),
)
PRODUCTS = st.builds(Product, st.just("float16"), st.just("float32"), a_by_rows=st.booleans(), b_by_rows=st.booleans())
SIZES = st.tuples(st.integers(1, 150), st.integers(1, 150), st.integers(1, 120))


def test_random_products() -> None:
    @seed(0)
    @settings(max_examples=40 if LONG else 6)
    @given(PRODUCTS, CUTS, SIZES, st.booleans())
    def run(case: Product, cut: Warpgroups, size: tuple[int, int, int], is_whole: bool) -> None:
        isolated(lambda: check(case, cut, size, is_whole))

    isolated_together(run)


def check(case: Product, cut: Warpgroups, size: tuple[int, int, int], is_whole: bool) -> None:
    if is_whole:  # whole blocks and slices
        size = 2 * cut.tile[0], cut.tile[1], 3 * cut.terms
    try:
        p = case.pipeline().with_schedule(by_warpgroups(case, cut))
        arrays = case.random(*size)
        found = p(**arrays)
    except UserError as error:
        if "bytes of memory that its threads share" not in str(error):
            raise
        return
    np.testing.assert_array_equal(found, p.reference(**arrays))
