"""A schedule is resolved once, when it meets its pipeline, whatever is made of it later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile import compile as path

Y, X = pt.vars("y x")


def test_once_for_all_variants_and_listings(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved: list[pt.Schedule] = []
    original = path.resolve

    def counting(graph: Any, schedule: pt.Schedule, **options: Any) -> Any:
        resolved.append(schedule)
        return original(graph, schedule, **options)

    img = pt.Input("img", "int32", 2)
    f, out = pt.Func("f"), pt.Func("out")
    f[Y, X] = img[Y, X] * 2
    out[Y, X] = f[Y, X] + f[Y, X + 1]
    p = pt.Pipeline(out, shape=(img.shape[0], img.shape[1] - 1))
    tiles = pt.on("out").tile("y", "x", "yo", "xo", "yi", "xi", 4, 64).vectorize("xi", 4)
    monkeypatch.setattr(path, "resolve", counting)
    scheduled = p.with_schedule(pt.Schedule(tiles, pt.on("f").compute_at("out", "xo")))
    assert len(resolved) == 1
    for shape in ((100, 300), (7, 9)):  # of two variants
        image = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
        for a in (image, image[::-1, ::-1]):
            np.testing.assert_array_equal(scheduled(img=a), scheduled.reference(img=a))
    assert "for out.yo" in scheduled.loops()
    assert "define" in scheduled.llvm()
    assert len(resolved) == 1
