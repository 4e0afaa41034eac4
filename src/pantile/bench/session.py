"""The benchmark of one app: prepare all contenders, check that they agree, time them in turn."""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property

import pantile as pt

from ..apps import App
from ..apps.names import error_text
from ..machine import Cpu
from ..machine.host import NOTICEABLE, busy_cores
from ..tuning_results import NotTuned
from .agreement import disagreement, inner
from .console import Console
from .contender import ON_GPU, Array, Contender, Label, Rival, Task, Unavailable, on_a_line, several
from .extras import bound, free_bytes, overhead_us, peak_megabytes
from .gpu import GpuContender, prepare_on_gpu
from .ours import SYSTEM, PantileContender, prepare
from .result import Result
from .rivals.registry import RIVALS
from .rounds import Limit, race

CPU = "cpu"
Ours = PantileContender | GpuContender


@dataclass(frozen=True)
class Settings:
    """What to measure, and how."""

    schedules: tuple[str, ...]
    rivals: tuple[tuple[str, str], ...]  # system and schedule
    threads: tuple[int, ...]  # every contender runs on each of these; on a GPU there is just ON_GPU
    size: str
    limit: Limit
    rival_limit_s: float = 60.0  # for a rival to compile, and for each batch of runs
    passes: bool = False
    overhead: bool = False
    memory: bool = False
    check: bool = False
    predict: bool = False
    machine: Cpu | None = None  # whose rates bound the times; None: no bound is told
    target: str = CPU
    systems: Mapping[str, Rival] = field(default_factory=lambda: RIVALS)  # that there are for this target


