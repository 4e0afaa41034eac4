"""Build a `Graph` from output Funcs and their shapes: all stages that they need, producers first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import UserError, UserTypeError, shown
from ..expr.build import expr
from ..expr.nodes import Const, Expr
from ..forks import Lock
from ..graph.names import Names
from ..graph.nodes import Graph, InputInfo, Output, ParamInfo
from .func import Func
from .inputs import Extent, Input, Table
from .iterate import IteratedFunc, apply_steps
from .scan import scan
from .translate import Translator
from .variables import Param, Scalar, known_at_call

Shape = tuple[Expr, ...]


_applying = Lock()  # Funcs of steps whose number a Param gives have one number of steps at a time


def counted(outputs: Any) -> list[Param]:
    """The Params that give the numbers of steps at the call."""
    order = _producers_first(_outputs(outputs))
    return list({id(f.times): f.times for f in order if isinstance(f, IteratedFunc)}.values())


def build(
    outputs: Func | Sequence[Func], shapes: Any = None, name: str | None = None, counts: Mapping[str, int] | None = None
) -> Graph:
    """The graph that computes `outputs`; `counts` gives the numbers of steps by the names of Params.

    `shapes` is one shape for a single Func, or a sequence with one shape (or None) per output; a shape is a tuple of
    integers and integer expressions. An output without one has the shape of the first declared Input of equal rank.
    """
    with _applying:
        return _build(outputs, shapes, name, counts or {})


def _build(outputs: Func | Sequence[Func], shapes: Any, name: str | None, counts: Mapping[str, int]) -> Graph:
    funcs = _outputs(outputs)
    order = apply_steps(lambda: _producers_first(funcs), counts)
    given = _shapes(funcs, [shapes] if isinstance(outputs, Func) else shapes)
    inputs, params = _arguments(order, [e for shape in given if shape is not None for e in shape])
    full = [_default_shape(f, inputs) if s is None else s for f, s in zip(funcs, given, strict=True)]
    names, given_names = _assign_names(order, inputs, params)
    _check_coordinates(order, params)
    extents = [e.name for i in inputs for e in i.shape if isinstance(e, Extent)]
    translator = Translator(names, _buffers(order, given_names, inputs), [p.name for p in params], extents, order)
    for func in order:
        translator.add(func, given_names[id(func)])
    return Graph(
        name or given_names[id(funcs[0])],
        tuple(_info(i, given_names) for i in inputs),
        tuple(ParamInfo(p.name, p.dtype, p.default, p.where) for p in params),
        tuple(translator.stages),
        tuple(
            Output(given_names[id(f)], tuple(translator.extent(e) for e in shape))
            for f, shape in zip(funcs, full, strict=True)
        ),
    )


def _info(i: Input, given_names: dict[int, str]) -> InputInfo:
    return InputInfo(given_names[id(i)], i.dtype, i.ndim, i.where, i.array if isinstance(i, Table) else None, i.known)


def _outputs(outputs: Any) -> list[Func]:
    funcs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    if not funcs:
        raise UserError("a pipeline needs at least one output Func")
    for k, func in enumerate(funcs):
        if not isinstance(func, Func):
            raise UserTypeError(
                f"an output of a pipeline must be a Func, not {shown(func)}; define one, like f[y, x] = ..."
            )
        if not func.defined:
            raise UserError(f"{func} (made at {func.where}) is an output but not defined; write {func.name}[...] = ...")
        if any(func is other for other in funcs[:k]):
            raise UserError(f"{func} (defined at {func.where}) is listed twice as an output")
    return funcs


def _producers_first(outputs: Iterable[Func]) -> list[Func]:
    """Every Func that the outputs need, once, without recursion: chains may have thousands of stages."""
    order: list[Func] = []
    state: dict[int, bool] = {}  # id -> whether it is in `order`
    stack = list(reversed(list(outputs)))
    while stack:
        func = stack[-1]
        if id(func) in state:
            stack.pop()
            if not state[id(func)]:
                state[id(func)] = True
                order.append(func)
            continue
        state[id(func)] = False
        stack.extend(f for f in reversed(_reads(func)) if id(f) not in state)
    return order


def _reads(func: Func) -> list[Func]:
    funcs: dict[int, Func] = {}
    for equation in func.equations:
        for read in equation.mentions.all_reads():
            if isinstance(read.source, Func) and read.source is not func:
                funcs[id(read.source)] = read.source
    return list(funcs.values())


# ---- shapes


def _shapes(funcs: list[Func], shapes: Any) -> list[Shape | None]:
    if shapes is None:
        return [None] * len(funcs)
    if not isinstance(shapes, (tuple, list)) or len(shapes) != len(funcs):
        raise UserError(f"shape={shown(shapes)} must hold one shape per output, and there are {len(funcs)} outputs")
    return [None if s is None else _shape(f, s) for f, s in zip(funcs, shapes, strict=True)]


def _shape(func: Func, shape: Any) -> Shape:
    if not isinstance(shape, (tuple, list)):
        shape = (shape,)
    if len(shape) != func.ndim:
        raise UserError(
            f"the shape {_show(shape)} has {len(shape)} extents, but {func} (defined at {func.where}) has "
            f"{func.ndim} dimensions: {', '.join(func.dims)}"
        )
    extents = tuple(known_at_call(e, f"an extent of the shape of {func}") for e in shape)
    for e in extents:
        if isinstance(e, Const) and e.value < 0:
            raise UserError(f"the shape {_show(shape)} of {func} has a negative extent")
    return extents


def _show(shape: Iterable[Any]) -> str:
    return f"({', '.join(str(e) if isinstance(e, Expr) else shown(e) for e in shape)})"


def _default_shape(func: Func, inputs: list[Input]) -> Shape:
    channels = () if func.channels is None else (func.channels,)
    leading = func.ndim - len(channels)
    for i in inputs:
        if i.ndim in (func.ndim, leading) and not isinstance(i, Table):
            return tuple(map(expr, (*i.shape[:leading], *channels)))
    raise UserError(
        f"the shape of output {func} (defined at {func.where}) is not known: no Input has {func.ndim} dimensions to "
        f"take it from; write shape=({', '.join(f'extent of {d}' for d in func.dims)})"
    )


# ---- names


def _arguments(order: list[Func], extents: Iterable[Expr]) -> tuple[list[Input], list[Param]]:
    """The Inputs and Params that are used, in the order of their declaration."""
    inputs: dict[int, Input] = {}
    params: dict[int, Param] = {}

    def note(scalars: Iterable[Scalar]) -> None:
        for s in scalars:
            if isinstance(s, Extent):
                inputs[s.source.order] = s.source
            elif isinstance(s, Param):
                params[s.order] = s

    note(scan(extents).scalars.values())
    for func in order:
        note(scan(e for bound in func.domain or () for e in bound).scalars.values())
        for equation in func.equations:
            note(equation.mentions.scalars.values())
            for read in equation.mentions.all_reads():
                if isinstance(read.source, Input):
                    inputs[read.source.order] = read.source
    return [inputs[k] for k in sorted(inputs)], [params[k] for k in sorted(params)]


def _assign_names(order: list[Func], inputs: list[Input], params: list[Param]) -> tuple[Names, dict[int, str]]:
    """A name for every Func and Input. Users' names are assigned first, so that generated ones give way to them."""
    names = Names()
    unnamed = {id(i) for i in inputs if isinstance(i, Table) and not i.named} | {id(f) for f in order if not f.named}
    result = {id(i): names.claim(i.name, i.kind, i.where) for i in inputs if id(i) not in unnamed}
    for p in params:
        names.claim(p.name, "Param", p.where)
    result |= {id(f): names.claim(f.name, "Func", f.where) for f in order if id(f) not in unnamed}
    result |= {id(s): names.fresh(s.name) for s in (*inputs, *order) if id(s) in unnamed}
    return names, result


def _check_coordinates(order: list[Func], params: list[Param]) -> None:
    by_name = {p.name: p for p in params}
    for func in order:
        for dim in func.dims:
            if dim in by_name:
                raise UserError(
                    f"Param {dim!r} (from {by_name[dim].where}) has the name of a coordinate of {func} "
                    f"(defined at {func.where}); rename one of them"
                )


def _buffers(order: list[Func], given_names: dict[int, str], inputs: list[Input]) -> dict[int, tuple[str, ...]]:
    result: dict[int, tuple[str, ...]] = {id(i): (given_names[id(i)],) for i in inputs}
    for f in order:
        name = given_names[id(f)]
        result[id(f)] = (name,) if f.arity == 1 else tuple(f"{name}.{k}" for k in range(f.arity))
    return result
