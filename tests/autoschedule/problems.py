"""Problems for strategies, made of pipelines."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pantile as pt
from pantile.autoschedule import STRATEGIES, Problem
from pantile.graph.nodes import Graph
from pantile.launch_predictions import LaunchPredictions
from pantile.machine import Cache, Gpu, named
from pantile.machine.description import Machine
from pantile.scheduling import refusals

HASWELL = named("haswell-e5-2630-v3")
ORDINARY = named("neoverse-n1")
# Small pipelines are large for this one.
TINY = replace(
    ORDINARY, cores=2, threads=2, vector_bits=64, caches=(Cache(1 << 10, 64, 2, 1, 1e9), Cache(1 << 12, 64, 4, 1, 1e9))
)
TINY_GPU = replace(named("RTX 2080 Ti"), multiprocessors=1)
# Strategies that need not measure; those that tune choose among what these find.
MODELS = sorted(n for n, s in STRATEGIES.items() if s.for_cpus and not n.endswith("tuned"))
GPU_MODELS = sorted(n for n, s in STRATEGIES.items() if s.for_gpus and not n.endswith("tuned"))


def problem_of(pipeline: pt.Pipeline, machine: Machine = HASWELL, **arguments: Any) -> Problem:
    """What a strategy gets for a pipeline called with such shapes and params."""
    return problem_for(pipeline.graph, pipeline, machine, **arguments)


def problem_for(graph: Graph, pipeline: pt.Pipeline, machine: Machine, /, **arguments: Any) -> Problem:
    """The problem for a graph that computes the same as the pipeline's."""
    shapes, scalars = pipeline._calls.sizes(arguments)
    options = replace(pipeline.options, target=machine.target)
    refused, predicted = partial(refusals, options, machine, scalars), None
    if isinstance(machine, Gpu):
        predicted = LaunchPredictions(graph, options, machine, arguments).cost
    return Problem(graph, shapes, scalars, machine, options.strict, refusals=refused, predicted=predicted)


def matrix_product() -> pt.Pipeline:
    """c = a b."""
    i, j = pt.vars("i j")
    a, b, c = pt.Input("a", "float32", ndim=2), pt.Input("b", "float32", ndim=2), pt.Func("c")
    k = pt.RDom((0, a.shape[1]), name="k")
    c[i, j] = 0.0
    c[i, j] += a[i, k[0]] * b[k[0], j]
    return pt.Pipeline(c, shape=(a.shape[0], b.shape[1]))


def chain(count: int) -> pt.Pipeline:
    """Vertical stencils f0 .. f<count - 1>, each of which reads three rows of the one before."""
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    before: Any = pt.edge(img)
    for k in range(count):
        f = pt.Func(f"f{k}")
        f[y, x] = (before[y - 1, x] + before[y, x] + before[y + 1, x]) * 0.5
        before = f
    return pt.Pipeline(before, shape=img.shape)
