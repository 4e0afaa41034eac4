"""Thousands of new random pipelines, each run in many ways in a process of its own:

    python -m tests.fuzz.campaign --cases 20000 --jobs 16 --seed 7000000 --out failures
    python -m tests.fuzz.campaign --case 7001234                 (one of them again)
    python -m tests.fuzz.campaign --target cuda-sim              (simulated, and compiled to PTX)
    python -m tests.fuzz.campaign --target cuda                  (on the GPU at hand, and simulated)

Case i has the seed S + i and depends on nothing else. Prints what was run and writes each failure to the folder as a
program that shows it. The exit status is 1 if there were any.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import selectors
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import pantile as pt
from pantile.autoschedule import STRATEGIES
from pantile.target import named
from pantile.target.description import CUDA_GPU, SIMULATED

from ..autoschedule.problems import MODELS
from .device_code import compiled_for_devices
from .isolate import ended, forked, limit_time
from .seeded import seeded
from .ways import EXCEPTION, LONG, MISMATCH, StepEnded, StepStarted, cases, run_case

_TARGETS = ("host", SIMULATED, CUDA_GPU)
FAILURES = (MISMATCH, EXCEPTION, "crash", "timeout")


@dataclass
class _Child:
    """A process that runs a case, and the messages that it has sent so far."""

    process: int
    seed: int
    said: BytesIO = field(default_factory=BytesIO)

    def messages(self) -> Iterator[StepStarted | StepEnded]:
        self.said.seek(0)
        try:
            while True:
                yield pickle.load(self.said)
        except (EOFError, pickle.UnpicklingError):
            return


class Campaign:
    """Runs cases, `jobs` at a time, and counts the outcomes of each way to run them."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.jobs, self.out, self.verbose = given.jobs, given.out, given.case is not None
        self.limit, self.simulation_limit = given.limit, given.simulation_limit
        self.ways = (given.schedules, given.strategies, given.target, given.debug)
        self.cases = 0
        self.outcomes: Counter[tuple[str, str]] = Counter()  # by the label of a way and its outcome
        self.children: dict[int, _Child] = {}  # by the read end of their pipe
        self.selector = selectors.DefaultSelector()

    def run(self, seeds: Iterator[int], until: float) -> None:
        """Run cases until there are no more seeds, or until this time."""
        begun = shown = time.monotonic()
        try:
            while True:
                while len(self.children) < self.jobs and time.monotonic() < until:
                    seed = next(seeds, None)
                    if seed is None:
                        break
                    self.start(seed, 0)
                if not self.children:
                    return
                for key, _ in self.selector.select():
                    self.read(key.fd)
                if time.monotonic() - shown > 10:
                    shown = time.monotonic()
                    print(f"{shown - begun:6.0f} s: {self.summary()}", flush=True)
        finally:
            for child in self.children.values():
                os.kill(child.process, signal.SIGKILL)
                ended(child.process)

    def start(self, seed: int, skip: int) -> None:
        def work(pipe: BinaryIO) -> None:
            def tell(message: StepStarted | StepEnded) -> None:
                limit_time(
                    self.simulation_limit if isinstance(message, StepStarted) and message.simulates else self.limit
                )
                pickle.dump(message, pipe)
                pipe.flush()

            run_case(seed, *self.ways, skip, tell)

        process, reader = forked(work, self.limit)
        self.children[reader] = _Child(process, seed)
        self.selector.register(reader, selectors.EVENT_READ)

    def read(self, reader: int) -> None:
        child = self.children[reader]
        data = os.read(reader, 1 << 16)
        if data:
            child.said.write(data)
            return
        self.selector.unregister(reader)
        os.close(reader)
        del self.children[reader]
        self.count(child, *ended(child.process))

    def count(self, child: _Child, end: str, death: str | None) -> None:
        """Count the outcomes that a child reported. If it ended before the last step, start another child that
        continues after the step at which it ended."""
        begun: StepStarted | None = None
        last: StepEnded | None = None
        for message in child.messages():
            if isinstance(message, StepStarted):
                begun = message
                continue
            assert begun is not None
            self.tally(child.seed, begun, message)
            begun, last = None, message
        if end != "normal" and begun is not None:
            end = LONG if end == "timeout" and begun.simulates else end
            last = StepEnded(begun.step, begun.label, end, death or "", is_last=begun.step > 0)
            self.tally(child.seed, begun, last)
        if last is not None and last.is_last:
            self.start(child.seed, last.step + 1)
        else:
            self.cases += 1

    def tally(self, seed: int, begun: StepStarted, end: StepEnded) -> None:
        self.outcomes[end.label, end.outcome] += 1
        if self.verbose:
            print(f"{end.label}: {end.outcome} {end.detail}", flush=True)
        if end.outcome in FAILURES:
            self.out.mkdir(parents=True, exist_ok=True)
            path = self.out / f"{seed}-{end.label.replace(' ', '')}-{end.outcome}.py"
            comment = "".join(f"# {line}\n" for line in end.detail.splitlines())
            text = f"# seed {seed}, {end.label}: {end.outcome}\n{comment}{begun.source}\n"
            path.write_text(text, "utf-8", errors="backslashreplace")
            print(f"{end.outcome}: {path}", flush=True)

    def failed(self) -> int:
        return sum(n for (_, outcome), n in self.outcomes.items() if outcome in FAILURES)

    def summary(self) -> str:
        total: Counter[str] = Counter()
        for (label, outcome), n in self.outcomes.items():
            if label != "prepare" or outcome in FAILURES:
                total[outcome] += n
        return f"{self.cases} cases; ways: " + ", ".join(f"{total[k]} {k}" for k in sorted(total))

    def table(self) -> str:
        """A table of the outcomes, with a line for each way."""
        labels = sorted({label for label, _ in self.outcomes})
        outcomes = sorted({outcome for _, outcome in self.outcomes})
        rows = [["", *outcomes], *([n, *(str(self.outcomes[n, o]) for o in outcomes)] for n in labels)]
        return "\n".join("".join(f"{cell:>12}" for cell in row) for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1000, help="how many pipelines (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many processes (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first case (%(default)s)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no case after so long")
    parser.add_argument("--limit", type=int, default=120, help="seconds for one step of a case (%(default)s)")
    parser.add_argument(
        "--simulation-limit", type=int, default=10, help="seconds for simulating one schedule (%(default)s)"
    )
    parser.add_argument("--debug", action="store_true", help="check every access, in every way")
    parser.add_argument("--schedules", type=int, default=2, help="random schedules per case (%(default)s)")
    parser.add_argument(
        "--strategies",
        type=int,
        choices=range(len(MODELS) + 1),
        default=2,
        metavar="N",
        help=f"strategies per case, by turns (%(default)s; {len(MODELS)} are all)",
    )
    parser.add_argument("--target", choices=_TARGETS, default="host", help="what to run on (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("failures"), help="folder for failures (%(default)s)")
    parser.add_argument("--case", type=int, help="run the case of this seed only, and show how each way ended")
    given = parser.parse_args()
    os.environ["PANTILE_CACHE_DIR"] = os.devnull  # each case is new, so a cache would be useless
    warm_up(given.target)
    seeds = range(given.seed, given.seed + given.cases) if given.case is None else [given.case]
    campaign = Campaign(given)
    try:
        campaign.run(iter(seeds), time.monotonic() + given.seconds)
    except KeyboardInterrupt:
        print("interrupted")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(campaign.table())
    print(f"{campaign.summary()}; {(used.ru_utime + used.ru_stime) / max(campaign.cases, 1):.2f} s of CPU per case")
    return 1 if campaign.failed() else 0


def warm_up(target: str) -> None:
    """Load the compiler, the strategies and the generators of cases, which otherwise each child would do. The GPU
    driver is not touched, because no child could use it afterwards."""
    seeded(0)(cases())
    for name in MODELS:
        STRATEGIES[name]()
    x = pt.Var("x")
    f = pt.Func("f")
    f[x] = x
    with compiled_for_devices():
        pt.Pipeline(f, shape=(1,), target=SIMULATED if named(target).has_blocks else target)(num_threads=1)


if __name__ == "__main__":
    sys.exit(main())
