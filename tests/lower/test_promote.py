"""Accumulators in registers: memory that nobody has written is not read for their sake."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.ir.nodes import Store
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
