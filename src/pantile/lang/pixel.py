"""`pixel`: all channels of a point at once.

out[y, x] = pt.pixel(r, g, b)     is     out[y, x, c] = pt.case((c == 0, r), (c == 1, g), otherwise=b)
"""

from __future__ import annotations

from typing import NoReturn

from ..errors import UserError
from ..expr.nodes import Const, Expr, ExprLike
from .indexing import NotAValue
from .math import case, unify
from .variables import Var

_CHANNEL = "c"


class Pixel(NotAValue, tuple[Expr, ...]):
    """The channels of a pixel, all of one type, by which a Func may be defined."""

    def as_expr(self) -> NoReturn:
        raise UserError(
            "pt.pixel(...) is all channels of a pixel, not a value; assign it, like out[y, x] = pt.pixel(...)"
        )

    def at(self, channel: Expr) -> Expr:
        """The value of one channel."""
        *before, last = self
        return case(*((channel == k, value) for k, value in enumerate(before)), otherwise=last)


def pixel(*channels: ExprLike) -> Pixel:
    """All channels of a pixel at once: `out[y, x] = pt.pixel(r, g, b)` defines a Func of three dims, y, x and c.

    The channels get one type, as the branches of `pt.select` do.
    """
    if not channels:
        raise UserError("pt.pixel is given no channels; write one expression for each, like pt.pixel(r, g, b)")
    if len(channels) == 1 and isinstance(channels[0], (tuple, list)):
        raise UserError("pt.pixel takes channels one by one; write pt.pixel(*channels)")
    return Pixel(unify(*channels))


def channel_coordinate(dims: tuple[str, ...]) -> Var:
    """The coordinate that numbers channels: c, or a longer name if that is taken."""
    name = _CHANNEL
    while name in dims:
        name += _CHANNEL
    return Var(name)


def check_channel(label: str, channels: int, index: Expr) -> None:
    """Refuse to read a channel that does not exist."""
    if isinstance(index, Const) and not 0 <= index.value < channels:
        raise UserError(f"{label} has channels 0 .. {channels - 1}, but channel {index.value} of it is read")
