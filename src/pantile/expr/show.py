"""Expressions as people would write them."""

from __future__ import annotations

from .nodes import Bits, Broadcast, Cast, Const, Expr, Load, Op, Ramp, Read, Reduce, Shuffle, Var

# operator, precedence; higher binds tighter (Python's order)
_INFIX = {
    "or": ("|", 2), "xor": ("^", 3), "and": ("&", 4), "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1),
    "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "shl": ("<<", 5), "shr": (">>", 5), "add": ("+", 6),
    "sub": ("-", 6), "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "mod": ("%", 7),
}  # fmt: skip
_PREFIX = {"neg": "-", "not": "~"}
_ATOM = 9


def show(e: Expr) -> str:
    """One line of text; fully parenthesised only where Python's precedence needs it."""
    return _show(e)[0]


def _show(e: Expr) -> tuple[str, int]:
    if isinstance(e, Const):
        text = _number(e)
        return text, _ATOM if not text.startswith("-") else 7
    if isinstance(e, Var):
        return e.name, _ATOM
    if isinstance(e, Op):
        return _show_op(e)
    return _show_other(e), _ATOM


def _number(e: Const) -> str:
    if e.dtype.is_float:
        return f"{e.value:.9g}" if float(f"{e.value:.9g}") == e.value else repr(e.value)
    return str(e.value)


def _show_op(e: Op) -> tuple[str, int]:
    if e.op in _INFIX:
        symbol, level = _INFIX[e.op]
        left, right = e.args
        if e.op == "add" and isinstance(right, Const) and not right.dtype.is_bool and right.value < 0:
            return f"{_wrap(left, level)} - {_number(Const(right.dtype, 1, -right.value))}", level
        space = "" if level >= 7 else " "
        return f"{_wrap(left, level)}{space}{symbol}{space}{_wrap(right, level + 1)}", level
    if e.op in _PREFIX:
        return f"{_PREFIX[e.op]}{_wrap(e.args[0], 8)}", 8
    return f"{e.op}({', '.join(show(a) for a in e.args)})", _ATOM


def _wrap(e: Expr, level: int) -> str:
    text, own = _show(e)
    return text if own >= level else f"({text})"


def _show_other(e: Expr) -> str:
    if isinstance(e, Cast):
        return f"{e.dtype}({show(e.value)})"
    if isinstance(e, Bits):
        return f"bits_{e.dtype}({show(e.value)})"
    if isinstance(e, Read):
        suffix = f".{e.which}" if getattr(e.source, "arity", 1) > 1 else ""
        return f"{e.source.name}{suffix}[{_list(e.indices)}]"
    if isinstance(e, Reduce):
        return f"{e.kind}({show(e.value)}, over={e.domain})"
    if isinstance(e, Load):
        mask = f" if {show(e.mask)}" if e.mask is not None else ""
        return f"{e.buffer}[{_list(e.indices)}]{mask}"
    if isinstance(e, Ramp):
        return f"ramp({show(e.base)}, {show(e.stride)}, {e.lanes})"
    if isinstance(e, Broadcast):
        return f"x{e.lanes}({show(e.value)})"
    if isinstance(e, Shuffle):
        return f"shuffle({_list(e.vectors)}, {list(e.order)})"
    return f"<{type(e).__name__}>"


def _list(items: tuple[Expr, ...]) -> str:
    return ", ".join(show(i) for i in items)
