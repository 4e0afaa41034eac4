"""Prints expressions as readable text of limited length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import count

from .nodes import Bits, Broadcast, Cast, Const, Expr, Instruction, Load, Op, Ramp, Read, Reduce, Shuffle, Var
from .types import INDEX, INT32
from .visit import Key, key

# operator, precedence; higher binds tighter (Python's order)
_INFIX = {
    "or": ("|", 2), "xor": ("^", 3), "and": ("&", 4), "eq": ("==", 1), "ne": ("!=", 1), "lt": ("<", 1),
    "le": ("<=", 1), "gt": (">", 1), "ge": (">=", 1), "shl": ("<<", 5), "shr": (">>", 5), "add": ("+", 6),
    "sub": ("-", 6), "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "mod": ("%", 7),
}  # fmt: skip
_PREFIX = {"neg": "-", "not": "~"}
_ATOM = 9
_LONGEST = 20_000  # characters; an expression with much sharing may be arbitrarily long when written out
_LONG, _WORTH_A_NAME = 16, 80  # characters of a subexpression that gets a name, and characters that the name must save

_Part = str | tuple[Expr, int]  # text, or an operand and the precedence below which it is put in parentheses


def show(e: Expr) -> str:
    """An expression in one line, with parentheses only where Python needs them. A text that is too long ends in
    dots."""
    return _text(e, _nothing, {})


def as_written(e: Expr) -> str:
    """An expression as the user wrote it, without the casts by which a graph distinguishes indices from data."""
    return _text(e, _is_silent, {})


class Sharing:
    """Expressions as text, with names for long common subexpressions; `lets` has these names and their texts, in order.

        before:  (a[x]*... + 1)/(2 + (a[x]*... + 1))
        after:   let e1 = a[x]*... + 1
                 e1/(2 + e1)

    With `as_written`, the casts that a graph adds are omitted. Names in `taken` are avoided. Expressions that take at
    most `short` characters together get no names.
    """

    def __init__(
        self, roots: Sequence[Expr], taken: Container[str] = (), *, as_written: bool = False, short: int = 200
    ) -> None:
        self._left_out = _is_silent if as_written else _nothing
        self._names: dict[Key, str] = {}
        self._lengths: dict[Key, int] = {}
        self.lets: list[tuple[str, str]] = []
        nodes, uses = self._nodes(roots)
        for k, node in nodes.items():
            self._lengths[k] = self._length(node)
        if sum(map(self._written, roots)) > short:
            self._name(nodes, uses, (name for name in map("e{}".format, count(1)) if name not in taken))

    def _name(self, nodes: Mapping[Key, Expr], uses: Mapping[Key, int], fresh: Iterator[str]) -> None:
        """Name the subexpressions for which that pays, until their text is too long to read."""
        size = 0
        for k, node in nodes.items():
            if size > _LONGEST:
                return
            self._lengths[k] = length = self._length(node)
            if node.operands and length >= _LONG and (uses[k] - 1) * length > _WORTH_A_NAME:
                name = next(fresh)
                self.lets.append((name, self.text(node)))
                self._names[k] = name
                size += length

    def text(self, e: Expr) -> str:
        """The text of one of the roots."""
        return _text(e, self._left_out, self._names)

    def _nodes(self, roots: Sequence[Expr]) -> tuple[dict[Key, Expr], Counter[Key]]:
        """All nodes by key, operands first, and the number of times that each is a root or an operand of a distinct
        node."""
        nodes: dict[Key, Expr] = {}
        uses: Counter[Key] = Counter()
        stack = [(bare, False) for bare in map(self._bare, reversed(roots))]
        uses.update(key(e) for e, _ in stack)
        opened: set[Key] = set()
        while stack:
            node, done = stack.pop()
            k = key(node)
            if done:
                nodes[k] = node
            elif k not in opened:
                opened.add(k)
                below = [self._bare(part[0]) for part in _parts(node)[0] if not isinstance(part, str)]
                uses.update(map(key, below))
                stack += [(node, True), *((c, False) for c in reversed(below))]
        return nodes, uses

    def _bare(self, e: Expr) -> Expr:
        while isinstance(e, Cast) and self._left_out(e):
            e = e.value
        return e

    def _length(self, e: Expr) -> int:
        """The length of a node's text without parentheses."""
        return sum(len(part) if isinstance(part, str) else self._written(part[0]) for part in _parts(e)[0])

    def _written(self, e: Expr) -> int:
        k = key(self._bare(e))
        return len(self._names[k]) if k in self._names else self._lengths[k]


def _nothing(e: Expr) -> bool:
    return False


def _text(e: Expr, left_out: Callable[[Expr], bool], named: Mapping[Key, str]) -> str:
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
        if named and (name := named.get(key(node))) is not None:
            stack.append(name)
            continue
        parts, own = _parts(node)
        stack += reversed(parts if own >= level else ["(", *parts, ")"])
    return "".join(text)


def _parts(e: Expr) -> tuple[list[_Part], int]:
    """The text and operands of which a node's text consists, and its precedence."""
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
    """Whether a node is a cast that users do not write: from data to an index, or from a coordinate to int32."""
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
    if isinstance(e, Instruction):
        return [f"{e.name}(", *_list(e.args), ")"]
    return [f"<{type(e).__name__}>"]


def _list(items: tuple[Expr, ...]) -> list[_Part]:
    parts: list[_Part] = []
    for i in items:
        parts += [", ", (i, 0)] if parts else [(i, 0)]
    return parts
