"""Random tables, and Funcs whose values are the indices at which others are read."""

from __future__ import annotations

from dataclasses import replace

from pantile.expr.types import FLOAT32

from .grammar import Scope
from .indices import bounded
from .stages import boundary
from .terms import Term, integer
from .writer import DIMS, Writer


def constant_table(w: Writer) -> None:
    """A constant table: a NumPy array that belongs to the pipeline."""
    t = w.pick([t for t in w.palette if t.kind != "bfloat"] or [FLOAT32])  # NumPy has no bfloat16
    numbers = [w.number(0, 1) if t.is_bool else w.number(-9 if t.is_signed or t.is_float else 0, 50) for _ in range(7)]
    name = w.fresh("t")
    w.lines.append(f"{name} = {boundary(w, f'pt.table(np.array({numbers}, {t.name!r}))', Term('', t), 1)}")
    w.add(name, Term("", t, 50.0) if t.is_float else integer("", t), ndim=1, table=True)


def read_at_places(w: Writer) -> None:
    """A Func of indices, and a Func that reads a third one at these, bounded only by the range of the indices'
    values."""
    source = w.source(least=1)
    dims = DIMS[source.ndim]
    name = w.func("at")
    scope = Scope(dims, depth=2)
    w.lines.append(f"{name}[{', '.join(dims)}] = {_place(w, scope)}")
    axis, value = w.number(0, source.ndim - 1), source.values[0]
    read = f"{name}[{', '.join(f'{d} + {w.number(-1, 1)}' for d in dims)}]"
    wide = f"pt.cast('int32', {read})"
    place = w.pick([read, f"{wide} + {w.number(-2, 2)}", f"2*{wide}", f"{wide} + {w.pick(dims)}"])
    text = f"{source.name}[{', '.join(place if k == axis else d for k, d in enumerate(dims))}]"
    text += "[0]" if len(source.values) > 1 else ""
    result = w.func("v")
    term = w.regime.scaled(replace(value, text=text))
    w.lines.append(f"{result}[{', '.join(dims)}] = {term.text}")
    w.grow(source.growth)
    w.add(result, term, ndim=len(dims))
    w.outputs[result] = None


def _place(w: Writer, scope: Scope) -> str:
    """Bounded data; sometimes a float scaled by a Param, whose bounds are known only at the call."""
    scales = [p for p in w.params if p.dtype.is_float]
    e = w.exact(scope)
    if e.dtype.is_float and scales and w.chance(50):
        return f"pt.cast('int32', pt.clamp({e.text}, 0, 3) * {w.pick(scales).text})"
    return bounded(w, e if e.dtype.is_int else w.exact_int(scope), scope)
