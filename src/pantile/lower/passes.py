"""The ordered list of lowering passes: graph + plan -> loop-IR program. Each declares the properties of its result, for
later passes to rely on. The runner names, times and verifies the passes.

    GRAPH_PASSES    inline -> expand unrolled sums -> convert stored values -> share indices -> narrow integers
                    -> fit blocks
    nest            regions, sliding, loops
    LOOP_PASSES     fold storage -> split storage -> simplify -> trim loops -> unswitch -> partition loops -> vectorize
                    -> unroll -> collect lanes -> promote accumulators -> share memory -> flatten storage -> simplify
                    -> narrow indices -> pixels -> interleave channels -> associate sums -> carry values
                    on GPUs: without those for vectors of CPUs, and with blocks -> edges of blocks -> threads
    outline         kernels, before code is generated; on GPUs with one block loop each, wide indices, loops of
                    persistent blocks, barriers, and fences
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from functools import partial
from typing import NamedTuple, ParamSpec, TypeVar

from .. import progress, verification
from ..dataclass import dataclass
from ..errors import UserError
from ..expr.linear import Facts
from ..expr.types import INT32
from ..graph.nodes import Graph
from ..graph.verify import verify as verify_graph
from ..ir.nodes import BufferArg, Program, Realize, ScalarArg, Stmt, Strides
from ..ir.verify import Property, Verifier
from ..schedule.fit_splits import fit_splits
from ..schedule.limits import MOST_LANES
from ..schedule.plan import Plan
from ..target.kinds import Kind
from . import gpu
from .carry import carry
from .collect import collect
from .flatten import flatten
from .fold_storage import fold_storage
from .graph_passes import convert, expand, inline, narrow, share_indices
from .interleave import interleave
from .names import loop_name, made_for
from .narrow_indices import narrow_indices
from .nest import LoopNest, build_nest
from .outline import outline
from .partition import partition
from .pixels import pixels
from .promote import promote
from .reassociate import reassociate
from .refuse import not_for_warpgroups, not_in_two_memories, not_of_lanes, not_of_one_thread
from .root_stages import of_root_stages
from .share_memory import share_memory
from .simplify import clean_program, simplify_program
from .split_storage import split_storage, stored_dims
from .trim import trim
from .unroll import unroll
from .unswitch import unswitch
from .vectorize import vectorize

T = TypeVar("T")
Given = ParamSpec("Given")


GPU_LANES = 4  # the most elements that one instruction of a GPU loads or stores


class Device(Enum):
    """The kind of device that loops run on. Some passes are for only one kind."""

    CPU = "cpu"
    GPU = "gpu"


CPU, GPU = frozenset({Device.CPU}), frozenset({Device.GPU})


class Refused(NamedTuple):
    """A loop of a definition that was to be unrolled or partitioned, but was not because this would be too much
    code."""

    stage: str
    definition: int
    loop: str
    verb: str


@dataclass
class Trace:
    """Notes of the pass runner: seconds per pass, and refused loops. With `check`, each pass is verified."""

    check: bool = field(default_factory=verification.is_enabled)
    seconds: dict[str, float] = field(default_factory=dict)
    refused: set[Refused] = field(default_factory=set)

    def run(self, name: str, work: Callable[Given, T], *args: Given.args, **kwargs: Given.kwargs) -> T:
        """Run and time one pass."""
        progress.step(name)
        start = time.perf_counter()
        result = work(*args, **kwargs)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        return result


@dataclass(frozen=True)
class LoweringRequest:
    """What to compile code for.

    `facts` has the known facts about extents. With `small`, arrays are small, so that blocks may be clipped that are
    otherwise whole. With `strict`, floats are computed in the order in which they are written.
    """

    buffers: tuple[BufferArg, ...]
    facts: Facts
    small: bool
    strict: bool
    multiples: tuple[tuple[str, int], ...]  # strides, and the numbers that they are multiples of


@dataclass(frozen=True)
class GraphPass:
    """A pass from graph and plan to graph and plan. Its result satisfies the graph verifier (`graph/verify.py`)."""

    name: str
    run: Callable[[Graph, Plan, LoweringRequest], tuple[Graph, Plan]]


@dataclass(frozen=True)
class Built:
    """The inputs from which the loops were built, for the passes that change them, and notes on the loops."""

    graph: Graph
    plan: Plan
    nest: LoopNest
    request: LoweringRequest
    no_room: dict[str, list[str]]  # verb -> the loops that were refused

    def of_root_stages(self, asked: Collection[str]) -> Built:
        """This, with only the loops of some stages at root."""
        return replace(self, nest=replace(self.nest, body=of_root_stages(self.nest.body, asked)))

    @property
    def facts(self) -> Facts:
        return self.request.facts

    def not_of_threads(self, s: Realize, why: str) -> UserError:
        """The error for a buffer in registers that the threads of a block cannot keep."""
        return not_of_one_thread(self.graph.producer[s.buffer], s.memory, why)

    def not_of_lanes(self, buffer: str, why: str) -> UserError:
        """The error for a buffer that the lanes of a warp cannot share."""
        return not_of_lanes(self.graph.producer.get(made_for(buffer)), buffer, why)

    def not_for_warpgroups(self, sums: str, factor: str) -> UserError:
        """The error for a factor that is not laid out in shared memory as the instructions of warpgroups read it."""
        stage = self.graph.producer[sums]
        loops = [x for nest in self.plan.stages[stage.name].nests for x in nest.loops]
        mark = next((x.mark for x in loops if x.kind is Kind.TENSOR_CORE), None)
        return not_for_warpgroups(stage, mark, factor)

    def hybrid_tiles(self) -> dict[str, gpu.passes.TileSplit]:
        """Map the buffers that are split over two memories to their splits."""
        splits = dict[str, gpu.passes.TileSplit]()
        for stage in self.graph.stages:
            tile = self.plan.stages[stage.name].hybrid
            if tile is not None:
                no = partial(not_in_two_memories, stage, tile.directive)
                lanes = {stage.dims.index(dim): n for dim, n in tile.lanes.items()}
                split = gpu.passes.TileSplit(stage.dims.index(tile.dim), tile.first, lanes, no)
                splits |= dict.fromkeys(stage.buffers, split)
        return splits

    def storage(self) -> dict[str, gpu.passes.Storage]:
        """How buffers are stored in memory."""
        storage = dict[str, gpu.passes.Storage]()
        for stage in (s for s in self.graph.stages if s.dims):
            plan = self.plan.stages[stage.name]
            dims = stored_dims(stage.dims, plan.storage_splits)
            order, pads = [dims.index(d) for d in plan.storage], [plan.pads.get(d, 0) for d in dims]
            storage |= dict.fromkeys(stage.buffers, gpu.passes.Storage(tuple(order), tuple(pads)))
        return storage

    def starts(self) -> gpu.passes.Starts:
        """Facts about where the blocks of GPUs begin."""
        slots = {b for s in self.graph.stages if self.plan.stages[s.name].ahead for b in s.buffers}
        return gpu.passes.Starts({b.name: b for b in self.request.buffers}, dict(self.request.multiples), slots)


@dataclass(frozen=True)
class LoopPass:
    """A pass from loops to loops.

    The result is well formed (`ir/verify.py`). It has the properties `gives`, and those that the loops had before
    except `takes`.
    """

    name: str
    run: Callable[[Stmt, Built], Stmt]
    gives: frozenset[Property] = frozenset()
    takes: frozenset[Property] = frozenset()
    on: frozenset[Device] = frozenset(Device)


@dataclass(frozen=True)
class ProgramPass:
    """A pass from program to program. These are the last passes, after the loops that people look at. `run` is told
    whether it is for a debug build, in which every access is identified by its buffer's name."""

    name: str
    run: Callable[[Program, bool], Program]
    gives: frozenset[Property] = frozenset()
    on: frozenset[Device] = frozenset(Device)


