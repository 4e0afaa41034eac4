"""Two colour pictures blended by a mask, over pyramids of six levels (Burt and Adelson, 1983).

Only the pictures are extended beyond their edges, by repeating them; levels of the pyramids are computed beyond theirs.
OpenCV's `pyrDown` and `pyrUp` extend every level, and so differ close to the edges: 160 pixels on every side are not
compared.
"""

from __future__ import annotations

from typing import Any

import pantile as pt

from ..app import BYTES_GREY, PIXELS, Photo
from .filter import colours, everyday

LEVELS = 6  # of details; what is left is the seventh


def build() -> pt.Pipeline:
    """a, b: [y, x, c], mask: [y, x], 255 where a is seen -> [y, x, c]."""
    y, x, c = pt.vars("y x c")
    a, b = pt.Input("a", "uint8", ndim=3), pt.Input("b", "uint8", ndim=3)
    mask = pt.Input("mask", "uint8", ndim=2)
    first, second, weight = pt.Func("a_0"), pt.Func("b_0"), pt.Func("mask_0")
    first[y, x, c] = pt.cast("float32", pt.edge(a, axes=(0, 1))[y, x, c])
    second[y, x, c] = pt.cast("float32", pt.edge(b, axes=(0, 1))[y, x, c])
    weight[y, x] = pt.edge(mask)[y, x] / 255

    firsts, seconds, weights = _pyramid("a", first, c), _pyramid("b", second, c), _pyramid("mask", weight)
    blended = pt.Func(f"blended_{LEVELS}")
    blended[y, x, c] = pt.lerp(seconds[-1][y, x, c], firsts[-1][y, x, c], weights[-1][y, x])
    for n in reversed(range(LEVELS)):
        details = [
            fine[n][y, x, c] - _doubled(f"{name}_up_{n}", fine[n + 1])[y, x, c]
            for name, fine in (("a", firsts), ("b", seconds))
        ]
        coarse, blended = _doubled(f"blended_up_{n}", blended), pt.Func(f"blended_{n}")
        blended[y, x, c] = coarse[y, x, c] + pt.lerp(details[1], details[0], weights[n][y, x])
    out = pt.Func("out")
    out[y, x, c] = pt.rounding_cast("uint8", pt.clamp(blended[y, x, c], 0, 255))
    return pt.Pipeline(out, shape=a.shape, name="blend")


def _pyramid(name: str, finest: pt.Func, *c: pt.Var) -> list[pt.Func]:
    """Each level half as large as the one before; with channels or without."""
    y, x = pt.vars("y x")
    place = (y, x, *c)
    levels = [finest]
    for n in range(1, LEVELS + 1):
        down, level = pt.Func(f"{name}_down_{n}"), pt.Func(f"{name}_{n}")
        down[place] = _smooth([_at(levels[-1], 2 * y + k, x, *c) for k in range(-2, 3)])
        level[place] = _smooth([_at(down, y, 2 * x + k, *c) for k in range(-2, 3)])
        levels.append(level)
    return levels


def _at(f: pt.Func, *place: pt.Expr) -> Any:
    return f[place]


def _smooth(five: list[pt.Expr]) -> pt.Expr:
    return (five[0] + 4 * five[1] + 6 * five[2] + 4 * five[3] + five[4]) / 16


def _doubled(name: str, f: pt.Func) -> pt.Func:
    """Twice as large, by the same weights."""
    y, x, c = pt.vars("y x c")
    down, up = pt.Func(f"{name}_y"), pt.Func(name)
    down[y, x, c] = _between(y, [f[y // 2 + k, x, c] for k in range(-1, 2)])
    up[y, x, c] = _between(x, [down[y, x // 2 + k, c] for k in range(-1, 2)])
    return up


def _between(place: pt.Var, three: list[pt.Expr]) -> pt.Expr:
    before, here, after = three
    return pt.select(place % 2 == 0, (before + 6 * here + after) / 8, (here + after) / 2)


APPS = (
    everyday(
        "blend",
        "blend of two pictures over six-level pyramids, uint8 interleaved RGB",
        build,
        lambda h, w: {"a": colours(h, w), "b": colours(h, w), "mask": (h, w)},
        small=(400, 496),
        off_by=1,  # sums in another order round differently
        margin=160,
        photo=Photo({"a": PIXELS, "b": PIXELS, "mask": BYTES_GREY}, gives=PIXELS),
    ),
)
