"""Definitions of Funcs: what they remember, and what they mean on the reference."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.errors import here
from pantile.expr.nodes import Expr, Read
from pantile.graph.verify import verify
from pantile.lang.build import build
from pantile.reference import evaluate

Y, X, Z = pt.vars("y x z")


def run(outputs: pt.Func, shape: tuple[int, ...], **arrays: np.ndarray) -> list[np.ndarray]:
    graph = build(outputs, shape)
    verify(graph)
    result: list[np.ndarray] = list(evaluate(graph, arrays, {}))
    return result


def test_vars() -> None:
    assert [v.name for v in pt.vars("y x")] == [v.name for v in pt.vars("y, x")] == ["y", "x"]
    assert isinstance(Y, Expr)


def test_a_func_remembers_the_lines_of_its_definitions() -> None:
    f = pt.Func("f")
    before = here().line
    f[Y, X] = 0
    f[Y, X] += 1
    assert [e.where.line for e in f.equations] == [before + 1, before + 2]
    assert f.where.line == before + 1
    assert f.where.file == __file__


def test_reads() -> None:
    f, pair = pt.Func("f"), pt.Func("pair")
    f[Y, X] = 1.0
    pair[X] = (X, 2.0)
    assert isinstance(f[0, 1], Read)
    a, b = pair[X]
    assert (a.dtype.name, b.dtype.name) == ("int32", "float32")
    assert str(pair[X][1]) == "pair.1[x]"
    assert (f.dims, f.ndim, f.arity, pair.arity) == (("y", "x"), 2, 1, 2)


def test_updates_take_the_type_of_the_func() -> None:
    f = pt.Func("f")
    img = pt.Input("img", "uint8", 1)
    f[X] = 0.5
    f[X] += img[X]
    f[X] *= 3
    assert [e.values[0].dtype.name for e in f.equations] == ["float32"] * 3


def test_scan_scatter_and_several_updates() -> None:
    total, hist = pt.Func("total"), pt.Func("hist")
    img = pt.Input("img", "uint8", 1)
    r = pt.RDom((1, img.shape[0] - 1))
    total[X] = pt.cast("int32", img[X])
    total[r[0]] += total[r[0] - 1]
    total[0] = -total[0]
    hist[Z] = 0
    hist[img[r[0]]] += 1
    data = np.array([3, 1, 2, 1], dtype=np.uint8)
    assert run(total, (4,), img=data)[0].tolist() == [-3, 4, 6, 7]
    assert run(hist, (4,), img=data)[0].tolist() == [0, 2, 1, 0]


def test_where_to_scatter_may_depend_on_a_free_coordinate() -> None:
    grid = pt.Func("grid")
    img = pt.Input("img", "float32", 1)
    r = pt.RDom((0, 2))
    value = img[2 * Y + r[0]]
    grid[Y, Z] = 0.0
    grid[Y, pt.within(pt.cast("int32", value), 0, 3)] += value
    data = np.array([0.5, 1.5, 3.25, 3.5], dtype=np.float32)
    assert run(grid, (2, 4), img=data)[0].tolist() == [[0.5, 1.5, 0, 0], [0, 0, 0, 6.75]]


def test_where_skips_points_and_conditions_add_up() -> None:
    f = pt.Func("f")
    r = pt.RDom((0, 4), (0, 4), names="i j")
    upper = r.where(r.j > r.i)
    f[Y] = 0
    f[Y] += upper.where(r.i > Y).j * 10 + upper.i
    expected = [sum(j * 10 + i for i in range(4) for j in range(4) if j > i > y) for y in range(3)]
    assert run(f, (3,))[0].tolist() == expected


def test_zero_dimensions() -> None:
    f = pt.Func("f")
    r = pt.RDom((0, 5))
    f[()] = 0
    f[()] += r[0]
    assert run(f, ())[0] == 10


def test_iterate_numbers_the_names_of_each_step() -> None:
    start = pt.Func("start")
    start[X] = X

    def step(u: pt.Func) -> pt.Func:
        half, v = pt.Func("half"), pt.Func("v")
        half[X] = u[X] + u[X + 1]
        v[X] = half[X] - 1
        return v

    result = pt.iterate(start, step, times=2)
    assert [s.name for s in build(result, (3,)).stages] == ["start", "half_1", "v_1", "half_2", "v_2"]
    assert run(result, (3,))[0].tolist() == [1, 5, 9]
    assert pt.iterate(start, step, times=0) is start


def test_long_chains() -> None:
    f = pt.Func("f")
    f[X] = X

    def step(u: pt.Func) -> pt.Func:
        v = pt.Func("v")
        v[X] = u[X] + 1
        return v

    assert len(build(pt.iterate(f, step, times=3000), (3,)).stages) == 3001


def test_a_definition_that_ignores_the_one_before_it_warns_on_its_line() -> None:
    f, img = pt.Func("f"), pt.Input("img", "uint8", 2)
    f[Y, X] = img[Y, X]
    text = (
        r"this definition of Func 'f' ignores the previous one \(at .*\.py:\d+\), which nothing reads; read it, "
        r"as in f\[y, x\] = f\[y, x\] \+ ..., or give one of them a Func of its own"
    )
    with pytest.warns(pt.DefinitionWarning, match=text) as caught:
        f[Y, X] = img[Y, X + 1]
    assert caught[0].filename == __file__


def test_definitions_that_keep_something_of_the_one_before_them_do_not_warn(
    recwarn: pytest.WarningsRecorder,
) -> None:
    f, g, img, r = pt.Func("f"), pt.Func("g"), pt.Input("img", "uint8", 2), pt.RDom((0, 3))
    f[Y, X] = img[Y, X]
    f[Y, 0] = 3  # elsewhere it is as it was
    f[Y, X] = pt.select(f[Y, X] > 3, 1, img[Y, X])
    f[Y, X] = pt.cast("uint8", r[0])  # over no points if r has none
    g[Y, X] = (0, 1)
    g[Y, X] = (g[Y, X][1], 2)
    assert not recwarn.list


def test_several_funcs_of_one_domain() -> None:
    img = pt.Input("img", "uint8", 2)
    across, down = pt.funcs("across down", domain=img.shape)
    across[Y, X] = pt.edge(img)[Y, X - 1] / 2
    down[Y, X] = pt.edge(across)[Y + 1, X]
    data = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert run(down, (3, 4), img=data)[0].tolist() == [[2, 2, 2.5, 3], [4, 4, 4.5, 5], [4, 4, 4.5, 5]]
    assert [f.name for f in pt.funcs("a, b")] == ["a", "b"]


def test_extents_of_a_domain_begin_at_zero_unless_it_says_otherwise() -> None:
    f = pt.Func("f", domain=(3, (-1, 5)))
    assert f.domain is not None
    assert [tuple(map(str, bound)) for bound in f.domain] == [("0", "3"), ("-1", "5")]
