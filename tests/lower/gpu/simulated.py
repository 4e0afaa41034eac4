"""Pipelines on the simulated GPU: what their loops and kernels are, and that they compute what the reference does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pantile as pt
from pantile.compile import Options, to_kernels, to_loops
from pantile.expr.nodes import Const
from pantile.ir.instructions import Effect, effect_of
from pantile.ir.nodes import For, If, Kernel, Realize, Stmt
from pantile.ir.visit import walk
from pantile.lower.passes import Trace
from pantile.schedule.directives import StageSchedule
from pantile.schedule.resolve import resolve
from pantile.simulator import Counts, counting
from pantile.target import named
from pantile.target.kinds import Kind
from pantile.variant import Variants

from ...fuzz.device_code import compiled_for_devices
from ..lowered import lowered

GPU = named("cuda-sim")
y, x = pt.vars("y x")


def picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).random(shape, dtype=np.float32)


def blur(*schedule: StageSchedule, height: int = 2, width: int = 2, clamped: bool = False) -> pt.Pipeline:
    """A window of so many rows more, of windows of so many columns more."""
    img = pt.Input("img", "float32", ndim=2)
    source = pt.edge(img) if clamped else img
    rows, out = pt.Func("rows"), pt.Func("out")
    first = -1 if clamped else 0
    rows[y, x] = sum((source[y, x + k + first] for k in range(1, width + 1)), source[y, x + first])
    out[y, x] = sum((rows[y + k + first, x] for k in range(1, height + 1)), rows[y + first, x])
    shape = img.shape if clamped else (img.shape[0] - height, img.shape[1] - width)
    made = pt.Pipeline(out, shape=shape, target="cuda-sim")
    return made.with_schedule(pt.Schedule(*schedule)) if schedule else made


def loops(p: pt.Pipeline, after: str, large: bool = True) -> Stmt:
    """What a pass makes of a pipeline, for large arrays or for any."""
    return lowered(p, large, GPU)[after]


def of_kind(s: Stmt, kind: Kind) -> list[For]:
    return [i for i in walk(s) if isinstance(i, For) and i.kind is kind]


def realized(s: Stmt, buffer: str) -> list[Realize]:
    found = [i for i in walk(s) if isinstance(i, Realize) and i.buffer == buffer]
    assert found
    return found


def sizes(r: Realize) -> list[int]:
    assert all(isinstance(n, Const) for _, n in r.box)
    return [int(n.value) for _, n in r.box if isinstance(n, Const)]


def branches(s: Stmt) -> list[If]:
    return [i for i in walk(s) if isinstance(i, If)]


def kernels(p: pt.Pipeline) -> tuple[Kernel, ...]:
    options, trace = Options(GPU), Trace(check=True)
    graph, plan = resolve(p.rewritten, p.schedule, target=GPU)
    return to_kernels(to_loops(graph, plan, Variants(graph, plan).usual, options, trace), options, trace).kernels


def barriers(s: Stmt) -> int:
    return sum(effect_of(i) is Effect.BARRIER for i in walk(s))


def order(s: Stmt) -> Iterator[str]:
    """Thread loops by what they count, and barriers, as they come."""
    for i in walk(s):
        if effect_of(i) is Effect.BARRIER:
            yield "barrier"
        elif isinstance(i, For) and i.kind is Kind.THREAD:
            yield i.var


def assert_agrees(p: pt.Pipeline, **arguments: object) -> list[Counts]:
    """Compare with the reference; what each launch did. Its kernels become code of a device, too."""
    with counting() as counts, compiled_for_devices():
        found = p(**arguments)
    expected = p.reference(**arguments)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return counts
