"""One case of a campaign: a new pipeline, run in many ways, each compared with the reference.

The ways are the default schedule, random schedules, and the schedules that every strategy finds for a machine so small
that the pipeline is large for it. Arrays have many layouts and adjoin unmapped pages, either before or after them.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from pantile.autoschedule import STRATEGIES
from pantile.errors import UserError
from pantile.pipeline import Pipeline
from pantile.reference import evaluate
from pantile.runtime.cuda.driver import DeviceCrash
from pantile.schedule.schedule import Schedule
from pantile.target import named
from pantile.target.description import CUDA_GPU, SIMULATED

from ..autoschedule.problems import GPU_MODELS, MODELS, TINY, TINY_GPU, problem_for
from .arrays import LAYOUTS, outputs_like
from .device_code import compiled_for_devices
from .draws import Draw
from .guarded import guarded
from .harness import (
    assert_same,
    beyond_reference,
    pipeline_of,
    program,
    refused_beyond,
    refused_call,
    refused_late,
    schedules_for,
    unscheduled_program,
)
from .interior import interior_pipelines
from .pipelines import Case, pipelines
from .seeded import seeded

# The outcomes of a way. The first three are not failures. A schedule may take long once it is compiled, and is then
# given up: a single simulated thread that does the work of thousands takes a tenth of a millisecond per step, and on
# CPUs a stage may be recomputed for each pixel, by threads that are started for each of its rows.
RIGHT, SAME, REFUSED, LONG, MISMATCH, EXCEPTION = "right", "same", "refused", "long", "mismatch", "exception"
_LONGEST = 10  # the maximum predicted seconds of a call


@dataclass(frozen=True)
class StepStarted:
    """A step of a case has begun. If there is no further message about it, `source` shows what it was."""

    step: int
    label: str
    source: str
    simulates: bool = False


@dataclass(frozen=True)
class StepEnded:
    step: int
    label: str
    outcome: str
    detail: str = ""
    is_last: bool = False  # whether the process can do no more steps, because it has lost its GPU context


Tell = Callable[[StepStarted | StepEnded], None]


def _trace() -> str:
    """The current exception as text, without the notes of Hypothesis, which show whole graphs."""
    error = sys.exc_info()[1]
    assert error is not None
    error.__notes__ = []
    return "".join(traceback.format_exception(error))


def cases() -> st.SearchStrategy[Case]:
    """Small cases of every kind, since most of the time is spent on compiling."""
    kinds = ["all", "all", "pure", "reductions", "windows", "updates"]
    return st.sampled_from([*kinds, ""]).flatmap(
        lambda kind: pipelines(kind, "any", most=3 if kind == "all" else 2) if kind else interior_pipelines()
    )


def run_case(seed: int, schedules: int, strategies: int, target: str, debug: bool, skip: int, tell: Tell) -> None:
    """Run the case with this seed in all ways except the first `skip`, and report the beginning and end of each.

    The ways are the default schedule, `schedules` random schedules, and the schedules that `strategies` strategies for
    the target find, which differ from case to case. With `debug`, every access is checked in every way, and not only in
    every eighth."""
    tell(StepStarted(0, "prepare", f"# seed {seed}"))
    try:
        case: Case = seeded(seed)(cases())
        tell(StepStarted(0, "prepare", case.source))
        prepared = _Prepared(seed, case, target, debug)
    except Exception as error:
        expected = isinstance(error, UserError) and beyond_reference(error)
        tell(StepEnded(0, "prepare", REFUSED if expected else EXCEPTION, "" if expected else _trace()))
        return
    tell(StepEnded(0, "prepare", REFUSED if prepared.refused else RIGHT))
    for step, (label, find) in enumerate(_ways(prepared, schedules, strategies), 1):
        if step >= skip:
            end = prepared.run(step, label, find, tell)
            tell(end)
            if end.is_last:
                return


class _Prepared:
    """A pipeline with its arguments and the expected results; no results if the call is rejected."""

    def __init__(self, seed: int, case: Case, target: str, debug: bool = False) -> None:
        self.seed, self.case, self.target, self.debug = seed, case, target, debug
        self.pipeline = pipeline_of(self.case, target=target)
        self.inputs, self.params = self.case.values(self.pipeline.graph)
        self.refused = refused_call(self.pipeline, self.inputs, self.params)
        self.expected = [] if self.refused else evaluate(self.pipeline.graph, self.inputs, self.params)
        self.tried: set[str] = set()

    def draw(self, label: str) -> Draw:
        """A function that makes the choices of a way. They do not change if other ways are skipped."""
        return seeded(f"{self.seed} {label}")

    def run(self, step: int, label: str, find: Callable[[_Prepared], Schedule], tell: Tell) -> StepEnded:
        draw = self.draw(f"{label} arrays")
        threads, debug = draw(st.sampled_from([1, 2, 3])), draw(st.integers(0, 7)) == 7
        debug = (debug or self.debug) and self.target != CUDA_GPU  # code for GPUs has no checks
        tell(StepStarted(step, label, unscheduled_program(self.case, self.repeat)))
        try:
            schedule = find(self)
            source = program(self.case, self.pipeline.graph, repr(schedule), threads, debug, self.target)
            tell(StepStarted(step, label, source))
            scheduled = self.pipeline.with_schedule(schedule).with_options(debug=debug)
            if repr(scheduled.schedule) in self.tried:
                return StepEnded(step, label, SAME)
            self.tried.add(repr(scheduled.schedule))
            if label.startswith("random") and self.takes_long(scheduled, threads):
                return StepEnded(step, label, LONG)
            simulates = StepStarted(step, label, source, simulates=True)
            self.compared(scheduled, threads, draw, lambda: tell(simulates))
            if self.target == CUDA_GPU:
                self.compared(self.simulated.with_schedule(schedule), threads, draw, lambda: tell(simulates))
        except AssertionError as wrong:
            return StepEnded(step, label, MISMATCH, str(wrong) or _trace())
        except UserError as refusal:
            late = refused_late(refusal) and self.may_refuse(label)
            expected = self.refused or refused_beyond(refusal) or late
            return StepEnded(step, label, REFUSED if expected else EXCEPTION, "" if expected else _trace())
        except Exception as error:
            return StepEnded(step, label, EXCEPTION, _trace(), is_last=isinstance(error, DeviceCrash))
        return StepEnded(step, label, RIGHT)

    @property
    def simulated(self) -> Pipeline:
        """The pipeline for the simulator, which detects races and out-of-bounds reads that a GPU does not."""
        return pipeline_of(self.case, target=SIMULATED)

    @property
    def repeat(self) -> str:
        """The command that runs this case again."""
        options = f" --target {self.target}" * (self.target != "host") + " --debug" * self.debug
        return f"python -m tests.fuzz.campaign{options} --case {self.seed}"

    def may_refuse(self, label: str) -> bool:
        """Whether it is acceptable that lowering rejects a schedule. A schedule that a strategy found must be accepted,
        unless even the default schedule of the pipeline is rejected."""
        return label not in (*MODELS, *GPU_MODELS) or self.is_default_refused

    @property
    def is_default_refused(self) -> bool:
        """Whether lowering rejects the default schedule. Another process may have tried it before."""
        try:
            self.pipeline.with_schedule(Schedule()).compile(**self.inputs, **self.params)
        except UserError as refusal:
            return refused_late(refusal)
        return False

    def takes_long(self, pipeline: Pipeline, threads: int) -> bool:
        """Whether a call on CPUs is predicted to take long. It is compiled nevertheless."""
        if self.refused or self.target != "host":
            return False
        if pipeline.predict(**self.inputs, **self.params, num_threads=threads).seconds < _LONGEST:
            return False
        pipeline.compile(**self.inputs, **self.params)
        return True

    def compared(self, pipeline: Pipeline, threads: int, draw: Draw, simulates: Callable[[], None]) -> None:
        """Run with arrays next to unmapped pages, and compare. `simulates` is called when only simulation remains."""
        if self.refused:
            pipeline(**self.inputs, **self.params)
            return
        at_end = draw(st.booleans())
        layouts = [draw(st.sampled_from([0, *LAYOUTS])) for _ in self.expected]
        out = [guarded(a, at_end) for a in outputs_like(self.expected, layouts)]
        inputs = {name: guarded(a, at_end) for name, a in self.inputs.items()}
        is_simulated = pipeline.options.target.architecture == SIMULATED
        with compiled_for_devices() if self.target == SIMULATED else nullcontext():
            if is_simulated:
                pipeline._calls.compile({**inputs, **self.params}, out)
                simulates()
            found = pipeline(**inputs, **self.params, num_threads=threads, out=out)
        assert_same(pipeline, self.expected, list(found) if isinstance(found, tuple) else [found], self.case.slack)
        for name, a in self.inputs.items():
            assert np.array_equal(a, inputs[name], equal_nan=a.dtype.kind == "f"), f"{name} was written to"


def _ways(p: _Prepared, drawn: int, strategies: int) -> Iterator[tuple[str, Callable[[_Prepared], Schedule]]]:
    yield "default", lambda p: Schedule()
    for k in range(drawn):
        yield f"random {k + 1}", lambda p, k=k: _random(p, k)
    models = GPU_MODELS if named(p.target).has_blocks else MODELS
    for k in range(min(strategies, len(models))):
        name = models[(p.seed * strategies + k) % len(models)]
        yield name, lambda p, name=name: _found(p, name)


def _random(p: _Prepared, k: int) -> Schedule:
    found: Schedule = p.draw(f"random {k}")(schedules_for(p.target, p.pipeline.graph, p.case.strict))
    return found


def _found(p: _Prepared, name: str) -> Schedule:
    """The schedule that a strategy finds; the default for arrays without pixels, as in a call."""
    machine = TINY_GPU if named(p.target).has_blocks else TINY
    problem = problem_for(p.pipeline.rewritten, p.pipeline, machine, **p.inputs, **p.params)
    if any(0 in shape for shape in problem.shapes.values()):
        return Schedule()
    return STRATEGIES[name]().find(problem).schedule
