"""Accumulators in registers: memory that nobody has written is not read for their sake."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.ir.nodes import If, Store
from pantile.ir.visit import walk

from .lowered import lowered

y, x = pt.vars("y x")


def table(shape: tuple[object, object], target: str | None = None) -> pt.Pipeline:
    """A table of one entry, made anew at every pixel of a row, in memory of the row."""
    img = pt.Input("img", "int32", ndim=2)
    entry, out = pt.Func("entry"), pt.Func("out")
    entry[x] = x + 3
    out[y, x] = entry[0] + img[y, x]
    p = pt.Pipeline(out, shape=shape or img.shape, target=target)
    return p.with_schedule(pt.Schedule(pt.on("out"), pt.on("entry").compute_at("out", "x").store_at("out", "y")))


@pytest.mark.parametrize("shape", [(4, 8), ()])
def test_a_place_that_is_stored_to_first(shape: tuple[object, object]) -> None:
    img = np.arange(32, dtype=np.int32).reshape(4, 8)
    np.testing.assert_array_equal(table(shape, "cuda-sim")(img=img), img + 3)


def test_it_is_held_without_being_loaded_if_the_loop_runs() -> None:
    def held(p: pt.Pipeline) -> list[Store]:
        return [s for s in walk(lowered(p)["promote"]) if isinstance(s, Store) and s.buffer == "entry.held"]

    assert len(held(table((4, 8)))) == 1
    assert not held(table(()))


@pytest.mark.parametrize("target", [None, "cuda-sim"])
def test_what_a_split_leaves_may_be_nothing(target: str | None) -> None:
    """The element whose index is constant in the iterations that are left does not exist where there are none."""
    img = pt.Input("img", "float32", ndim=2)
    counts, out, r = pt.Func("counts"), pt.Func("out"), pt.RDom((2, 3))
    counts[x] = pt.cast("uint32", 1)
    counts[0] = 0
    counts[x] = counts[x] ^ pt.cast("uint32", pt.mirror(img)[x, x]) + pt.cast("uint32", r[0])
    out[y] = counts[y]
    by_two = pt.Schedule(
        pt.on("out").split("y", "y", "yi", 2).split("y", "entry", "yo", 2),
        pt.on("counts").compute_at("out", "yo").update(1).fuse("x", "r.0", "both").unroll("both", 2),
    )
    p = pt.Pipeline(out, shape=3, target=target, schedule=by_two)
    tests = [s for s in walk(lowered(p)["promote"]) if isinstance(s, If)]
    assert any(isinstance(inner, Store) and inner.buffer == "counts.held" for s in tests for inner in walk(s))
    given = np.ones((1, 1), np.float32)
    np.testing.assert_array_equal(p(img=given), p.reference(img=given))
