"""Values that somebody may pass by mistake, or to see what happens: no parameter may fall over any of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import TypeVar

import numpy as np

import pantile as pt

T = TypeVar("T")

NAN, INF = float("nan"), float("inf")
NUMBERS: list[object] = [
    True, False, 0, 1, -1, 2, 3, 7, 64, 1000, 2**31 - 1, 2**31, 2**50, 2**63, 2**128, 10**400, 10**5000,
    0.0, -0.0, 0.3, 1.0, -1.5, 1e-300, 1e-9, 1e-4, 1e9, 1e12, 1e18, 1e300,
    NAN, INF, -INF, 1j, Decimal(3), Decimal("NaN"), Fraction(1, 3),
    np.int32(4), np.uint64(2**64 - 1), np.float32(0.5), np.float64(NAN), np.longdouble(2), np.bool_(True),
    np.timedelta64(5, "ns"), np.ma.masked, np.array(3), np.array([1, 2]),
]  # fmt: skip
OTHERS: list[object] = [
    None, "", "dp", "none", "printed", "i7-6700", "3", "x\ny\0", b"", [], [8], {}, {"img": 3}, set(), object(), int,
    len, slice(None), (), (0,), (1,), (8, 16), (16, 8, 4), (True,), ("a",), (NAN,), (10**400,), (-1, 8),
    (np.int64(8), np.int64(8)), (None,), ((8,),), ((8, 16), (8, 16)),
]  # fmt: skip
ODD = [*NUMBERS, *OTHERS]


def assert_made_or_refused(make: Callable[[], T], file: str) -> T | None:
    """What is made; None if it is refused, which must be at a line of `file` and in a few words."""
    try:
        return make()
    except pt.UserError as error:
        refused = error
    assert refused.where.file == file
    assert len(str(refused)) < 1000
    return None
