"""Random pipelines with their arguments, as source text, so that a failure prints exactly the code that was run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import pantile as pt
from pantile.errors import UserError
from pantile.expr.types import ALL, FLOAT32, INT32, INT64, UINT8, UINT32, UINT64, DType
from pantile.graph.nodes import Graph
from pantile.lang.build import build

from .arrays import array
from .draws import Draw
from .extremes import extremes
from .kinds import KINDS, RARE_KINDS
from .stages import boundary
from .terms import Regime, Term, integer
from .writer import RawInput, Writer

_SIZES = (1, 2, 3, 5, 7, 8, 11, 13, 16, 17, 23, 31, 37)
_COMMON = [UINT8, INT32, FLOAT32]
_WIDE = [UINT8, INT32, INT64, INT64, UINT32, UINT64]  # for arithmetic that may wrap in 64 bits


@dataclass(frozen=True)
class Case:
    """A pipeline and the arguments to call it with."""

    definition: tuple[str, ...]  # lines that define Inputs, Params and Funcs
    outputs: tuple[str, ...]
    shapes: str | None  # the `shape` of the pipeline; None if it is omitted
    arguments: dict[str, str]  # name -> text of the array or number
    slack: tuple[float, ...]  # for each resulting array, how far compiled code may differ from the reference
    strict: bool

    @property
    def source(self) -> str:
        """The case as Python code to paste."""
        call = [f"{name} = {text}" for name, text in self.arguments.items()]
        return "\n".join(["import numpy as np", "import pantile as pt", *self.definition, self._pipeline(), *call])

    def _pipeline(self) -> str:
        shape = "" if self.shapes is None else f", shape={self.shapes}"
        return f"pipeline = pt.Pipeline([{', '.join(self.outputs)}]{shape}, strict={self.strict})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print a failing case for Hypothesis."""
        printer.text(f"\n{self.source}\n")

    def defined(self) -> dict[str, Any]:
        """The names that the definition binds, with their values."""
        names: dict[str, Any] = {"np": np, "pt": pt}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.DefinitionWarning)  # definitions that look like mistakes are tested, too
            exec("\n".join(self.definition), names)
        return names

    def funcs(self, names: dict[str, Any]) -> tuple[list[pt.Func], Any]:
        """The output Funcs and their shapes."""
        return [names[o] for o in self.outputs], None if self.shapes is None else eval(self.shapes, names)

    def graph(self) -> Graph:
        return build(*self.funcs(self.defined()))

    def values(self, graph: Graph) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """The inputs and params that the graph takes."""
        with np.errstate(all="ignore"):
            made = {name: eval(text, {"np": np}) for name, text in self.arguments.items()}
        return {i.name: made[i.name] for i in graph.arguments}, {p.name: made[p.name] for p in graph.params}


@st.composite
def pipelines(
    draw: Draw, focus: str = "all", floats: str = "any", most: int = 5, sizes: tuple[int, ...] = _SIZES
) -> Case:
    """A pipeline of up to `most` Funcs in addition to boundary conditions.

    `focus` is a key of `KINDS` or `RARE_KINDS`; `floats` is wild, tame or any (see `terms`).
    """
    w = _begin(draw, floats)
    shape = [w.pick(sizes) if w.chance(94) else w.pick([0, 1, 2]) for _ in range(2)]
    arguments = _inputs(w, shape)
    arguments |= _params(w)
    for _ in range(w.pick([1, *range(2, most + 1), *range(2, most + 1)])):
        w.pick((KINDS | RARE_KINDS)[focus])(w)
    outputs, shapes, slack = _outputs(w)
    case = Case(tuple(w.lines), outputs, shapes, arguments, slack, w.regime.strict)
    return _by_default(case) if len(outputs) == 1 and w.outputs[outputs[0]] is None and w.chance(15) else case


def _by_default(case: Case) -> Case:
    """The case without the output's shape, if the default shape of an Input can replace it."""
    shapeless = replace(case, shapes=None)
    try:
        shapeless.graph()
    except UserError:
        return case
    return shapeless


