"""Small pipelines written down by hand, one per situation that schedules must tell apart."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.nodes import Expr, Var, op
from pantile.expr.types import INT32
from pantile.graph.nodes import Graph
from tests.reference.hand_built import X, Y, const, graph, load, stage, update

RY, RX, ROW, COL, K = (Var(INT32, 1, name) for name in ("r.y", "r.x", "i", "j", "k"))
FLOATS = {"img": ("float32", 2)}
BYTES = {"img": ("uint8", 2)}


def blur() -> Graph:
    """blur_x, three reads along x; blur_y, three reads of it along y."""
    blur_x = stage("blur_x", "y x", load("img", "float32", Y, X) + load("img", "float32", Y, X + 1))
    blur_y = stage("blur_y", "y x", load("blur_x", "float32", Y, X) + load("blur_x", "float32", Y + 1, X))
    return graph(blur_x, blur_y, out=(("blur_y", (100, 90)),), inputs=FLOATS, params={"gain": "float32"})


def diamond() -> Graph:
    """a feeds b and c; both are read by out."""
    a = stage("a", "y x", load("img", "float32", Y, X) + load("img", "float32", Y + 1, X + 1))
    b = stage("b", "y x", load("a", "float32", Y, X) + load("a", "float32", Y, X + 1))
    c = stage("c", "y x", load("a", "float32", Y, X) + load("a", "float32", Y + 1, X))
    out = stage(
        "out",
        "y x",
        load("b", "float32", Y, X)
        + load("b", "float32", Y + 1, X)
        + load("c", "float32", Y, X)
        + load("c", "float32", Y, X + 1),
    )
    return graph(a, b, c, out, out=(("out", (64, 64)),), inputs=FLOATS)


def fan() -> Graph:
    """Two outputs; one of them reads a."""
    a = stage("a", "y x", load("img", "float32", Y, X) + load("img", "float32", Y + 1, X + 1))
    b = stage("b", "y x", load("img", "float32", Y, X))
    c = stage("c", "y x", load("a", "float32", Y, X) + load("a", "float32", Y + 1, X))
    return graph(a, b, c, out=(("b", (64, 64)), ("c", (64, 64))), inputs=FLOATS)


def two_outputs() -> Graph:
    """Two outputs that do not need each other."""
    f = stage("f", "y x", load("img", "float32", Y, X) * 2.0)
    g = stage("g", "y x", load("img", "float32", Y, X) * 3.0)
    return graph(f, g, out=(("f", (64, 64)), ("g", (64, 64))), inputs=FLOATS)


def histogram() -> Graph:
    """hist[img[r.y, r.x]] += 1."""
    at = load("img", "uint8", RY, RX)
    up = update((at,), load("hist", "int32", at) + 1, over=(("r.y", 0, 13), ("r.x", 0, 7)))
    return graph(stage("hist", "i", const(0, "int32"), updates=(up,)), out=(("hist", (256,)),), inputs=BYTES)


def total(t: str = "int32", kind: str = "add", extent: int = 7) -> Graph:
    """One number out of the whole image; `kind` combines."""
    value = op(kind, load("total", t), load("img", t, RY, RX))
    up = update((), value, over=(("r.y", 0, 13), ("r.x", 0, extent)))
    start = {"add": 0, "mul": 1, "min": 100, "max": -100}[kind]
    return graph(stage("total", "", const(start, t), updates=(up,)), out=(("total", ()),), inputs={"img": (t, 2)})


def product() -> Graph:
    """c[i, j] += a[i, k] * b[k, j]."""
    term = load("a", "float32", ROW, K) * load("b", "float32", K, COL)
    up = update((ROW, COL), load("c", "float32", ROW, COL) + term, over=(("k", 0, 100),))
    made = stage("c", "i j", const(0, "float32"), updates=(up,))
    return graph(made, out=(("c", (64, 64)),), inputs={"a": ("float32", 2), "b": ("float32", 2)})


def scan() -> Graph:
    """f[y, r.x] = f[y, r.x - 1] + img[y, r.x], and along y beside it: order matters in one loop, not in the other."""
    value = load("f", "float32", Y, RX - 1) * 0.5 + load("img", "float32", Y, RX)
    up = update((Y, RX), value, over=(("r.x", 1, 63),))
    made = stage("f", "y x", load("img", "float32", Y, X), updates=(up,))
    return graph(made, out=(("f", (64, 64)),), inputs=FLOATS)


def two_loop_scan() -> Graph:
    """f[r.y, r.x] from its neighbours on the left and above: both loops carry values."""
    value = load("f", "float32", RY - 1, RX - 1) + load("f", "float32", RY, RX - 1)
    up = update((RY, RX), value, over=(("r.y", 1, 63), ("r.x", 1, 63)))
    return graph(stage("f", "y x", load("img", "float32", Y, X), updates=(up,)), out=(("f", (64, 64)),), inputs=FLOATS)


def box(points: int = 3, helper: bool = True) -> Graph:
    """out reads a sum of points*points values, which is a stage of its own."""
    term: Expr = load("img", "float32", Y + RY, X + RX)
    up = update((Y, X), load("sum", "float32", Y, X) + term, over=(("r.y", 0, points), ("r.x", 0, points)))
    made = replace(stage("sum", "y x", const(0, "float32"), updates=(up,)), helper=helper)
    out = stage("out", "y x", load("sum", "float32", Y, X) / 9.0)
    return graph(made, out, out=(("out", (64, 64)),), inputs=FLOATS)


def scatter() -> Graph:
    """f[r.y, x] = g[r.y, x]: a reduction loop whose iterations write different rows."""
    up = update((RY * 2 + 1, X), load("img", "float32", RY, X), over=(("r.y", 0, 16),))
    return graph(stage("f", "y x", const(0, "float32"), updates=(up,)), out=(("f", (64, 64)),), inputs=FLOATS)
