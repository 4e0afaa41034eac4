"""Making, rearranging and taking apart vectors."""

from __future__ import annotations

from collections.abc import Sequence

from .function import Function
from .types import integer_type

# A run of lanes of unknown value, in a shuffle.
_ANY = None


def spread(fn: Function, value: str, element: str, lanes: int) -> str:
    """A scalar in every lane."""
    if lanes == 1:
        return value
    if value[0] != "%":
        return f"splat ({element} {value})"
    one = fn.value(f"insertelement <{lanes} x {element}> poison, {element} {value}, i64 0")
    vector = f"<{lanes} x {element}>"
    return fn.value(f"shufflevector {vector} {one}, {vector} poison, {integer_type(32, lanes)} zeroinitializer")


def pick(fn: Function, vector: str, element: str, lanes: int, lane: int) -> str:
    """One lane as a scalar."""
    return vector if lanes == 1 else fn.value(f"extractelement <{lanes} x {element}> {vector}, i64 {lane}")


def gather(fn: Function, values: Sequence[str], element: str) -> str:
    """Scalars as the lanes of a vector."""
    result = "poison"
    for lane, value in enumerate(values):
        result = fn.value(f"insertelement <{len(values)} x {element}> {result}, {element} {value}, i64 {lane}")
    return result


def reverse(fn: Function, vector: str, element: str, lanes: int) -> str:
    """The lanes in opposite order."""
    return shuffle(fn, [vector], element, lanes, range(lanes - 1, -1, -1))


def shuffle(fn: Function, vectors: Sequence[str], element: str, lanes: int, order: Sequence[int]) -> str:
    """Chosen lanes of vectors of equal length laid end to end.

    More than two are first joined into two halves: the form in which LLVM knows an interleaving store.
    """
    level = list(vectors)
    while len(level) > 2:
        level = [_join(fn, level[i : i + 2], element, lanes) for i in range(0, len(level), 2)]
        lanes *= 2
    if len(order) == 1:
        vector, lane = divmod(order[0], lanes)
        return pick(fn, level[vector], element, lanes, lane)
    return _shuffle_two(fn, level, element, lanes, order)


def _join(fn: Function, pair: list[str], element: str, lanes: int) -> str:
    order = [i if i < len(pair) * lanes else _ANY for i in range(2 * lanes)]
    return _shuffle_two(fn, pair, element, lanes, order)


def _shuffle_two(fn: Function, pair: list[str], element: str, lanes: int, order: Sequence[int | None]) -> str:
    a, b = pair if len(pair) == 2 else (pair[0], "poison")
    vector = f"<{lanes} x {element}>"
    mask = ", ".join(["i32 poison" if i is _ANY else f"i32 {i}" for i in order])
    return fn.value(f"shufflevector {vector} {a}, {vector} {b}, <{len(order)} x i32> <{mask}>")


def column(fn: Function, rows: Sequence[str], element: str, size: int, which: int) -> str:
    """Lane `which` of every row as one vector: rows of `size` lanes are transposed in square blocks."""
    blocks = [transpose(fn, rows[i : i + size], element) for i in range(0, len(rows), size)]
    return shuffle(fn, [b[which] for b in blocks], element, size, range(len(rows)))


def transpose(fn: Function, rows: Sequence[str], element: str) -> list[str]:
    """The columns of a square matrix: rows a half apart are interleaved, as often as it takes to halve it to one."""
    size = len(rows)
    matrix = list(rows)
    low = [i // 2 + i % 2 * size for i in range(size)]
    for _ in range(size.bit_length() - 1):
        pairs = zip(matrix[: size // 2], matrix[size // 2 :], strict=True)
        matrix = [
            shuffle(fn, pair, element, size, [i + half for i in low]) for pair in pairs for half in (0, size // 2)
        ]
    return matrix


def widened(fn: Function, vector: str, element: str, lanes: int, to: int) -> str:
    """More lanes; the new ones have no meaning."""
    if lanes == to:
        return vector
    if lanes == 1:
        return fn.value(f"insertelement <{to} x {element}> poison, {element} {vector}, i64 0")
    order = [i if i < lanes else _ANY for i in range(to)]
    return _shuffle_two(fn, [vector], element, lanes, order)