class Session:
    """One app under some settings. What goes wrong is told to the console, and the rest goes on."""

    def __init__(self, app: App, settings: Settings, console: Console) -> None:
        self.app, self.settings, self.console = app, settings, console

    def measure(self) -> list[Result]:
        """Times, if they are asked for, of all contenders that compute the right thing."""
        if self._too_large():
            return []
        with ExitStack() as stack:
            contenders = self._agreeing(self._contenders(stack))
            if not contenders or self.settings.check:
                return []
            self._begin(f"timing {len(contenders)} contenders")
            busy = self._busy_cores()
            runners = race(contenders, self.settings.limit, self._round_done)
            for runner in runners:
                if runner.failure:
                    self._skip(runner.contender.label, runner.failure)
            return [self._result(r.contender, r.runs_ms, busy) for r in runners if r.runs_ms]

    def _too_large(self) -> bool:
        """Whether the arrays of all contenders, and as much again for what they keep on the way, are too much."""
        settings = self.settings
        contenders = len(self._schedules) + len(self._rival_labels())
        wanted = 2 * contenders * self._pipeline.work(**self.app.sizes[settings.size], **self.app.params).bytes
        free = free_bytes()
        if free is None or wanted <= free:
            return False
        needs = f"size {settings.size!r} takes about {wanted / 1e9:.1f} GB with {contenders} contenders"
        self.console.note(f"{self.app.name} skipped: {needs}, and {free / 1e9:.1f} GB are free")
        return True

    # ---- who takes part

    def _contenders(self, stack: ExitStack) -> list[Contender]:
        """Ours, then the rivals, which are closed with `stack`."""
        ours = self._ours()
        if not ours:
            return []
        per_threads: list[Contender] = []
        for c in ours:
            on = self.settings.threads if isinstance(c, PantileContender) else ()
            per_threads += [replace(c, label=replace(c.label, threads=n)) for n in on] or [c]
        return [*per_threads, *self._rivals(ours[0].results, stack)]

    def _ours(self) -> list[Ours]:
        """One per schedule, on the most threads."""
        prepared: list[Ours] = []
        for schedule in self._schedules:
            self._begin(f"compiling {SYSTEM} {schedule}")
            try:
                with warnings.catch_warnings(record=True) as caught:
                    prepared.append(self._prepared(schedule))
            except (pt.PantileError, Unavailable) as error:
                self.console.error(f"{self.app.name}: {SYSTEM} {schedule}: {error_text(error)}")
            for warning in caught:
                how = f"pantile tune {self.app.name} --size {self.settings.size}"
                is_hint = isinstance(warning.message, NotTuned)
                text = f"not tuned, so auto's schedule runs; tune it with: {how}" if is_hint else warning.message
                self.console.note(f"{self.app.name}: {text}")
        return prepared

    def _prepared(self, schedule: str) -> Ours:
        if self.settings.target == CPU:
            return prepare(self.app, schedule, max(self.settings.threads), self.inputs)
        return prepare_on_gpu(self.app, schedule, self.settings.target, self.inputs)

    @property
    def _schedules(self) -> list[str]:
        return list(dict.fromkeys(map(self.app.called, self.settings.schedules)))

    def _rivals(self, outputs: tuple[Array, ...], stack: ExitStack) -> list[Contender]:
        entered = []
        pool = ThreadPoolExecutor(self._compiling_at_a_time)
        stack.callback(pool.shutdown, cancel_futures=True)  # who has not begun, if this is interrupted
        for label, coming in [(x, pool.submit(self._entered, x, outputs)) for x in self._rival_labels()]:
            self._begin(f"compiling {label}")
            try:
                contender = coming.result()
            except Unavailable as reason:
                self._skip(label, reason)
                continue
            stack.callback(contender.close)
            entered.append(contender)
        return entered

    def _entered(self, label: Label, outputs: tuple[Array, ...]) -> Contender:
        limit_s = self.settings.rival_limit_s
        task = Task(self.app.name, label.schedule, label.threads, self.inputs, outputs, limit_s)
        return self.settings.systems[label.system].enter(task)

    @property
    def _compiling_at_a_time(self) -> int:
        """How many rivals: where they run on a GPU, the processor's cores compile for several of them."""
        return 1 if self.settings.target == CPU else max(1, (os.cpu_count() or 1) // 2)

    def _rival_labels(self) -> list[Label]:
        systems = self.settings.systems
        present = [(system, name) for system, name in self.settings.rivals if self.app.name in systems[system].apps]
        return [Label(system, name, threads) for system, name in present for threads in self.settings.threads]

    # ---- what they compute

    def _agreeing(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Those that compute what the first one does, or with `check` what the reference does."""
        if not contenders:
            return []
        authority = "the reference" if self.settings.check else str(contenders[0].label)
        expected = self._reference() if self.settings.check else [a.copy() for a in contenders[0].outputs()]
        self._begin(f"comparing all with {authority}")
        return [c for c in contenders if self._agrees(c, expected, authority)]

    def _reference(self) -> Sequence[Array]:
        self._begin("evaluating the reference")
        return several(self.app.build().reference(**self.inputs))

    def _agrees(self, contender: Contender, expected: Sequence[Array], authority: str) -> bool:
        if contender.differs:
            self.console.note(f"{self.app.name}: {contender.label} is not compared: {contender.differs}")
            return True
        margin = 0 if isinstance(contender, Ours) else self.app.margin
        try:
            got, wanted = inner(contender.outputs(), margin), inner(expected, margin)
            difference = disagreement(got, wanted, self._pipeline.rounding, self.app.tolerance, self.app.off_by)
        except Unavailable as reason:
            self._skip(contender.label, reason)
            return False
        if difference:
            self.console.error(f"{self.app.name}: {contender.label} disagrees with {authority}: {difference}")
        elif self.settings.check:
            self.console.note(f"{self.app.name}: {contender.label} agrees with {authority}")
        return not difference

    # ---- what is reported

    def _busy_cores(self) -> float | None:
        busy = busy_cores()
        if busy is not None and busy > NOTICEABLE:
            self.console.note(f"{self.app.name}: other processes keep {busy:.1f} cores busy: do not trust these times")
        return busy

    def _result(self, contender: Contender, runs_ms: Sequence[float], busy: float | None) -> Result:
        extra: dict[str, object] = {
            **({"target": self.settings.target} if contender.label.threads == ON_GPU else {}),
            "size": self.settings.size,
            "median_ms": statistics.median(runs_ms),
            "calls": len(runs_ms),
            "busy_cores": busy,
            **self._bound(contender.label.threads, min(runs_ms)),
            **contender.details,
        }
        if self.settings.predict and isinstance(contender, PantileContender):
            predicted = contender.pipeline.predict(num_threads=contender.label.threads, **self.inputs)
            extra["predicted_ms"] = 1e3 * predicted.seconds
        if "no_graph" in contender.details:
            self.console.note(f"{self.app.name}: {contender.label} is no graph: {contender.details['no_graph']}")
        if contender.differs:
            extra["differs"] = contender.differs
        if isinstance(contender, PantileContender) and contender.label.threads == max(self.settings.threads):
            extra |= self._extras(contender)
        return Result(self.app.name, contender.label, min(runs_ms), contender.compile_s, contender.schedule_s, extra)

    def _bound(self, threads: int, ms: float) -> dict[str, object]:
        """How far a time is from the least possible one."""
        if self.settings.machine is None:
            return {}
        least = bound(self._pipeline, self.inputs, self.settings.machine, threads)
        return {"bound_ms": least.ms, "bound_by": least.limit, "of_bound": least.ms / ms}

    @cached_property
    def _pipeline(self) -> pt.Pipeline:
        return self.app.build()

    @cached_property
    def inputs(self) -> dict[str, Array]:
        """Arguments that all contenders share: arrays, and numbers for params that have no default."""
        self._begin("making inputs")
        return {name: on_a_line(a) for name, a in self.app.inputs(self.settings.size).items()} | dict(self.app.params)

    def _extras(self, contender: PantileContender) -> dict[str, object]:
        app, label = self.app, contender.label
        extra: dict[str, object] = {"passes_s": dict(contender.passes_s)} if self.settings.passes else {}
        if self.settings.overhead:
            extra |= self._tried("overhead_us", lambda: overhead_us(app, contender.pipeline, label.threads))
        if self.settings.memory:
            extra |= self._tried("memory_mb", lambda: peak_megabytes(app.name, label.schedule, self.settings.size))
        return extra

    def _tried(self, key: str, measure: Callable[[], float]) -> dict[str, object]:
        """One more number, if it can be had."""
        self._begin(f"measuring {key}")
        try:
            return {key: measure()}
        except (pt.PantileError, Unavailable) as reason:
            self.console.note(f"{self.app.name}: no {key}: {reason}")
            return {}

    def _begin(self, text: str) -> None:
        self.console.begin(f"{self.app.name}: {text}")

    def _round_done(self, number: int) -> None:
        self.console.progress(f"{self.app.name}: timing, round {number} done")

    def _skip(self, label: Label, reason: Exception) -> None:
        self.console.note(f"{self.app.name}: {label} skipped: {reason}")
