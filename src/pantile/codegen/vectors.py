"""Building, shuffling and decomposing vectors."""

from __future__ import annotations

from collections.abc import Sequence

from .function import Function
from .types import integer, integer_type

# An undefined lane in a shuffle.
_ANY = None


def spread(fn: Function, value: str, element: str, lanes: int) -> str:
    """Broadcast a scalar to every lane."""
    if lanes == 1:
        return value
    if value[0] != "%":
        return f"splat ({element} {value})"
    one = fn.value(f"insertelement <{lanes} x {element}> poison, {element} {value}, i64 0")
    vector = f"<{lanes} x {element}>"
    return fn.value(f"shufflevector {vector} {one}, {vector} poison, {integer_type(32, lanes)} zeroinitializer")


def pick(fn: Function, vector: str, element: str, lanes: int, lane: int) -> str:
    """Extract one lane as a scalar."""
    return vector if lanes == 1 else fn.value(f"extractelement <{lanes} x {element}> {vector}, i64 {lane}")


def pick_integer(fn: Function, vector: str, bits: int, lanes: int, lane: int, signed: bool) -> str:
    """Extract one lane of integers as an i64. Small integers are moved out of vector registers several at a time."""
    extend = "sext" if signed else "zext"
    if bits > 16 or lanes * bits % 64:
        return fn.value(f"{extend} i{bits} {pick(fn, vector, f'i{bits}', lanes, lane)} to i64")
    words, (which, place) = lanes * bits // 64, divmod(lane * bits, 64)
    all_words = fn.value(f"bitcast <{lanes} x i{bits}> {vector} to {integer_type(64, words)}")
    word = pick(fn, all_words, "i64", words, which)
    if signed:
        top = fn.value(f"shl i64 {word}, {64 - bits - place}") if place + bits < 64 else word
        return fn.value(f"ashr i64 {top}, {64 - bits}")
    low = fn.value(f"lshr i64 {word}, {place}") if place else word
    return fn.value(f"and i64 {low}, {(1 << bits) - 1}") if place + bits < 64 else low


def gather(fn: Function, values: Sequence[str], element: str) -> str:
    """Build a vector from scalars."""
    bits = {"i8": 8, "i16": 16}.get(element)
    if bits is not None and len(values) * bits % 64 == 0:
        return _gather_words(fn, values, bits)
    result = "poison"
    for lane, value in enumerate(values):
        result = fn.value(f"insertelement <{len(values)} x {element}> {result}, {element} {value}, i64 {lane}")
    return result


def _gather_words(fn: Function, values: Sequence[str], bits: int) -> str:
    """Build a vector of small integers by first joining them into i64s, in pairs, pairs of pairs and so on, so that no
    lane waits for another."""
    level = [fn.value(f"zext i{bits} {v} to i64") for v in values]
    width = bits
    while width < 64:
        tops = [fn.value(f"shl i64 {high}, {width}") for high in level[1::2]]
        level = [fn.value(f"or i64 {low}, {top}") for low, top in zip(level[::2], tops, strict=True)]
        width *= 2
    words = level[0] if len(level) == 1 else gather(fn, level, "i64")
    return fn.value(f"bitcast {integer_type(64, len(level))} {words} to <{len(values)} x i{bits}>")


def gather_pairs(fn: Function, words: Sequence[str]) -> str:
    """Join the low halves of an even number of i64s as i32 lanes. Two of them enter a vector register at a time."""
    tops = [fn.value(f"shl i64 {high}, 32") for high in words[1::2]]
    pairs = [fn.value(f"or i64 {low}, {top}") for low, top in zip(words[::2], tops, strict=True)]
    vector = gather(fn, pairs, "i64")
    return fn.value(f"bitcast <{len(pairs)} x i64> {vector} to <{len(words)} x i32>")


def pick_bytes(fn: Function, words: str, lanes: int, which: int) -> str:
    """Extract one byte of every i32 lane, counted from the lowest."""
    moved = fn.value(f"lshr <{lanes} x i32> {words}, {integer(8 * which, 32, lanes)}") if which else words
    return fn.value(f"trunc <{lanes} x i32> {moved} to <{lanes} x i8>")


def reverse(fn: Function, vector: str, element: str, lanes: int) -> str:
    """Reverse the lanes of a vector."""
    return shuffle(fn, [vector], element, lanes, range(lanes - 1, -1, -1))


def shuffle(fn: Function, vectors: Sequence[str], element: str, lanes: int, order: Sequence[int]) -> str:
    """Select lanes of vectors of equal length, which are numbered as if the vectors were concatenated.

    More than two vectors are first joined into two halves, the form in which LLVM recognizes an interleaving store.
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
    """Lane `which` of every row as one vector. Rows have `size` lanes and are transposed in square blocks."""
    blocks = [transpose(fn, rows[i : i + size], element) for i in range(0, len(rows), size)]
    return shuffle(fn, [b[which] for b in blocks], element, size, range(len(rows)))


def transpose(fn: Function, rows: Sequence[str], element: str) -> list[str]:
    """The columns of a square matrix, computed in log2 steps that each interleave rows half a matrix apart."""
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
    """Pad a vector with undefined lanes."""
    if lanes == to:
        return vector
    if lanes == 1:
        return fn.value(f"insertelement <{to} x {element}> poison, {element} {vector}, i64 0")
    order = [i if i < lanes else _ANY for i in range(to)]
    return _shuffle_two(fn, [vector], element, lanes, order)
