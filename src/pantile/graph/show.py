"""A graph as text: one line per input, param, definition and output."""

from __future__ import annotations

from ..expr.nodes import Expr
from ..expr.show import as_written
from .nodes import Definition, Graph, InputInfo, Output, ParamInfo, Stage


def show(graph: Graph) -> str:
    """The whole pipeline, producers first."""
    lines = [f"pipeline {graph.name}"]
    lines += [_input(i) for i in graph.inputs]
    lines += [_param(p) for p in graph.params]
    for s in graph.stages:
        lines += _stage(s)
    lines += [_output(graph, o) for o in graph.outputs]
    return "\n".join(lines) + "\n"


def _input(i: InputInfo) -> str:
    extents = (str(i.size(k)) for k in range(i.ndim))
    return f"  {'input' if i.table is None else 'table'} {i.name}: {i.dtype}[{', '.join(extents)}]"


def _param(p: ParamInfo) -> str:
    return f"  param {p.name}: {p.dtype}" + (f" = {p.default}" if p.default is not None else "")


def _stage(s: Stage) -> list[str]:
    types = ", ".join(str(t) for t in s.dtypes)
    lines = [f"  {_left(s, s.pure)}: {types} = {_right(s.pure)}{_stated(s)}"]
    return lines + [f"  {_left(s, u)} = {_right(u)}{_domain(u)}" for u in s.updates]


def _left(s: Stage, d: Definition) -> str:
    return f"{s.name}[{_list(d.indices)}]"


def _right(d: Definition) -> str:
    return _list(d.values) if len(d.values) == 1 else f"({_list(d.values)})"


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
    return f"  over {over}" + (f" where {as_written(d.condition)}" if d.condition is not None else "")


def _output(graph: Graph, o: Output) -> str:
    return f"  output {o.stage}: {', '.join(str(t) for t in graph.stage[o.stage].dtypes)}[{_list(o.shape)}]"


def _list(items: tuple[Expr, ...]) -> str:
    return ", ".join(map(as_written, items))
