"""Equal indices of a definition are one node, so that passes look at each once."""

from __future__ import annotations

import pantile as pt
from pantile.expr.visit import walk_loads
from pantile.graph.nodes import Graph
from pantile.lower.graph_passes import share_indices

y, x = pt.vars("y x")


def _window(size: int) -> Graph:
    img, f = pt.Input("img", "float32", ndim=2), pt.Func("f")
    f[y, x] = sum(img[y + i, x + k] * float(i + k) for i in range(size) for k in range(size))
    return pt.Pipeline(f, shape=[img.shape[0] - size, img.shape[1] - size], schedule="plain").graph


def test_a_window_has_as_many_places_as_rows_and_columns() -> None:
    (value,) = share_indices(_window(6)).stage["f"].pure.values
    loads = list(walk_loads(value))
    assert len(loads) == 36
    assert len({id(i) for load in loads for i in load.indices}) == 12
    assert str(value) == str(_window(6).stage["f"].pure.values[0])


def test_what_shares_its_places_stays_as_it_is() -> None:
    shared = share_indices(_window(3))
    assert share_indices(shared).stages[0] is shared.stages[0]
