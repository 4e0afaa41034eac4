"""Boundary conditions: a Func that is defined everywhere, from an Input or from a Func with a stated domain.

For a row a b c d, three pixels beyond its ends:

    edge      a a a | a b c d | d d d
    reflect   c b a | a b c d | d c b      NumPy's 'symmetric': the edge pixel is repeated
    mirror    d c b | a b c d | c b a      NumPy's 'reflect': the edge pixel is not repeated
    wrap      b c d | a b c d | a b c
    constant  v v v | a b c d | v v v

All of them are right at any distance. `axes` limits a condition to some axes; indices of the others are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import UserError, UserTypeError
from ..expr.build import expr, logical_and, select
from ..expr.nodes import Expr, ExprLike, const
from ..expr.types import INT32
from ..graph.names import derived
from .func import Bounds, Func, Values
from .inputs import Input
from .math import clamp, minimum, within
from .variables import Var

# index, min, extent -> the index of the pixel to read
_Rule = Callable[[Expr, Expr, Expr], Expr]


def edge(source: Input | Func, axes: Sequence[int] | None = None) -> Func:
    """The nearest pixel inside: a a a | a b c d | d d d."""
    return _extended("edge", source, axes, nearest)


def reflect(source: Input | Func, axes: Sequence[int] | None = None) -> Func:
    """Reflected, the edge pixel repeated: c b a | a b c d | d c b (NumPy's 'symmetric')."""
    return _extended("reflect", source, axes, _reflected)


def mirror(source: Input | Func, axes: Sequence[int] | None = None) -> Func:
    """Reflected about the edge pixel, which is not repeated: d c b | a b c d | c b a (NumPy's 'reflect')."""
    return _extended("mirror", source, axes, _mirrored)


def wrap(source: Input | Func, axes: Sequence[int] | None = None) -> Func:
    """Periodic: b c d | a b c d | a b c."""
    return _extended("wrap", source, axes, _wrapped)


def constant(source: Input | Func, value: ExprLike, axes: Sequence[int] | None = None) -> Func:
    """`value` outside (one per value of a multi-valued Func): v v v | a b c d | v v v."""
    bounds, chosen = domain_of("constant", source), _axes("constant", source, axes)
    result, place = _begin("constant", source)
    inside = logical_and(*(_inside(place[k], *bounds[k]) for k in chosen))
    read = source[tuple(nearest(v, *bounds[k]) if k in chosen else v for k, v in enumerate(place))]
    reads = read if isinstance(read, Values) else (read,)
    fills = tuple(value) if isinstance(value, (tuple, list)) else (value,) * len(reads)
    if len(fills) != len(reads):
        raise UserError(f"pt.constant gives {len(fills)} values to {source}, which has {len(reads)} at each point")
    result[place] = tuple(select(inside, inner, _fill(source, inner, v)) for inner, v in zip(reads, fills, strict=True))
    return result


def _fill(source: Input | Func, inner: Expr, value: Any) -> Any:
    if select(True, inner, value).dtype != inner.dtype:
        raise UserError(f"{source} holds {inner.dtype}, so pt.constant cannot fill it with {value}; cast one of them")
    return value


def _extended(kind: str, source: Input | Func, axes: Sequence[int] | None, rule: _Rule) -> Func:
    bounds, chosen = domain_of(kind, source), _axes(kind, source, axes)
    result, place = _begin(kind, source)
    result[place] = source[tuple(rule(v, *bounds[k]) if k in chosen else v for k, v in enumerate(place))]
    return result


def _begin(kind: str, source: Input | Func) -> tuple[Func, tuple[Var, ...]]:
    return Func.made(derived(source.name, kind)), tuple(Var(d) for d in source.dims)


def domain_of(kind: str, source: Any) -> Bounds:
    """The bounds of an Input, or of a Func that states its domain; raise an error for one that does not."""
    if isinstance(source, Input):
        return tuple((const(0, INT32), expr(n, INT32)) for n in source.shape)
    if not isinstance(source, Func):
        raise UserTypeError(f"pt.{kind} extends an Input or a Func, not {source!r}; pass it without an index")
    if source.domain is None or not source.defined:
        raise UserError(
            f"pt.{kind} needs to know where {source} ends; define it with a domain, like "
            f"pt.Func({source.name!r}, domain=((0, h), (0, w)))"
        )
    return source.domain


def _axes(kind: str, source: Input | Func, axes: Sequence[int] | None) -> frozenset[int]:
    chosen = tuple(range(source.ndim)) if axes is None else tuple(axes)
    for k in chosen:
        if not isinstance(k, int) or not 0 <= k < source.ndim:
            raise UserError(f"pt.{kind}: {k!r} is not an axis of {source}, which has axes 0 .. {source.ndim - 1}")
    return frozenset(chosen)


def _inside(index: Expr, low: Expr, extent: Expr) -> Expr:
    return (index >= low) & (index < low + extent)


def nearest(index: Expr, low: Expr, extent: Expr) -> Expr:
    """The index of the nearest pixel inside."""
    return clamp(index, low, low + extent - 1)


def _folded(index: Expr, low: Expr, extent: Expr, outside: Expr) -> Expr:
    """The index itself inside (so that loops over the interior need no modulus), and `outside` elsewhere."""
    return within(select(_inside(index, low, extent), index, low + outside), low, low + extent - 1)


def _reflected(index: Expr, low: Expr, extent: Expr) -> Expr:
    place = (index - low) % (2 * extent)
    return _folded(index, low, extent, minimum(place, 2 * extent - 1 - place))


def _mirrored(index: Expr, low: Expr, extent: Expr) -> Expr:
    # For a single pixel the period is 0, and x % 0 is 0: the pixel itself.
    place = (index - low) % (2 * extent - 2)
    return _folded(index, low, extent, minimum(place, 2 * extent - 2 - place))


def _wrapped(index: Expr, low: Expr, extent: Expr) -> Expr:
    return _folded(index, low, extent, (index - low) % extent)