GRAPH_PASSES = (
    GraphPass("inline", lambda graph, plan, _: (inline(graph, plan), plan)),
    GraphPass("expand", lambda graph, plan, _: expand(graph, plan)),
    GraphPass("convert", lambda graph, plan, _: (convert(graph, plan), plan)),
    GraphPass("share_indices", lambda graph, plan, _: (share_indices(graph), plan)),
    GraphPass("narrow", lambda graph, plan, _: (narrow(graph, plan), plan)),
    GraphPass("fit_splits", lambda graph, plan, request: (graph, fit_splits(graph, plan, request.facts))),
)
# Properties of the loops that `nest` builds.
OF_NEST = frozenset({Property.SCALAR, Property.CONSTANT_LANES, Property.BOXES})
LOOP_PASSES = (
    LoopPass("fold_storage", lambda body, of: fold_storage(body, storage_folds(of.graph, of.plan, of.nest.folds))),
    LoopPass("split_storage", lambda body, of: split_storage(body, of.graph, of.plan)),
    LoopPass("decide_layouts", lambda body, of: gpu.passes.decide_layouts(body), on=GPU),
    LoopPass("clean", lambda body, of: clean_program(body, of.facts), gives=frozenset({Property.CLEAN})),
    LoopPass("trim", lambda body, of: trim(body, of.facts), takes=frozenset({Property.CLEAN})),
    LoopPass("unswitch", lambda body, of: unswitch(body)),
    LoopPass("partition", lambda body, of: partition(
        body, of.facts, partition_modes(of.graph, of.plan), of.nest.ordered, of.no_room["partition"].append), on=CPU),
    LoopPass("make_blocks", lambda body, of: gpu.passes.make_blocks(body), on=GPU),
    LoopPass("partition_blocks", lambda body, of: gpu.passes.partition_blocks(
        body, of.facts, {loop for loop, mode in partition_modes(of.graph, of.plan).items() if mode == "never"},
        of.no_room["partition"].append, of.starts()), on=GPU),
    LoopPass("tensorize", lambda body, of: gpu.passes.tensorize(
        body, of.storage(), of.not_for_warpgroups, of.request.small),
             takes=frozenset({Property.SCALAR}), on=GPU),
    LoopPass("vectorize", lambda body, of: vectorize(body),
             gives=frozenset({Property.NO_VECTOR_LOOPS}), takes=frozenset({Property.SCALAR})),
    LoopPass("unroll", lambda body, of: unroll(
        body, of.no_room["unroll"].append, GPU_LANES if of.plan.target.has_blocks else MOST_LANES),
             gives=frozenset({Property.NO_UNROLLED_LOOPS})),
    LoopPass("collect", lambda body, of: collect(body, [b for b in of.request.buffers if not b.writable])),
    LoopPass("promote", lambda body, of: promote(body)),
    LoopPass("share_memory", lambda body, of: share_memory(body, of.facts), on=CPU),
    LoopPass("hybrid_tiles", lambda body, of: gpu.passes.hybrid_tiles(
        body, of.hybrid_tiles(), of.request.small), on=GPU),
    LoopPass("insert_warp_barriers", lambda body, of: gpu.passes.insert_warp_barriers(body, of.graph), on=GPU),
    LoopPass("map_warps", lambda body, of: gpu.passes.map_warps(body, of.not_of_lanes), on=GPU),
    LoopPass("distribute_registers", lambda body, of: gpu.passes.distribute_registers(
        body, of.not_of_threads, lambda s, why: of.not_of_lanes(s.buffer, why), of.request.small),
        gives=frozenset({Property.OF_THREADS}), on=GPU),
    LoopPass("map_lanes", lambda body, of: gpu.passes.map_lanes(body, of.not_of_lanes), on=GPU),
    LoopPass("map_threads", lambda body, of: gpu.passes.map_threads(body, of.graph, of.plan, of.not_of_threads),
             gives=frozenset({Property.THREAD_LOOPS}), on=GPU),
    LoopPass("software_pipeline", lambda body, of: gpu.passes.software_pipeline(body, of.graph, of.plan), on=GPU),
    LoopPass("flatten", lambda body, of: flatten(body, of.graph, of.plan, of.request.buffers, of.facts),
             gives=frozenset({Property.FLAT}), takes=frozenset({Property.BOXES})),
    LoopPass("simplify", lambda body, of: simplify_program(body, of.facts), gives=frozenset({Property.CLEAN})),
    LoopPass("narrow_indices", lambda body, of: narrow_indices(
        body, of.facts, [n for o in of.graph.outputs for n in o.shape])
        if of.plan.target.index_bits > INT32.bits else body),
    LoopPass("pixels", lambda body, of: pixels(body), on=CPU),
    LoopPass("interleave", lambda body, of: interleave(body), on=CPU),
    LoopPass("reassociate", lambda body, of: reassociate(body, of.request.strict)),
    LoopPass("carry", lambda body, of: carry(body)),
    LoopPass("hoist_loads", lambda body, of: gpu.passes.hoist_loads(body), on=GPU),
)  # fmt: skip
PROGRAM_PASSES = (
    ProgramPass("flatten_grid", lambda p, _: replace(p, body=gpu.passes.flatten_grid(p.body, Facts({}))), on=GPU),
    ProgramPass("outline", lambda p, debug: outline(p, not debug),
                gives=frozenset({Property.NO_PARALLEL_LOOPS, Property.NO_BLOCK_LOOPS})),
    ProgramPass("widen_indices", lambda p, _: gpu.passes.widen_indices(p), on=GPU),
    ProgramPass("persistent_blocks", lambda p, _: gpu.passes.persistent_blocks(p), on=GPU),
    ProgramPass("async_copies", lambda p, _: gpu.passes.async_copies(p), on=GPU),
    ProgramPass("insert_barriers", lambda p, _: gpu.passes.insert_barriers(p), on=GPU),
    ProgramPass("fence_proxies", lambda p, _: gpu.passes.fence_proxies(p), on=GPU),
)  # fmt: skip


