"""`Pipeline`: what users call. Output Funcs in, a callable that takes and returns NumPy arrays out."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from .analysis.interval import Interval, interval
from .codegen.engine import LoadedCode, load
from .codegen.target import host, target
from .compile import Options, Variant, compile_kernel, to_assembly, to_llvm, to_loops
from .errors import RunError, UserError
from .expr.nodes import Var
from .expr.visit import variables
from .graph.build import build
from .graph.nodes import Graph
from .graph.outputs import separate_outputs
from .ir.show import show_program
from .lower.passes import Trace
from .reference.evaluate import evaluate
from .runtime.threads import pool
from .schedule.default import complete
from .schedule.plan import Split
from .schedule.resolve import resolve
from .schedule.schedule import Schedule


class Pipeline:
    """An image pipeline, compiled at its first call."""

    def __init__(self, outputs: Any, shape: Any = None, *, schedule: Schedule | None = None, name: str | None = None,
                 strict: bool = False, debug: bool = False) -> None:  # fmt: skip
        self.graph: Graph = separate_outputs(build(outputs, shape, name))
        self.options = Options(host(), strict, debug)
        self.schedule = complete(self.graph, schedule or Schedule(), host().vector_bits)
        self._kernels: dict[Variant, LoadedCode] = {}
        self._least = self._thresholds()
        self.trace = Trace()

    def with_schedule(self, schedule: Schedule) -> Pipeline:
        """The same pipeline, run another way."""
        other = object.__new__(Pipeline)
        other.__dict__ = dict(self.__dict__)
        other.schedule = complete(self.graph, schedule, host().vector_bits)
        other._kernels = {}
        other._least = other._thresholds()
        other.trace = Trace()
        return other

    def __call__(self, *, out: Any = None, num_threads: int | None = None, **arguments: Any) -> Any:
        inputs, params = self._arguments(arguments)
        shapes = self._shapes(inputs, params)
        outputs = self._buffers(shapes, out)
        kernel = self._kernel(inputs, outputs)
        self._run(kernel, inputs, outputs, params, num_threads)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def reference(self, **arguments: Any) -> Any:
        """The meaning: a plain NumPy evaluation."""
        inputs, params = self._arguments(arguments)
        results = evaluate(self.graph, inputs, params)
        return results[0] if len(results) == 1 else tuple(results)

    def loops(self) -> str:
        """The loop nest as pseudo-code."""
        return show_program(to_loops(self.graph, self.schedule, self._variant(), self.options, Trace()))

    def llvm(self) -> str:
        """The LLVM text before optimization."""
        return to_llvm(to_loops(self.graph, self.schedule, self._variant(), self.options, Trace()), self.options, Trace())

    def asm(self, target_name: str = "host") -> str:
        """The machine code."""
        options = Options(target(target_name), self.options.strict, self.options.debug)
        program = to_loops(self.graph, self.schedule, self._variant(), options, Trace())
        return to_assembly(to_llvm(program, options, Trace()), options)

    def _variant(self) -> Variant:
        """The usual one: everything contiguous in its last dim, and large enough."""
        names = [(i.name, i.ndim - 1) for i in self.graph.inputs]
        for o in self.graph.outputs:
            names += [(b, self.graph.stage[o.stage].ndim - 1) for b in self.graph.stage[o.stage].buffers]
        return Variant(tuple((n, d if d >= 0 else None) for n, d in names), self._facts(True))

    def _facts(self, large: bool) -> tuple[tuple[str, int], ...]:
        extents = [i.extent(k) for i in self.graph.inputs for k in range(i.ndim)]
        return tuple((e, max(1, self._least.get(e, 1)) if large else 0) for e in extents)

    def _thresholds(self) -> dict[str, int]:
        """Extents from which on every split block of the outputs fits."""
        graph, plan = resolve(self.graph, self.schedule, strict=self.options.strict)
        least: dict[str, int] = {}
        for o in graph.outputs:
            nest = plan.stages[o.stage].nests[0]
            for dim, shape in zip(graph.stage[o.stage].dims, o.shape, strict=True):
                names, block = {dim}, 1
                for r in nest.rewrites:
                    if isinstance(r, Split) and r.old in names:
                        names |= {r.outer, r.inner}
                        block = max(block, r.factor)
                if block > 1:
                    for v in variables(shape):
                        least[v] = max(least.get(v, 1), _needed(shape, v, 2 * block))
        return {v: n for v, n in least.items() if n <= 1 << 14}

    def _arguments(self, arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        inputs, params = {}, {}
        for i in self.graph.inputs:
            if i.name not in arguments:
                raise UserError(f"input {i.name} is missing; pass {i.name}=<array>")
            inputs[i.name] = np.asarray(arguments.pop(i.name))
        for p in self.graph.params:
            value = arguments.pop(p.name, p.default)
            if value is None:
                raise UserError(f"param {p.name} is missing; pass {p.name}=<number>")
            params[p.name] = value
        if arguments:
            raise UserError(f"unknown argument {next(iter(arguments))}")
        return inputs, params

    def _shapes(self, inputs: dict[str, Any], params: dict[str, Any]) -> list[tuple[int, ...]]:
        scope = {f"{n}.shape.{k}": Interval.point(e) for n, a in inputs.items() for k, e in enumerate(a.shape)}
        scope |= {n: Interval.point(v) for n, v in params.items()}
        return [tuple(int(interval(e, scope).low) for e in o.shape) for o in self.graph.outputs]

    def _buffers(self, shapes: list[tuple[int, ...]], out: Any) -> list[Any]:
        given = [None] * 99 if out is None else list(out) if isinstance(out, (tuple, list)) else [out]
        result = []
        for o, shape in zip(self.graph.outputs, shapes, strict=True):
            for t in self.graph.stage[o.stage].dtypes:
                g = given[len(result)]
                result.append(np.empty(shape, t.numpy) if g is None else g)
        return result

    def _kernel(self, inputs: dict[str, Any], outputs: list[Any]) -> LoadedCode:
        names = [b for o in self.graph.outputs for b in self.graph.stage[o.stage].buffers]
        arrays = {**inputs, **dict(zip(names, outputs, strict=True))}
        dense = tuple((n, _dense(a)) for n, a in arrays.items())
        extents = {f"{n}.shape.{k}": e for n, a in inputs.items() for k, e in enumerate(a.shape)}
        large = all(extents[v] >= n for v, n in self._least.items())
        variant = Variant(dense, self._facts(large))
        if variant not in self._kernels:
            code = compile_kernel(self.graph, self.schedule, variant, self.options, self.trace)
            self._kernels[variant] = load(code, self.graph.name, pool().symbols)
        return self._kernels[variant]

    def _run(self, kernel: LoadedCode, inputs: dict[str, Any], outputs: list[Any], params: dict[str, Any],
             num_threads: int | None) -> None:  # fmt: skip
        slots = []
        for a in (*inputs.values(), *outputs):
            slots += [a.ctypes.data, *a.shape, *(s // a.itemsize for s in a.strides)]
        report = (ctypes.c_int64 * 8)()
        packed = struct.pack(f"{len(slots)}q", *slots)
        for p in self.graph.params:
            packed += p.dtype.numpy.type(params[p.name]).tobytes().ljust(8, b"\0")
        packed += struct.pack("q", ctypes.addressof(report))
        function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64)(kernel.address)
        code = function(packed, num_threads or pool().get_num_threads())
        if code:
            raise RunError(f"code {code}: {list(report)}")


def _dense(a: Any) -> int | None:
    for k in range(a.ndim - 1, -1, -1):
        if a.strides[k] == a.itemsize:
            return k
    return None


def _needed(shape: Any, v: str, block: int) -> int:
    n = 1
    while n <= 1 << 14:
        low = interval(shape, {v: Interval(n, n), **{o: Interval(1 << 20, 1 << 20) for o in variables(shape) if o != v}}).low
        if isinstance(low, int) and low >= block:
            return n
        n *= 2
    return n


_ = Var
