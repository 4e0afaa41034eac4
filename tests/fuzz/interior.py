"""Pipelines without boundary conditions: the output is smaller than the input by the reach of the stencils, or the
stencils test their coordinates."""

from __future__ import annotations

from hypothesis import strategies as st

from pantile.expr.types import FLOAT32, INT32, UINT8, UINT16

from .arrays import array
from .draws import Draw
from .pipelines import Case
from .terms import Regime, Term, integer
from .writer import Writer


@st.composite
def interior_pipelines(draw: Draw) -> Case:
    """One to four consecutive stencils, each of which reads the previous one (and sometimes the input) at offsets from
    0 on."""
    t = draw(st.sampled_from([UINT8, UINT16, INT32, FLOAT32]))
    w = Writer(draw, Regime(tame=True, strict=True), (t,), transcendental=False)
    w.lines += ['y, x = pt.vars("y x")', f"img = pt.Input('img', {t.name!r}, ndim=2)"]
    value = Term("", t, 50.0) if t.is_float else integer("", t)
    reach = {"img": (0, 0)}
    last = "img"
    for _ in range(w.number(1, 4)):
        last, value = _stencil(w, last, value, reach)
    border = reach[last]
    shape = tuple(w.pick([0, 1, 1, 2, 2, 3, 4, 5, 7, 13, 16, 31]) + b for b in border)
    arguments = {"img": array(w, t, shape, tame=True)}
    shapes = f"[(img.shape[0] - {border[0]}, img.shape[1] - {border[1]})]"
    return Case(tuple(w.lines), (last,), shapes, arguments, (value.slack,), strict=True)


def _stencil(w: Writer, source: str, value: Term, reach: dict[str, tuple[int, int]]) -> tuple[str, Term]:
    """A Func of taps of `source`, perhaps with one of the input; `reach` has the distance beyond a pixel that each Func
    reads."""
    taps, ends = [], []
    for k in range(w.number(1, 4)):
        tap, end = _tap(w, "img" if k == 3 else source, reach, value)
        taps.append(tap)
        ends.append(end)
    name = w.func()
    scale = " * 0.25" if value.dtype.is_float else " // 3"
    w.lines.append(f"{name}[y, x] = ({' + '.join(taps)}){scale}")
    reach[name] = (max(e[0] for e in ends), max(e[1] for e in ends))
    return name, value


def _tap(w: Writer, source: str, reach: dict[str, tuple[int, int]], value: Term) -> tuple[str, tuple[int, int]]:
    """A read of `source`, and how far it reaches. It reads a later pixel, or one that is tested to exist."""
    at, end, tests = [], [], []
    for axis, name in enumerate("yx"):
        d, far = w.number(0, 2), reach[source][axis]
        kind = w.pick(["plain", "plain", "before", "after"])
        at.append(f"{name} {'-' if kind == 'before' else '+'} {d}")
        end.append({"plain": far + d, "before": max(0, far - d), "after": 0}[kind])
        if kind != "plain":
            more = w.pick([0, 0, 1, 2])  # pixels that could be read but are excluded by the test
            tests.append(
                f"{name} >= {d + more}" if kind == "before" else f"{name} < img.shape[{axis}] - {far + d + more}"
            )
    return _where(w, tests, f"{source}[{', '.join(at)}]", value), (end[0], end[1])


def _where(w: Writer, tests: list[str], read: str, value: Term) -> str:
    """`read` if all tests hold, written as one condition, as its negation, or as nested conditions."""
    other = f"pt.cast({value.dtype.name!r}, 7)"
    if not tests:
        return read
    if w.chance(25):
        return f"pt.select({' | '.join(f'~({t})' for t in tests)}, {other}, {read})"
    if w.chance(50):
        return f"pt.select({' & '.join(f'({t})' for t in tests)}, {read}, {other})"
    for t in tests:
        read = f"pt.select({t}, {read}, {other})"
    return read