def _guaranteed(device: Device) -> Iterator[tuple[str, frozenset[Property]]]:
    has = OF_NEST
    yield "nest", has
    for change in LOOP_PASSES:
        if device in change.on:
            has = has - change.takes | change.gives
            yield change.name, has
    for last in PROGRAM_PASSES:
        if device in last.on:
            has = has | last.gives
            yield last.name, has


GUARANTEED = {device: dict(_guaranteed(device)) for device in Device}  # pass -> properties of the loops after it


def lower(built: Built, trace: Trace) -> Program:
    """Run the loop passes over the loops of `built`."""
    graph, plan, request, body = built.graph, built.plan, built.request, built.nest.body
    scalars = tuple([ScalarArg(p.name, p.dtype) for p in graph.params])
    verifier = Verifier(graph.name, request.buffers, scalars)
    device = Device.GPU if plan.target.has_blocks else Device.CPU
    guaranteed = GUARANTEED[device]
    if trace.check:
        trace.run("verify", verifier.check, body, guaranteed["nest"], "nest")
    for change in (p for p in LOOP_PASSES if device in p.on):
        body = trace.run(change.name, change.run, body, built)
        if trace.check:
            trace.run("verify", verifier.check, body, guaranteed[change.name], change.name)
    trace.refused = {loop for verb, names in built.no_room.items() for loop in refused_loops(graph, plan, verb, names)}
    return Program(graph.name, request.buffers, scalars, body, multiples=request.multiples)


