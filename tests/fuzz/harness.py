"""Compares compiled code with the reference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pantile.errors import UserError
from pantile.expr.types import DType
from pantile.graph.nodes import Graph
from pantile.pipeline import Pipeline
from pantile.reference import evaluate
from pantile.reference.operations import from_bfloat_bits
from pantile.schedule.schedule import Schedule
from pantile.target import named

from .arrays import LAYOUTS, outputs_like
from .device_code import compiled_for_devices
from .draws import Draw
from .grids import grids
from .guarded import guarded
from .pipelines import Case, pipelines
from .schedules import schedules


@dataclass(frozen=True)
class Trial:
    """A case, and how to run it: its schedule, the layouts of its outputs, and the target."""

    case: Case
    schedule: Schedule
    layouts: tuple[int, ...] | None  # of the arrays given as `out=`; None if none are given
    threads: int
    target: str = "host"

    @property
    def source(self) -> str:
        """A Python program to paste, which ends with the compiled and the expected result."""
        return program(self.case, self.case.graph(), repr(self.schedule), self.threads, target=self.target)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print a failing trial for Hypothesis."""
        printer.text(f"\n{self.source}")


def program(case: Case, graph: Graph, schedule: str, threads: int, debug: bool = False, target: str = "host") -> str:
    """A whole program that runs a case under the schedule that the text `schedule` makes."""
    given = "".join(f"{a.name}={a.name}, " for a in (*graph.arguments, *graph.params))
    options = [*["debug=True"] * debug, *[f"target={target!r}"] * (target != "host")]
    checked = f".with_options({', '.join(options)})" if options else ""
    return "\n".join(
        [
            case.source,
            f"pipeline = pipeline{checked}.with_schedule({schedule})",
            f"found = pipeline({given}num_threads={threads})",
            f"expected = pipeline.reference({given})",
            "",
        ]
    )


def unscheduled_program(case: Case, repeat: str) -> str:
    """The pipeline of a case whose schedule is not known, with the command that runs the case again."""
    return "\n".join([case.source, f"# What schedule it was to have is not known; run it again by: {repeat}", ""])


@st.composite
def trials(
    draw: Draw,
    focus: str = "all",
    floats: str = "any",
    scheduled: bool = True,
    cases: st.SearchStrategy[Case] | None = None,
    target: str = "host",
) -> Trial:
    """A random pipeline (or one of `cases`) under a random legal schedule (or the default one)."""
    case = draw(pipelines(focus, floats) if cases is None else cases)
    graph = pipeline_of(case).graph
    schedule = draw(schedules_for(target, graph, case.strict)) if scheduled else Schedule()
    layouts = draw(st.none() | st.tuples(*[st.sampled_from(LAYOUTS)] * len(case.slack)))
    return Trial(case, schedule, layouts, draw(st.sampled_from([1, 2, 3])), target)


def schedules_for(target: str, graph: Graph, strict: bool) -> st.SearchStrategy[Schedule]:
    """Random schedules of a pipeline on the target of this name."""
    device = named(target)
    return grids(graph, strict, device) if device.has_blocks else schedules(graph, strict)


def pipeline_of(case: Case, schedule: Schedule | None = None, debug: bool = False, target: str = "host") -> Pipeline:
    """The case as a compiled pipeline."""
    funcs, shape = case.funcs(case.defined())
    return Pipeline(funcs, shape=shape, schedule=schedule, strict=case.strict, debug=debug, target=target)


def refused_call(pipeline: Pipeline, inputs: dict[str, np.ndarray], params: dict[str, Any]) -> bool:
    """Whether these arguments are rejected before anything runs, as empty arrays often are."""
    try:
        pipeline._calls.check({**inputs, **params})
    except UserError:
        return True
    return False


def refused_beyond(refusal: UserError) -> bool:
    """Whether the call was rejected because a stored stage cannot be computed everywhere where a call of any size may
    read it."""
    return "at all places that calls of any size may read it at" in str(refusal)


def refused_late(refusal: UserError) -> bool:
    """Whether a legal schedule was rejected for a reason that only lowering can see."""
    return refused_beyond(refusal) or any(reason in str(refusal) for reason in _LATE)


def beyond_reference(refusal: UserError) -> bool:
    """Whether the reference evaluator, which stores all stages, lacks memory for one that is read at distant
    indices."""
    return re.search(r"the reads of .* span .* pixels", str(refusal)) is not None


_LATE = (
    "has no constant size there",
    "are needed over different regions",
    "that has no known bounds",
    "is computed before it is read, but what is read of it",
    "is not constant where",
    "would be too much code where",
    "the threads of a block cannot keep",
    "the lanes of a warp cannot share",
    "how many lanes it takes is not constant",
    "would be on the stack",
    "bytes of memory that its threads share",
    "or leave all of it in shared memory",
)


def assert_agrees(trial: Trial, debug: bool = False, guard: str | None = None) -> None:
    """Run compiled code and compare it with the reference. Simulated kernels are also compiled to device code. `guard`
    places all arrays before ("end") or after ("start") an unmapped page."""
    pipeline = pipeline_of(trial.case, trial.schedule, debug, trial.target)
    inputs, params = trial.case.values(pipeline.graph)
    if refused_call(pipeline, inputs, params):
        return
    expected = evaluate(pipeline.graph, inputs, params)
    out = None if trial.layouts is None else outputs_like(expected, list(trial.layouts))
    if guard is not None:
        inputs = {name: guarded(a, guard == "end") for name, a in inputs.items()}
        out = [guarded(a, guard == "end") for a in out or [np.zeros_like(a) for a in expected]]
    try:
        with compiled_for_devices():
            found = pipeline(**inputs, **params, num_threads=trial.threads, out=out)
    except UserError as refusal:
        if refused_late(refusal):
            return
        raise
    assert_same(pipeline, expected, list(found) if isinstance(found, tuple) else [found], trial.case.slack)


def assert_same(
    pipeline: Pipeline, expected: list[np.ndarray], found: list[np.ndarray], slack: tuple[float, ...]
) -> None:
    """Compare integers and strict floats bit for bit (except that all NaNs are equal), and other floats within their
    slack. Unless strict, the minimum or maximum of two zeros may have either sign."""
    graph, signs = pipeline.graph, pipeline.options.strict
    types = [t for o in graph.outputs for t in graph.stage[o.stage].dtypes]
    labels = [b for o in graph.outputs for b in graph.stage[o.stage].buffers]
    for label, t, a, b, allowed in zip(labels, types, expected, found, slack, strict=True):
        assert a.shape == b.shape, f"{label}: shape {b.shape}, not {a.shape}"
        wrong = _differs(t, a, b, allowed, signs)
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise AssertionError(
                f"{label}{list(place)} is {b[place]!r}, not {a[place]!r} (within {allowed}); "
                f"{int(wrong.sum())} of {wrong.size} pixels differ"
            )


def _differs(t: DType, expected: np.ndarray, found: np.ndarray, allowed: float, signs: bool) -> np.ndarray:
    if not t.is_float:
        return np.asarray(expected != found)
    a, b = ((from_bfloat_bits(v) if t.kind == "bfloat" else v).astype(np.float64) for v in (expected, found))
    both_nan = np.isnan(a) & np.isnan(b)
    if allowed == 0:
        return ~(both_nan | ((a == b) & ((not signs) | (np.signbit(a) == np.signbit(b)))))
    with np.errstate(invalid="ignore"):
        return ~(both_nan | (a == b) | (np.abs(a - b) <= allowed))
