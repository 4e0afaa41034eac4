"""The ordered list of passes: graph + plan -> loop-IR program. The runner names, times, shows and verifies them.

inline -> expand unrolled sums -> convert what is stored -> share places -> narrow integers -> fit blocks -> build
loop nest (regions, sliding) -> fold storage -> split storage -> simplify -> trim loops -> unswitch -> partition loops
-> vectorize -> unroll -> collect lanes -> promote accumulators -> share memory -> flatten storage -> simplify ->
tighten places -> interleave channels -> associate sums -> carry values; and before code is made: outline kernels
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import NamedTuple, TypeVar

from .. import progress
from ..dataclass import dataclass
from ..expr.linear import Facts
from ..expr.types import INT32
from ..graph.nodes import Graph
from ..ir.nodes import BufferArg, Program, ScalarArg, Stmt, Strides
from ..ir.verify import verify
from ..schedule.plan import Plan
from .associate import associate
from .carry import carry
from .collect import collect
from .convert import convert
from .expand import expand
from .fit import fit
from .flatten import flatten
from .fold import fold_storage
from .inline import inline
from .interleave import interleave
from .names import loop_name
from .narrow import narrow
from .nest import build_nest
from .outline import outline
from .partition import partition
from .pixels import pixels
from .places import share_places
from .promote import promote
from .share import share_memory
from .simplify import clean_program, simplify_program
from .split_storage import split_storage
from .tighten import tighten
from .trim import trim
from .unroll import unroll
from .unswitch import unswitch
from .vectorize import vectorize

T = TypeVar("T")


class Refused(NamedTuple):
    """A loop of a definition that was to be unrolled or partitioned, and is not: it would be too much code."""

    stage: str
    definition: int
    loop: str
    verb: str


@dataclass
class Trace:
    """What the runner notes: seconds per pass, what there was no room for, and the loop nest after each pass if asked
    to."""

    keep_stages: bool = False
    check: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    refused: set[Refused] = field(default_factory=set)
    stages: dict[str, Stmt] = field(default_factory=dict)

    def run(self, name: str, work: Callable[[], T]) -> T:
        """Time one pass."""
        progress.step(name)
        start = time.perf_counter()
        result = work()
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if self.keep_stages and isinstance(result, Stmt):
            self.stages[name] = result
        return result


def lower(
    graph: Graph, plan: Plan, strides: Mapping[str, Strides], facts: Facts, trace: Trace, small: bool = False,
    strict: bool = False,
) -> Program:  # fmt: skip
    """All passes. `strides`: what is known of those of each input and output. `small`: arrays are, so that blocks may
    be cut off where they are whole in others. `strict`: floats are computed in the order in which they are written."""
    buffers, scalars = arguments(graph, strides)
    by_verb: dict[str, list[str]] = {"partition": [], "unroll": []}  # loops that there was no room for
    checked = graph
    graph = trace.run("inline", lambda: inline(graph, plan))
    graph, plan = trace.run("expand", lambda: expand(graph, plan))
    graph = trace.run("convert", lambda: convert(graph))
    graph = trace.run("places", lambda: share_places(graph))
    graph = trace.run("narrow", lambda: narrow(graph))
    plan = trace.run("fit", lambda: fit(graph, plan, facts))
    nest = trace.run("nest", lambda: build_nest(graph, checked, plan, facts, small))
    folds = storage_folds(graph, plan, nest.folds)
    body = trace.run("fold", lambda: fold_storage(nest.body, folds))
    body = trace.run("split", lambda: split_storage(body, graph, plan))
    body = trace.run("clean", lambda: clean_program(body, facts))
    body = trace.run("trim", lambda: trim(body, facts))
    body = trace.run("unswitch", lambda: unswitch(body))
    modes = partition_modes(graph, plan)
    body = trace.run("partition", lambda: partition(body, facts, modes, nest.ordered, by_verb["partition"].append))
    body = trace.run("vectorize", lambda: vectorize(body))
    body = trace.run("unroll", lambda: unroll(body, by_verb["unroll"].append))
    body = trace.run("collect", lambda: collect(body))
    body = trace.run("promote", lambda: promote(body))
    body = trace.run("share", lambda: share_memory(body, facts))
    body = trace.run("flatten", lambda: flatten(body, graph, plan, buffers, facts))
    body = trace.run("simplify", lambda: simplify_program(body, facts))
    if plan.target.index_bits > INT32.bits:
        body = trace.run("tighten", lambda: tighten(body, facts, [n for o in graph.outputs for n in o.shape]))
    body = trace.run("pixels", lambda: pixels(body))
    body = trace.run("interleave", lambda: interleave(body))
    body = trace.run("associate", lambda: associate(body, strict))
    body = trace.run("carry", lambda: carry(body))
    trace.refused = {loop for verb, names in by_verb.items() for loop in refused_loops(graph, plan, verb, names)}
    program = Program(graph.name, buffers, scalars, body)
    if trace.check:
        trace.run("verify", lambda: verify(program, flat=True))
    return program


def outlined(program: Program, trace: Trace, debug: bool = False) -> Program:
    """The last pass, on its own: people look at loops before it. `debug`: every access is told by its buffer's name."""
    program = trace.run("outline", lambda: outline(program, share=not debug))
    if trace.check:
        trace.run("verify", lambda: verify(program, flat=True, outlined=True))
    return program


def arguments(graph: Graph, strides: Mapping[str, Strides]) -> tuple[tuple[BufferArg, ...], tuple[ScalarArg, ...]]:
    """The kernel's arguments: inputs, then outputs (one buffer per value), then params."""
    inputs = [BufferArg(i.name, i.dtype, i.ndim, False, strides[i.name]) for i in graph.inputs]
    outputs = [
        BufferArg(b, t, graph.stage[o.stage].ndim, True, strides[b])
        for o in graph.outputs
        for b, t in zip(graph.stage[o.stage].buffers, graph.stage[o.stage].dtypes, strict=True)
    ]
    return (*inputs, *outputs), tuple(ScalarArg(p.name, p.dtype) for p in graph.params)


def storage_folds(graph: Graph, plan: Plan, slid: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, int]]:
    """Circular extents: what sliding needs, or the larger one asked for. Neither the contiguous dim nor one that is
    split is ever folded."""
    folds: dict[str, dict[int, int]] = {}
    for stage in graph.stages:
        p = plan.stages[stage.name]
        for buffer in stage.buffers:
            for k, window in slid.get(buffer, {}).items():
                if stage.dims[k] != p.storage[-1] and not p.splits_storage(stage.dims[k]):
                    folds.setdefault(buffer, {})[k] = max(window, p.folds.get(stage.dims[k], 0))
    return folds


def partition_modes(graph: Graph, plan: Plan) -> dict[str, str]:
    """Loop variable -> how to partition it, where not automatic."""
    modes = {}
    for stage in graph.stages:
        for k, nest in enumerate(plan.stages[stage.name].nests):
            modes.update({loop_name(stage, k, x.name): x.partition for x in nest.loops if x.partition != "auto"})
    return modes


def refused_loops(graph: Graph, plan: Plan, verb: str, names: Collection[str]) -> Iterator[Refused]:
    """The loops of these variables, as schedules name them."""
    for stage in graph.stages if names else ():
        for k, nest in enumerate(plan.stages[stage.name].nests):
            found = [x.name for x in nest.loops if loop_name(stage, k, x.name) in names]
            yield from (Refused(stage.name, k, loop, verb) for loop in found)
