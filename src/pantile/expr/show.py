"""Expressions as people would write them, and no longer than people would read."""

from __future__ import annotations

from collections.abc import Callable

from .nodes import Bits, Broadcast, Cast, Const, Expr, FromLane, Load, Op, Ramp, Read, Reduce, Shuffle, Var
from .types import INDEX, INT32

# operator, precedence; higher binds tighter (Python's order)
_INFIX = {
    "or": ("|", 2), "xor": ("^", 3), "and": ("&", 4), "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1),
    "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "shl": ("<<", 5), "shr": (">>", 5), "add": ("+", 6),
    "sub": ("-", 6), "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "mod": ("%", 7),
}  # fmt: skip
_PREFIX = {"neg": "-", "not": "~"}
_ATOM = 9
_LONGEST = 20_000  # characters: written out, what an expression shares may take any number

_Part = str | tuple[Expr, int]  # an operand is put in parentheses unless it binds at least as tight as the number


def show(e: Expr) -> str:
    """One line of text; fully parenthesised only where Python's precedence needs it. What is too long ends in dots."""
    return _text(e, lambda _: False)


def as_written(e: Expr) -> str:
    """The same without the casts by which a graph tells indices from data: as the user wrote it."""
    return _text(e, _is_silent)


def _text(e: Expr, left_out: Callable[[Expr], bool]) -> str:
    text: list[str] = []
    size = 0
    stack: list[_Part] = [(e, 0)]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            text.append(part)
            size += len(part)
            if size > _LONGEST:
                return "".join(text)[:_LONGEST] + "..."
            continue
        node, level = part
        if isinstance(node, Cast) and left_out(node):
            stack.append((node.value, level))
            continue
        parts, own = _parts(node)
        stack += reversed(parts if own >= level else ["(", *parts, ")"])
    return "".join(text)


def _parts(e: Expr) -> tuple[list[_Part], int]:
    """What a node is written with, and how tight it binds."""
    if isinstance(e, Const):
        text = _number(e)
        return [text], _ATOM if not text.startswith("-") else 7
    if isinstance(e, Var):
        return [e.name], _ATOM
    if isinstance(e, Op):
        return _op(e)
    return _other(e), _ATOM


def _number(e: Const) -> str:
    if e.dtype.is_float:
        return f"{e.value:.9g}" if float(f"{e.value:.9g}") == e.value else repr(e.value)
    return str(e.value)


def _is_silent(e: Expr) -> bool:
    """From data to an index, or of a coordinate to the type that it has for users."""
    return isinstance(e, Cast) and (e.dtype is INDEX or e.value.dtype is INDEX and e.dtype is INT32)


def _op(e: Op) -> tuple[list[_Part], int]:
    if e.op in _INFIX:
        symbol, level = _INFIX[e.op]
        left, right = e.args
        if e.op == "add" and isinstance(right, Const) and not right.dtype.is_bool and right.value < 0:
            return [(left, level), f" - {_number(Const(right.dtype, 1, -right.value))}"], level
        space = "" if level >= 7 else " "
        return [(left, level), f"{space}{symbol}{space}", (right, level + 1)], level
    if e.op in _PREFIX:
        return [_PREFIX[e.op], (e.args[0], 8)], 8
    return [f"{e.op}(", *_list(e.args), ")"], _ATOM


def _other(e: Expr) -> list[_Part]:
    if isinstance(e, Cast):
        return [f"{e.dtype}(", (e.value, 0), ")"]
    if isinstance(e, Bits):
        return [f"bits_{e.dtype}(", (e.value, 0), ")"]
    if isinstance(e, Read):
        suffix = f".{e.which}" if getattr(e.source, "arity", 1) > 1 else ""
        return [f"{e.source.name}{suffix}[", *_list(e.indices), "]"]
    if isinstance(e, Reduce):
        return [f"{e.kind}(", (e.value, 0), f", over={e.domain})"]
    if isinstance(e, Load):
        mask: list[_Part] = [] if e.mask is None else [" if ", (e.mask, 0)]
        return [f"{e.buffer}[", *_list(e.indices), "]", *mask]
    if isinstance(e, Ramp):
        return ["ramp(", *_list((e.base, e.stride)), f", {e.lanes})"]
    if isinstance(e, Broadcast):
        return [f"x{e.lanes}(", (e.value, 0), ")"]
    if isinstance(e, Shuffle):
        return ["shuffle(", *_list(e.vectors), f", {list(e.order)})"]
    if isinstance(e, FromLane):
        return ["from_lane(", *_list((e.lane, e.value)), ")"]
    return [f"<{type(e).__name__}>"]


def _list(items: tuple[Expr, ...]) -> list[_Part]:
    parts: list[_Part] = []
    for i in items:
        parts += [", ", (i, 0)] if parts else [(i, 0)]
    return parts
