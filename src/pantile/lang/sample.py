"""`sample`: a picture at places between its pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import UserError, UserTypeError, shown
from ..expr.build import expr
from ..expr.nodes import Expr, ExprLike
from ..expr.types import FLOAT32
from .boundary import domain_of, nearest
from .func import Func, Values
from .inputs import Input
from .math import cast, clamp, floor

_FAR = float(1 << 30)  # the farthest place, so that the indices of pixels around it fit int32
_Weights = Callable[[Expr], tuple[Expr, ...]]


def sample(source: Input | Func, y: ExprLike, x: ExprLike, *rest: ExprLike, method: str = "bilinear") -> Expr:
    """`source` at the place (y, x) between its pixels, which lie at whole numbers; `rest` are indices of further axes.

        turned[y, x, c] = pt.sample(img, cy + s*(x - cx), cx + c*(x - cx), c)

    "bilinear" weighs the 4 pixels around; "bicubic" the 16 around, by Keys' cubic convolution with a = -1/2. Beyond
    its ends an Input, and a Func that states its domain, has its nearest pixel, as `pt.edge` has; another boundary
    condition is written as such: `pt.sample(pt.constant(img, 0), y, x)`. The result is a float.
    """
    if method not in _METHODS:
        raise UserError(f"pt.sample has no method {shown(method)}; write method='bilinear' or method='bicubic'")
    _check(source, 2 + len(rest))
    first, weights = _METHODS[method]
    (row, down), (column, across) = (_place(v, weights) for v in (y, x))
    columns = [_index(source, 1, column + (first + j)) for j in range(len(across))]
    lines = []
    for i in range(len(down)):
        index = _index(source, 0, row + (first + i))
        lines.append(_weighted_sum(across, [_pixel(source, index, k, *rest) for k in columns]))
    return _weighted_sum(down, lines)


def _check(source: Any, rank: int) -> None:
    if not isinstance(source, (Input, Func)):
        raise UserTypeError(f"pt.sample reads an Input or a Func, not {shown(source)}; pass it without an index")
    if isinstance(source, Func) and not source.defined:
        raise UserError(f"{source} is sampled before it is defined; define it first, like {source.name}[y, x] = ...")
    if source.ndim != rank:
        rest = ", ".join(["y", "x", *source.dims[2:]])
        raise UserError(
            f"{source} has {source.ndim} dimensions but is sampled at {rank} indices; write pt.sample({source.name}, "
            f"{rest})"
        )


def _index(source: Input | Func, axis: int, index: Expr) -> Expr:
    """The index of a pixel, clamped to the bounds of the source if these are known."""
    known = isinstance(source, Input) or source.domain is not None
    return nearest(index, *domain_of("sample", source)[axis]) if known else index


def _place(value: ExprLike, weights: _Weights) -> tuple[Expr, tuple[Expr, ...]]:
    """The pixel at or before a place, and the weights of those around it."""
    e = expr(value)
    place = e if e.dtype.is_float else cast(FLOAT32, e)
    below = floor(place)
    return cast("int32", clamp(below, -_FAR, _FAR)), weights(place - below)


def _pixel(source: Input | Func, *indices: ExprLike) -> Expr:
    value = source[indices]
    if isinstance(value, Values):
        value.as_expr()
    return value if value.dtype.is_float else cast(FLOAT32, value)


def _weighted_sum(weights: Sequence[Expr], values: Sequence[Expr]) -> Expr:
    total = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total = total + weight * value
    return total


def _bilinear(t: Expr) -> tuple[Expr, ...]:
    return 1 - t, t


def _bicubic(t: Expr) -> tuple[Expr, ...]:
    """The weights of Keys' cubic convolution (1981) with a = -1/2, which is exact for polynomials of degree two."""
    return (
        ((-0.5 * t + 1.0) * t - 0.5) * t,
        (1.5 * t - 2.5) * t * t + 1.0,
        ((-1.5 * t + 2.0) * t + 0.5) * t,
        (0.5 * t - 0.5) * t * t,
    )


# The offset of the first pixel from the one at or before the place, and the weights of the pixels from there on.
_METHODS: dict[str, tuple[int, _Weights]] = {"bilinear": (0, _bilinear), "bicubic": (-1, _bicubic)}
