"""How much of the box around its reads a star touches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import pantile as pt
from pantile.cost_model.linear_forms import LinearForm
from pantile.cost_model.reads import star
from pantile.machine import named


def reads(*places: tuple[int, int, int]) -> Sequence[tuple[LinearForm, ...]]:
    return [tuple(LinearForm(((v, 1.0),), k, k) for v, k in zip("zyx", p, strict=True)) for p in places]


CROSS = reads((0, 0, 0), (-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1))


@pytest.mark.parametrize(("rows", "filled"), [(1, 5 / 9), (2, 12 / 16), (16, (18 * 18 - 4) / (18 * 18))])
def test_a_larger_tile_fills_more_of_its_box(rows: int, filled: float) -> None:
    found = star(CROSS)
    assert found is not None
    assert found.filled({"z": rows, "y": rows, "x": 64}) == pytest.approx(filled)


def test_a_tile_of_few_rows_along_one_axis() -> None:
    found = star(CROSS)
    assert found is not None
    assert found.filled({"y": 10, "x": 64}) == pytest.approx((10 * 3 + 2) / (12 * 3))


BOXES = ([(0, 0, 0)], [(0, 0, 0), (0, 1, 0), (0, 2, 5)], [(a, b, 0) for a in (0, 1) for b in (0, 3)])


@pytest.mark.parametrize("places", BOXES)
def test_rows_and_boxes_are_no_stars(places: list[tuple[int, int, int]]) -> None:
    assert star(reads(*places)) is None


def test_planes_that_a_star_does_not_touch_need_no_room() -> None:
    """Of five planes of five rows, nine rows stay in the first cache, where twenty-five would not."""
    z, y, x = pt.vars("z y x")
    img = pt.Input("img", "float64", ndim=3)

    def traffic(corners: bool) -> float:
        out = pt.Func("out")
        places = [(a, b) for a in range(5) for b in range(5) if corners or 2 in (a, b)]
        out[z, y, x] = sum(img[z + a, y + b, x] for a, b in places[1:]) + img[z + places[0][0], y + places[0][1], x]
        p = pt.Pipeline(out, shape=tuple(n - 4 for n in img.shape), algebra=False)
        rows = pt.Schedule(pt.on("out").vectorize("x", 2))
        return p.with_schedule(rows, machine=named("neoverse-n1")).predict(img=(60, 60, 300), num_threads=1).bytes[0]

    assert traffic(corners=False) < 0.7 * traffic(corners=True)
