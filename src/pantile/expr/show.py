"""Expressions as people would write them."""

from __future__ import annotations

from .nodes import Bits, Broadcast, Cast, Const, Expr, Load, Op, Ramp, Read, Reduce, Shuffle, Var
from .types import INDEX, INT32

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
    return _Writer(as_written=False).text(e)


def as_written(e: Expr) -> str:
    """The same without the casts by which a graph tells indices from data: as the user wrote it."""
    return _Writer(as_written=True).text(e)


class _Writer:
    def __init__(self, as_written: bool) -> None:
        self.as_written = as_written

    def text(self, e: Expr) -> str:
        return self.show(e)[0]

    def show(self, e: Expr) -> tuple[str, int]:
        """With how tightly it binds."""
        if isinstance(e, Const):
            text = _number(e)
            return text, _ATOM if not text.startswith("-") else 7
        if isinstance(e, Var):
            return e.name, _ATOM
        if isinstance(e, Op):
            return self.operation(e)
        if self.as_written and isinstance(e, Cast) and _is_silent(e):
            return self.show(e.value)
        return self.other(e), _ATOM

    def operation(self, e: Op) -> tuple[str, int]:
        if e.op in _INFIX:
            symbol, level = _INFIX[e.op]
            left, right = e.args
            if e.op == "add" and isinstance(right, Const) and not right.dtype.is_bool and right.value < 0:
                return f"{self.wrap(left, level)} - {_number(Const(right.dtype, 1, -right.value))}", level
            space = "" if level >= 7 else " "
            return f"{self.wrap(left, level)}{space}{symbol}{space}{self.wrap(right, level + 1)}", level
        if e.op in _PREFIX:
            return f"{_PREFIX[e.op]}{self.wrap(e.args[0], 8)}", 8
        return f"{e.op}({self.list(e.args)})", _ATOM

    def wrap(self, e: Expr, level: int) -> str:
        text, own = self.show(e)
        return text if own >= level else f"({text})"

    def other(self, e: Expr) -> str:
        if isinstance(e, Cast):
            return f"{e.dtype}({self.text(e.value)})"
        if isinstance(e, Bits):
            return f"bits_{e.dtype}({self.text(e.value)})"
        if isinstance(e, Read):
            suffix = f".{e.which}" if getattr(e.source, "arity", 1) > 1 else ""
            return f"{e.source.name}{suffix}[{self.list(e.indices)}]"
        if isinstance(e, Reduce):
            return f"{e.kind}({self.text(e.value)}, over={e.domain})"
        if isinstance(e, Load):
            mask = f" if {self.text(e.mask)}" if e.mask is not None else ""
            return f"{e.buffer}[{self.list(e.indices)}]{mask}"
        if isinstance(e, Ramp):
            return f"ramp({self.text(e.base)}, {self.text(e.stride)}, {e.lanes})"
        if isinstance(e, Broadcast):
            return f"x{e.lanes}({self.text(e.value)})"
        if isinstance(e, Shuffle):
            return f"shuffle({self.list(e.vectors)}, {list(e.order)})"
        return f"<{type(e).__name__}>"

    def list(self, items: tuple[Expr, ...]) -> str:
        return ", ".join([self.text(i) for i in items])


def _number(e: Const) -> str:
    if e.dtype.is_float:
        return f"{e.value:.9g}" if float(f"{e.value:.9g}") == e.value else repr(e.value)
    return str(e.value)


def _is_silent(e: Cast) -> bool:
    """From data to an index, or of a coordinate to the type that it has for users."""
    return e.dtype is INDEX or e.value.dtype is INDEX and e.dtype is INT32