def build(
    graph: Graph,
    plan: Plan,
    strides: Mapping[str, Strides],
    facts: Facts,
    trace: Trace,
    small: bool,
    strict: bool,
    aligned: Mapping[str, int],
) -> Built:
    """Run the graph passes, and build the loops.

    `strides` has what is known about the strides of each input and output, `aligned` the number of bytes that its
    address and strides are multiples of. See `LoweringRequest` for the other parameters.
    """
    buffers = _buffers(graph, strides, aligned)
    request, checked = LoweringRequest(buffers, facts, small, strict, tuple(_multiples(buffers))), graph
    for step in GRAPH_PASSES:
        before = graph
        graph, plan = trace.run(step.name, step.run, graph, plan, request)
        if trace.check and graph is not before:
            trace.run("verify", verify_graph, graph, step.name)
    nest = trace.run("nest", build_nest, graph, checked, plan, facts, small)
    return Built(graph, plan, nest, request, {"partition": [], "unroll": []})


def _multiples(buffers: tuple[BufferArg, ...]) -> Iterator[tuple[str, int]]:
    """The strides that are multiples of more than one element, since arrays are aligned, each with that number."""
    for b in buffers:
        elements = b.alignment // b.dtype.bytes
        if elements > 1:
            yield from ((b.stride(k), elements) for k, known in enumerate(b.known_strides) if known is None)


