"""Equal graphs have equal fingerprints, in any process; anything that changes code changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pantile as pt
from pantile.analysis.fingerprint import fingerprint
from pantile.lang.build import build

X = pt.Var("x")


def digest(value: Callable[[Any, Any], Any] = lambda img, p: img[X] + p, *, func: str = "f", dtype: str = "int32",
           shape: Any = None, update: Any = None, domain: Any = None, default: int | None = None) -> str:  # fmt: skip
    img, p, f = pt.Input("img", dtype, 1), pt.Param("p", "int32", default), pt.Func(func, domain=domain)
    f[X] = value(img, p)
    if update is not None:
        update(f, pt.RDom((0, 3), name="r"))
    return fingerprint(build(f, shape))


def add_one(f: pt.Func, r: pt.RDom) -> None:
    f[r[0]] += 1


def add_two(f: pt.Func, r: pt.RDom) -> None:
    f[r[0]] += 2


def add_where(f: pt.Func, r: pt.RDom) -> None:
    r = r.where(r[0] > 1)
    f[r[0]] += 1


def test_the_same_again() -> None:
    assert digest() == digest()
    assert digest(default=1) == digest(default=2)


def test_everything_else_differs() -> None:
    others = [
        digest(),
        digest(lambda img, p: img[X] - p),
        digest(lambda img, p: p + img[X]),
        digest(lambda img, p: img[X] + p + img.shape[0]),
        digest(lambda img, p: img[X] + 1),
        digest(lambda img, p: img[X] + 1.0),
        digest(lambda img, p: img[X] + 2.0),
        digest(func="g"),
        digest(dtype="int16"),
        digest(shape=(3,)),
        digest(shape=(4,)),
        digest(domain=((0, 9),)),
        digest(update=add_one),
        digest(update=add_two),
        digest(update=add_where),
    ]
    assert len(set(others)) == len(others)


def test_sharing_does_not_matter() -> None:
    def apart(img: Any, p: Any) -> Any:
        return img[X] * img[X] + p

    def shared(img: Any, p: Any) -> Any:
        value = img[X]
        return value * value + p

    assert digest(apart) == digest(shared)


@pytest.mark.parametrize("depth", [200])
def test_expressions_that_double_at_every_step(depth: int) -> None:
    def doubled(img: Any, p: Any) -> Any:
        value = img[X]
        for _ in range(depth):
            value = value * value
        return value

    assert len(digest(doubled)) == 64
