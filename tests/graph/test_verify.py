"""The verifier accepts what `build` makes and names the rule that a damaged graph breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import pantile as pt
from pantile.errors import InternalError
from pantile.expr.build import cast
from pantile.expr.nodes import Load, Ramp, Var, coordinate
from pantile.expr.nodes import const as number
from pantile.expr.types import BOOL, FLOAT32, INDEX, INT32
from pantile.graph.nodes import Graph, Output, Stage
from pantile.graph.verify import verify
from pantile.lang.build import build

Y, X = coordinate("y"), coordinate("x")


def sound() -> Graph:
    y, x = pt.vars("y x")
    img = pt.Input("img", "int32", 2)
    f, g = pt.Func("f"), pt.Func("g")
    f[y, x] = img[y, x] + pt.Param("gain", "int32")
    r = pt.RDom((0, 3))
    g[y, x] = f[y, x]
    g[y, r[0]] += g[y, r[0] - 1]
    return build(g)


def change(stage: str, edit: Callable[[Stage], Stage]) -> Graph:
    graph = sound()
    return replace(graph, stages=tuple(edit(s) if s.name == stage else s for s in graph.stages))


def with_value(e: pt.Expr) -> Graph:
    return change("f", lambda s: replace(s, pure=replace(s.pure, values=(e,))))


def with_update(**parts: object) -> Graph:
    return change("g", lambda s: replace(s, updates=(replace(s.updates[0], **parts),)))  # type: ignore[arg-type]


def with_input(**parts: object) -> Graph:
    return replace(sound(), inputs=(replace(sound().inputs[0], **parts),))  # type: ignore[arg-type]


BROKEN: dict[str, tuple[Callable[[], Graph], str]] = {
    "names": (lambda: replace(sound(), stages=sound().stages[:1] * 2), "same name"),
    "spelling": (lambda: change("f", lambda s: replace(s, name="f\x00")), "'f.x00' is not a name"),
    "option": (lambda: replace(sound(), params=(replace(sound().params[0], name="out"),)), r"of arguments: \['out'\]"),
    "known": (lambda: with_input(known=(3,)), "extents of img are of another rank than 2"),
    "table type": (lambda: with_input(table=np.zeros((3, 4)), known=(3, 4)), "the table img is of another kind"),
    "table shape": (lambda: with_input(table=np.zeros((3, 4), np.int32), known=(3, None)), "img is of another kind"),
    "order": (lambda: replace(sound(), stages=sound().stages[::-1]), "f, which is not computed yet"),
    "dims": (lambda: change("f", lambda s: replace(s, dims=("y", "y"))), "dims are not distinct"),
    "scalar dim": (lambda: change("f", lambda s: replace(s, dims=("y", "gain"))), "name of a scalar"),
    "pure indices": (lambda: change("f", lambda s: replace(s, dims=("y", "z"))), "indices are not the dims"),
    "coordinate": (lambda: with_value(Var(INT32, 1, "x")), "is used as int32"),
    "types": (lambda: with_value(number(1, FLOAT32)), "values have types"),
    "unbound": (lambda: with_value(cast("int32", coordinate("z"))), "z is not bound"),
    "language": (lambda: with_value(pt.Input("img", "int32", 1)[0]), r"Read\) is not an expression of a graph"),
    "vector": (lambda: with_value(replace(number(1, INT32), lanes=2)), "is a vector"),
    "ramp": (lambda: with_value(Ramp(INT32, 4, Y, X)), "Ramp"),
    "rank": (lambda: with_value(Load(INT32, 1, "img", (Y,))), "1 indices, img has 2 dims"),
    "load type": (lambda: with_value(Load(INT32, 1, "img", (number(0.5, FLOAT32), X))), "not of type index"),
    "mask": (lambda: with_value(Load(INT32, 1, "img", (Y, X), number(True, BOOL))), "mask"),
    "self": (lambda: with_value(Load(INT32, 1, "f", (Y, X))), "not computed yet"),
    "across": (lambda: with_update(values=(Load(INT32, 1, "g", (X, X)),), indices=(Y, X)), "has no order"),
    "condition": (lambda: with_update(condition=Y), "condition is not bool"),
    "update indices": (lambda: with_update(indices=(Y,)), "another number of indices"),
    "loops": (lambda: with_update(domain=sound().stages[1].updates[0].domain * 2), "loops of a reduction"),
    "outputs": (lambda: replace(sound(), outputs=()), "outputs are not distinct"),
    "no stage": (lambda: replace(sound(), outputs=(Output("h", ()),)), "h is not a stage"),
    "shape rank": (lambda: replace(sound(), outputs=(Output("g", ()),)), "another rank"),
    "shape data": (
        lambda: replace(sound(), outputs=(Output("g", (number(1, INDEX), cast(INDEX, Load(INT32, 1, "f", (Y, X))))),)),
        "depends on data",
    ),
}


def assert_sound(graph: Graph) -> None:
    """It is accepted: nothing is raised."""
    verify(graph)


def test_sound() -> None:
    assert_sound(sound())


@pytest.mark.parametrize("rule", BROKEN)
def test_broken(rule: str) -> None:
    damage, text = BROKEN[rule]
    with pytest.raises(InternalError, match=text):
        verify(damage())
    with pytest.raises(pt.UserError, match=text):
        pt.Pipeline.from_graph(damage())