def make_kernels(program: Program, device: Device, trace: Trace, debug: bool = False) -> Program:
    """Run the program passes, which make kernels of parallel loops or of blocks of threads."""
    verifier = Verifier(program.name, program.buffers, program.scalars)
    for change in (p for p in PROGRAM_PASSES if device in p.on):
        program = trace.run(change.name, change.run, program, debug)
        if trace.check:
            trace.run("verify", verifier.check_program, program, GUARANTEED[device][change.name], change.name)
    return program


def _buffers(graph: Graph, strides: Mapping[str, Strides], aligned: Mapping[str, int]) -> tuple[BufferArg, ...]:
    """The kernel's buffers: inputs, then outputs (one buffer per value)."""
    inputs = [BufferArg(i.name, i.dtype, i.ndim, False, strides[i.name], aligned.get(i.name, 1)) for i in graph.inputs]
    outputs = [
        BufferArg(b, t, graph.stage[o.stage].ndim, True, strides[b], aligned.get(b, 1))
        for o in graph.outputs
        for b, t in zip(graph.stage[o.stage].buffers, graph.stage[o.stage].dtypes, strict=True)
    ]
    return (*inputs, *outputs)


def storage_folds(graph: Graph, plan: Plan, slid: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, int]]:
    """The circular extents that sliding needs or the schedule requests, for dims that are neither contiguous nor
    split."""
    folds: dict[str, dict[int, int]] = {}
    for stage in graph.stages:
        p = plan.stages[stage.name]
        for buffer in stage.buffers:
            for k, window in slid.get(buffer, {}).items():
                if stage.dims[k] != p.storage[-1] and not p.splits_storage(stage.dims[k]):
                    folds.setdefault(buffer, {})[k] = max(window, p.folds.get(stage.dims[k], 0))
    return folds


def partition_modes(graph: Graph, plan: Plan) -> dict[str, str]:
    """Map loop variables to the way of partitioning, if it is not automatic."""
    modes = {}
    for stage in graph.stages:
        for k, nest in enumerate(plan.stages[stage.name].nests):
            modes.update({loop_name(stage, k, x.name): x.partition for x in nest.loops if x.partition != "auto"})
    return modes


def refused_loops(graph: Graph, plan: Plan, verb: str, names: Collection[str]) -> Iterator[Refused]:
    """The loops with these variables, under their names in schedules."""
    for stage in graph.stages if names else ():
        for k, nest in enumerate(plan.stages[stage.name].nests):
            loops = [x.name for x in nest.loops if loop_name(stage, k, x.name) in names]
            yield from (Refused(stage.name, k, loop, verb) for loop in loops)
