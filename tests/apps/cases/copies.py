"""Copies, masks and transposes, as NumPy has them."""

from __future__ import annotations

from ..case import Array, Case, Shapes

SIDES = ((1, 1), (3, 67), (71, 5), (66, 35))


def shapes(*sides: tuple[int, int], mask: bool = False, turned: bool = False) -> tuple[Shapes, ...]:
    """Shapes of img and, if there is one, of a mask beside the result."""
    return tuple({"img": s, **({"mask": s[::-1] if turned else s} if mask else {})} for s in sides)


def copy(img: Array) -> Array:
    return img


def mask(img: Array, mask: Array) -> Array:
    return img & mask


def tp(img: Array) -> Array:
    return img.T


def tpm(img: Array, mask: Array) -> Array:
    return img.T & mask


CASES = {
    "copy": Case(copy, odd=shapes(*SIDES), large=shapes((203, 519))[0]),
    "mask": Case(mask, odd=shapes(*SIDES, mask=True), large=shapes((203, 519), mask=True)[0]),
    "tp": Case(tp, odd=shapes(*SIDES), large=shapes((523, 331))[0]),
    "tpm": Case(tpm, odd=shapes(*SIDES, mask=True, turned=True), large=shapes((523, 331), mask=True, turned=True)[0]),
}
