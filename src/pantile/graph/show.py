"""A graph as text: one line per input, param, definition and output, and before a definition one per long expression
that it has several times.
"""

from __future__ import annotations

from collections.abc import Container

from ..expr.nodes import Expr
from ..expr.show import Sharing, as_written
from .nodes import Definition, Graph, InputInfo, Output, ParamInfo, Stage


def show(graph: Graph) -> str:
    """The whole pipeline, producers first."""
    lines = [f"pipeline {graph.name}"]
    lines += [_input(i) for i in graph.inputs]
    lines += [_param(p) for p in graph.params]
    taken = _names(graph)
    for s in graph.stages:
        lines += _stage(s, taken)
    lines += [_output(graph, o) for o in graph.outputs]
    return "\n".join(lines) + "\n"


def _names(graph: Graph) -> set[str]:
    """The names that occur in definitions."""
    own = {name for s in graph.stages for name in (s.name, *s.dims)}
    return own | {i.name for i in graph.inputs} | {p.name for p in graph.params}


def _input(i: InputInfo) -> str:
    extents = (str(i.size(k)) for k in range(i.ndim))
    return f"  {'input' if i.table is None else 'table'} {i.name}: {i.dtype}[{', '.join(extents)}]"


def _param(p: ParamInfo) -> str:
    return f"  param {p.name}: {p.dtype}" + (f" = {p.default}" if p.default is not None else "")


def _stage(s: Stage, taken: Container[str]) -> list[str]:
    types = ", ".join(str(t) for t in s.dtypes)
    lines = _definition(s, s.pure, taken, f": {types}", _stated(s))
    return lines + [line for u in s.updates for line in _definition(s, u, taken)]


def _definition(s: Stage, d: Definition, taken: Container[str], types: str = "", stated: str = "") -> list[str]:
    """The lines of a definition: its common subexpressions, and the definition itself."""
    condition = () if d.condition is None else (d.condition,)
    shared = Sharing((*d.indices, *d.values, *condition), taken, as_written=True)
    values = ", ".join(map(shared.text, d.values))
    right = values if len(d.values) == 1 else f"({values})"
    where = "".join(f" where {shared.text(e)}" for e in condition)
    left = f"{s.name}[{', '.join(map(shared.text, d.indices))}]"
    lets = [f"  let {name} = {text}" for name, text in shared.lets]
    return [*lets, f"  {left}{types} = {right}{stated}{_domain(d)}{where}"]


def _stated(s: Stage) -> str:
    if s.domain is None:
        return ""
    bounds = zip(s.dims, s.domain, strict=True)
    ranges = (f"{d} in {as_written(low)} .. {as_written(low + extent)}" for d, (low, extent) in bounds)
    return f"  for {', '.join(ranges)}"


def _domain(d: Definition) -> str:
    if not d.domain:
        return ""
    over = ", ".join(f"{r.name} in {as_written(r.min)} .. {as_written(r.min + r.extent)}" for r in d.domain)
    return f"  over {over}"


def _output(graph: Graph, o: Output) -> str:
    return f"  output {o.stage}: {', '.join(str(t) for t in graph.stage[o.stage].dtypes)}[{_list(o.shape)}]"


def _list(items: tuple[Expr, ...]) -> str:
    return ", ".join(map(as_written, items))