def _begin(draw: Draw, floats: str) -> Writer:
    tame = floats == "tame" or (floats == "any" and draw(st.booleans()))
    regime = Regime(tame, strict=not tame or draw(st.booleans()))
    kinds = draw(st.sampled_from([[*_COMMON, *ALL], [*_COMMON, *ALL], _WIDE]))
    palette = tuple(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=3)))
    w = Writer(draw, regime, palette, transcendental=False)
    w.transcendental = tame and w.chance(25)
    w.lines.append('y, x, c = pt.vars("y x c")')
    w.ranks = w.pick([(1,), (2,), (2,), (1, 2), *[(3,), (2, 3)] * 2])  # half of the pictures have channels
    return w


def _inputs(w: Writer, shape: list[int]) -> dict[str, str]:
    """Write one or two Inputs with boundary conditions. Return the texts of their arrays."""
    arguments = {}
    for name in ("img", "other")[: w.pick([1, 1, 2])]:
        t = w.pick(w.palette)
        ndim = w.pick(w.ranks)
        extents = tuple(([*shape, w.pick([1, 2, 3, 3, 4, 5])] if ndim == 3 else shape)[:ndim])
        said = f"shape={(None, None, extents[-1])}" if ndim == 3 and w.chance(40) else f"ndim={ndim}"
        w.lines.append(f"{name} = pt.Input({name!r}, {t.name!r}, {said})")
        w.channels += [f"{name}.shape[2]"] if ndim == 3 else []
        size = 50.0 if t.is_float else float(max(t.max, -t.min))
        w.raw.append(RawInput(name, t, ndim, size))
        w.extents += [f"{name}.shape[{k}]" for k in range(min(ndim, 2))]
        around = f"{name}_b"
        w.lines.append(f"{around} = {boundary(w, name, Term('', t), ndim)}")
        w.add(around, Term("", t, size), ndim=ndim)
        arguments[name] = array(w, t, extents, w.regime.tame)
    return arguments


def _params(w: Writer) -> dict[str, str]:
    arguments = {}
    for name in ("k", "gain")[: w.number(0, 2)]:
        t: DType = w.pick(w.palette)
        w.lines.append(f"{name} = pt.Param({name!r}, {t.name!r})")
        w.params.append(Term(name, t, 4.0) if t.is_float else integer(name, t))
        arguments[name] = repr(_number(w, t))
    return arguments


def _number(w: Writer, t: DType) -> Any:
    if t.is_bool:
        return w.chance(50)
    return w.pick([0.5, 1.0, -3.25]) if t.is_float else w.pick([0, 1, 3, *[w.pick(extremes(t))] * 4])


def _outputs(w: Writer) -> tuple[tuple[str, ...], str, tuple[float, ...]]:
    """Choose Funcs that nothing reads, and perhaps another one, as outputs. Funcs that cannot be outputs themselves are
    copied to a new Func."""
    by_name = {s.name: s for s in w.sources if not s.name.endswith("_b")}
    chosen = [n for n in by_name if n not in w.consumed][-3:]
    if len(chosen) < 3 and w.chance(30):
        chosen = list(dict.fromkeys([*chosen, w.pick(list(by_name))]))
    names, shapes, slack = [], [], []
    for name in chosen:
        source = by_name[name]
        slack += [v.slack for v in source.values]
        if name not in w.outputs:
            name = _copied(w, name, source.ndim)
        names.append(name)
        needed = w.outputs[name]
        shapes.append(f"({''.join(f'{n}, ' for n in needed or _shape(w, source.ndim))})")
    return tuple(names), f"[{', '.join(shapes)}]", tuple(slack)


def _copied(w: Writer, name: str, ndim: int) -> str:
    copy, dims = w.func("o"), ("y", "x", "c")[:ndim]
    at = ", ".join(dims) or "()"
    w.lines.append(f"{copy}[{at}] = {name}[{at}]")
    w.outputs[copy] = None
    return copy


def _shape(w: Writer, ndim: int) -> list[str]:
    extents = [*w.extents[:2], "7", "5"]
    forms = ["{n}", "{n}", "{n}", "{n} // 2 + 1", "{n} + 3", "2 * {n}"]
    shape = [w.pick(forms).format(n=extents[k]) for k in range(min(ndim, 2))]
    shape = [e if w.chance(80) else w.pick([str(w.pick([0, 1, 3, 8, 13])), w.bound(0, 9)]) for e in shape]
    return [*shape, w.pick([*w.channels * 4, "2", "3", "4", str(w.number(1, 6))])] if ndim == 3 else shape
