"""Random reads at indices that reflect, repeat or combine coordinates, under conditions on these."""

from __future__ import annotations

from dataclasses import replace

from .conditions import condition
from .grammar import Scope
from .writer import DIMS, Writer

# Indices made of a coordinate {v}, another coordinate {w}, and numbers {c} and {n}.
_FORMS = [
    "pt.select({v} < {c}, {v}, {n} - {v})", "pt.select({w} > {c}, {v}, {v} // 2)", "pt.maximum({v} + {w}, {n})",
    "pt.minimum({v} + {w}, {n})", "pt.maximum({v} - 3, {w} - {c})", "pt.minimum({v}, {n} - {v})", "pt.abs({v} - {c})",
    "({v} & 3) + {c}", "{v} - {v} // 4 * 4", "{v} // 4 * 4 + {c}", "pt.clamp({v} * {w}, 0, {n})", "{v} * {v} // 16",
    "pt.clamp(12 // ({v} - {c}), -{n}, {n})", "pt.clamp({v}, {c}, {w} + {c})", "pt.clamp({v} - {w}, -{c}, {c})",
    "pt.cast('int32', pt.cast('int8', {v} * 16)) // 16", "pt.minimum({v} % 5, {w})", "{v} + {c}", "{v}",
]  # fmt: skip


def folded_place(w: Writer) -> None:
    """A selection among reads of stages, sometimes summed over a small domain."""
    source = w.source(least=1)
    dims = DIMS[source.ndim]
    domain, loops, _ = w.small_domain() if w.chance(30) else ("", (), 1)
    scope = Scope(dims, loops, depth=1)
    value = w.regime.scaled(replace(source.values[0], text=""))

    one = f"pt.cast({value.dtype.name!r}, 1)"

    def read() -> str:
        places = [_place(w, d, scope) if w.chance(70) else d for d in dims]
        text = f"{source.name}[{', '.join(places)}]" + ("[0]" if len(source.values) > 1 else "")
        return w.regime.scaled(replace(source.values[0], text=text)).text

    text = f"pt.select({condition(w, scope).text}, {read()}, {read() if w.chance(50) else one})"
    if w.chance(30):
        text = f"pt.select({condition(w, scope).text}, {text}, {read()})"
    name = w.func("w")
    reduced = f"pt.max({text}, over={domain})" if domain else text
    w.lines.append(f"{name}[{', '.join(dims)}] = {reduced}")
    w.grow(source.growth)
    w.add(name, replace(value, size=max(value.size, 1.0)), ndim=len(dims))
    w.outputs[name] = None


def _place(w: Writer, v: str, scope: Scope) -> str:
    other = w.pick(scope.coordinates)
    text = w.pick(_FORMS).format(v=v, w=other, c=w.number(1, 9), n=w.pick([4, 8, 15]))
    return f"{text} + {w.pick(scope.reduction)}" if scope.reduction and w.chance(50) else text
