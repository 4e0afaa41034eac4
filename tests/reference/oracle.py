"""A second, independent reading of a graph: one pixel at a time, in Python's own numbers.

Every stage is a lazily computed function on all integer points. A stage after its k-th update is a layer over the
stage after the one before: for each value of the update's pure coordinates, the places that the update writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from pantile.expr.nodes import COMPARISON, FIXED_POINT, Bits, Cast, Const, Expr, Load, Op, Var
from pantile.expr.types import DType
from pantile.graph.nodes import Definition, Graph, Stage

Point = tuple[int, ...]
Values = tuple[Any, ...]


def brute_force(graph: Graph, inputs: dict[str, np.ndarray], params: dict[str, Any]) -> list[np.ndarray]:
    """What `evaluate` must return."""
    with np.errstate(all="ignore"):
        return Oracle(graph, inputs, params).outputs()


class Oracle:
    def __init__(self, graph: Graph, inputs: dict[str, np.ndarray], params: dict[str, Any]) -> None:
        self.graph = graph
        self.inputs = inputs | {i.name: i.table for i in graph.inputs if i.table is not None}
        self.scalars = {p.name: fit(params.get(p.name, p.default), p.dtype) for p in graph.params}
        for i in graph.inputs:
            self.scalars |= {i.extent(k): n for k, n in enumerate(self.inputs[i.name].shape)}
        self.known: dict[tuple[str, int, Point], Values] = {}
        self.layers: dict[tuple[str, int, Point], dict[Point, Values]] = {}

    def outputs(self) -> list[np.ndarray]:
        found = []
        for o in self.graph.outputs:
            stage = self.graph.stage[o.stage]
            shape = tuple(max(0, self.number(n)) for n in o.shape)
            arrays = [np.empty(shape, t.numpy) for t in stage.dtypes]
            for point in product(*map(range, shape)):
                for array, t, v in zip(arrays, stage.dtypes, self.at(stage, point), strict=True):
                    array[point] = stored(v, t)
            found += arrays
        return found

    def number(self, e: Expr) -> int:
        return int(self.evaluate(e, {}, None))

    def at(self, stage: Stage, point: Point, layer: int | None = None) -> Values:
        """The values at `point` after `layer` updates (after all by default)."""
        layer = len(stage.updates) if layer is None else layer
        key = (stage.name, layer, point)
        if key not in self.known:
            if layer == 0:
                env = dict(zip(stage.dims, point, strict=True))
                self.known[key] = tuple(self.evaluate(v, env, None) for v in stage.pure.values)
            else:
                self.known[key] = self.written(stage, layer, point).get(point) or self.at(stage, point, layer - 1)
        return self.known[key]

    def written(self, stage: Stage, layer: int, point: Point) -> dict[Point, Values]:
        """What update number `layer` writes for the pure coordinates of `point`."""
        update = stage.updates[layer - 1]
        pure = [k for k, i in enumerate(update.indices) if isinstance(i, Var) and i.name == stage.dims[k]]
        key = (stage.name, layer, tuple(point[k] for k in pure))
        if key not in self.layers:
            env = {stage.dims[k]: point[k] for k in pure}
            self.layers[key] = self.run(stage, layer, update, env)
        return self.layers[key]

    def run(self, stage: Stage, layer: int, update: Definition, env: dict[str, int]) -> dict[Point, Values]:
        writes: dict[Point, Values] = {}

        def own(point: Point) -> Values:
            for dim, coordinate in zip(stage.dims, point, strict=True):
                assert env.get(dim, coordinate) == coordinate, "an update reads itself across a pure dim"
            return writes.get(point) or self.at(stage, point, layer - 1)

        bounds = [(self.number(d.min), self.number(d.extent)) for d in update.domain]
        for r in product(*(range(low, low + extent) for low, extent in bounds)):
            here = env | {d.name: v for d, v in zip(update.domain, r, strict=True)}
            if update.condition is None or self.evaluate(update.condition, here, (stage, own)):
                place = tuple(int(self.evaluate(i, here, (stage, own))) for i in update.indices)
                writes[place] = tuple(self.evaluate(v, here, (stage, own)) for v in update.values)
        return writes

    def evaluate(self, e: Expr, env: dict[str, int], own: Any) -> Any:
        if isinstance(e, Const):
            return fit(e.value, e.dtype)
        if isinstance(e, Var):
            return fit(env[e.name], e.dtype) if e.name in env else self.scalars[e.name]
        if isinstance(e, Load):
            return self.load(e, env, own)
        if isinstance(e, Cast):
            return cast(self.evaluate(e.value, env, own), e.value.dtype, e.dtype)
        if isinstance(e, Bits):
            return bits(self.evaluate(e.value, env, own), e.value.dtype, e.dtype)
        assert isinstance(e, Op)
        return apply(e.op, e.args[-1].dtype, [self.evaluate(a, env, own) for a in e.args])

    def load(self, e: Load, env: dict[str, int], own: Any) -> Any:
        point = tuple(int(self.evaluate(i, env, own)) for i in e.indices)
        if e.buffer in self.inputs:
            array = self.inputs[e.buffer]
            inside = tuple(min(max(p, 0), n - 1) for p, n in zip(point, array.shape, strict=True))
            return loaded(array[inside], e.dtype) if array.size else fit(0, e.dtype)
        stage = self.graph.producer[e.buffer]
        which = stage.buffers.index(e.buffer)
        if own is not None and stage is own[0]:
            return own[1](point)[which]
        if stage.domain is not None:
            bounds = [(self.number(low), self.number(extent)) for low, extent in stage.domain]
            point = tuple(min(max(p, low), low + n - 1) for p, (low, n) in zip(point, bounds, strict=True))
        return self.at(stage, point)[which]


# ---- numbers


def fit(value: Any, t: DType) -> Any:
    """Wrapped or rounded into the type."""
    if t.is_bool:
        return bool(value)
    if t.is_int:
        value = int(value) & ((1 << t.bits) - 1)
        return value - (1 << t.bits) if value > t.max else value
    if t.kind == "bfloat":
        return bfloat(float(value))
    return float(t.numpy.type(value))


def bfloat(x: float) -> float:
    """Rounded to 8 significant bits, ties to even; the exponent range is that of float32."""
    if x == 0 or not math.isfinite(x):
        return x
    exponent = max(math.frexp(x)[1], -125)
    unit = math.ldexp(1.0, exponent - 8)
    result = round(x / unit) * unit
    return math.copysign(math.inf if abs(result) >= math.ldexp(1.0, 128) else abs(result), x)


def stored(value: Any, t: DType) -> Any:
    return np.float32(value).view(np.uint32) >> 16 if t.kind == "bfloat" else value


def loaded(value: Any, t: DType) -> Any:
    return float((np.uint32(value) << np.uint32(16)).view(np.float32)) if t.kind == "bfloat" else value.item()


def cast(value: Any, source: DType, to: DType) -> Any:
    if to.is_bool:
        return value != 0
    if to.is_int and source.is_float:
        if math.isnan(value):
            return 0
        return max(to.min, min(to.max, math.trunc(value) if math.isfinite(value) else value * math.inf))
    return fit(value, to)


def bits(value: Any, source: DType, to: DType) -> Any:
    return loaded(np.asarray(stored(value, source), source.numpy).view(to.numpy), to)


def apply(name: str, t: DType, args: list[Any]) -> Any:
    if name in ("select", "within"):
        return args[1 if args[0] else 2] if name == "select" else args[0]
    if name in COMPARISON:
        return bool(COMPARE[name](*args))
    if name in FIXED_POINT:
        return FIXED[name](t, *args)
    if t.is_float:
        return fit(FLOAT[name](t, *(np.float64(a) for a in args)), t)
    return fit(INTEGER[name](t, *args), t)


def clipped(t: DType, value: int) -> int:
    return max(t.min, min(t.max, value))


def extreme(choose: Callable[..., float], a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return choose((a, b), key=lambda v: (v, math.copysign(1, v)))


COMPARE: dict[str, Any] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
FIXED: dict[str, Any] = {
    "halving_add": lambda t, a, b: (a + b) // 2,
    "rounding_halving_add": lambda t, a, b: (a + b + 1) // 2,
    "saturating_add": lambda t, a, b: clipped(t, a + b),
    "saturating_sub": lambda t, a, b: clipped(t, a - b),
    "absd": lambda t, a, b: fit(abs(a - b), t) if t.is_float else abs(a - b),
    "mul_shift": lambda t, a, b, s: clipped(t, a * b // 2**s),
    "rounding_mul_shift": lambda t, a, b, s: clipped(t, (2 * a * b + 2**s) // 2 ** (s + 1)),
}
INTEGER: dict[str, Any] = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul": lambda t, a, b: a * b,
    "floordiv": lambda t, a, b: a // b if b else 0,
    "mod": lambda t, a, b: a % b if b else 0,
    "min": lambda t, a, b: min(a, b),
    "max": lambda t, a, b: max(a, b),
    "neg": lambda t, a: -a,
    "abs": lambda t, a: abs(a),
    "and": lambda t, a, b: a & b,
    "or": lambda t, a, b: a | b,
    "xor": lambda t, a, b: a ^ b,
    "not": lambda t, a: not a if t.is_bool else ~a,
    "shl": lambda t, a, b: a << b if 0 <= b < t.bits else 0,
    "shr": lambda t, a, b: a >> b if 0 <= b < t.bits else -(a < 0),
    "popcount": lambda t, a: bin(a % 2**t.bits).count("1"),
}
FLOAT: dict[str, Any] = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul": lambda t, a, b: a * b,
    "div": lambda t, a, b: a / b,
    "floordiv": lambda t, a, b: np.floor(fit(a / b, t)),
    "mod": lambda t, a, b: a - fit(b * np.floor(fit(a / b, t)), t),
    "min": lambda t, a, b: extreme(min, a, b),
    "max": lambda t, a, b: extreme(max, a, b),
    "neg": lambda t, a: -a,
    "abs": lambda t, a: abs(a),
    "sqrt": lambda t, a: np.sqrt(a),
    "rsqrt": lambda t, a: 1 / np.float64(fit(np.sqrt(a), t)),
    "exp": lambda t, a: np.exp(a),
    "log": lambda t, a: np.log(a),
    "sin": lambda t, a: np.sin(a),
    "cos": lambda t, a: np.cos(a),
    "tan": lambda t, a: np.tan(a),
    "tanh": lambda t, a: np.tanh(a),
    "asin": lambda t, a: np.arcsin(a),
    "acos": lambda t, a: np.arccos(a),
    "erf": lambda t, a: math.erf(a),
    "cbrt": lambda t, a: np.cbrt(a),
    "atan2": lambda t, a, b: np.arctan2(a, b),
    "pow": lambda t, a, b: np.power(a, b),
    "floor": lambda t, a: np.floor(a),
    "ceil": lambda t, a: np.ceil(a),
    "round": lambda t, a: np.rint(a),
    "trunc": lambda t, a: np.trunc(a),
}  # fma is tested by itself
