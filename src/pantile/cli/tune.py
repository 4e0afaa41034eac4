"""`pantile tune`: measures schedules of a pipeline, and saves the fastest for schedule="tuned"."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pantile as pt

from .. import tuning_results
from ..apps import App
from ..apps.named import apps_named
from ..bench.tuning import Tuning
from ..cost_model.result import time
from ..machine.host import NOTICEABLE, busy_cores
from ..progress import doing, step

INTERRUPTED = 130  # the exit status after Ctrl-C
_BAR = 12  # characters


def run(options: Namespace) -> int:
    """Tune each app; the exit code is 0, or 130 after Ctrl-C."""
    tuning_results.writable()  # fail now, not after all the work
    if options.threads is not None:
        pt.set_num_threads(options.threads)
    named = (apps_named(text, options.size, options.shape, options.param) for text in options.targets)
    for number, app in enumerate(app for apps in named for app in apps):
        if number == 0:
            _look_around()
        if not _tune(app, app.arguments(options.size), options.seconds):
            return INTERRUPTED
    return 0


def _look_around() -> None:
    busy = busy_cores()
    if busy is not None and busy > NOTICEABLE:
        print(f"other processes keep {busy:.1f} cores busy: the fastest schedule may differ on an idle machine")


def _tune(app: App, arguments: dict[str, Any], seconds: float) -> bool:
    """Measure, save and print; whether it ended without Ctrl-C."""
    pipeline = app.build()
    tuning = Tuning(
        pipeline,
        arguments,
        seconds,
        pt.get_num_threads(),
        lambda what: _shown(tuning, what),
        tolerance=app.tolerance,
        off_by=app.off_by,
    )
    ended = True
    try:
        with doing(f"tuning {app.name}"):
            tuning.run()
    except KeyboardInterrupt:
        ended = False
    winner = tuning.winner()
    if winner is None:
        print(f"{app.name}: stopped before anything was measured; nothing is saved")
        return ended
    place = tuning_results.write(pipeline.problem(**arguments), tuning.threads, winner)
    stopped = "" if ended else "; stopped, the best so far is saved"
    threads = f"{tuning.threads} thread{'' if tuning.threads == 1 else 's'}"
    tried = f"{winner.tried} schedule{'' if winner.tried == 1 else 's'}"
    print(f"{app.name}: {tried} in {tuning.elapsed:.0f} s on {threads}{stopped}")
    for trial in tuning.trials:
        if trial.wrong is not None:
            print(f"  rejected: {trial.name} (its results differ: {trial.wrong})")
    print(f"  auto    {time(winner.auto_seconds):>9}")
    if winner.schedule == tuning.trials[0].schedule:
        print(f"  tuned   {time(winner.seconds):>9}  no schedule is faster than auto's")
    else:
        ratio = winner.auto_seconds / winner.seconds
        print(f"  tuned   {time(winner.seconds):>9}  {ratio:.2f} times as fast: {winner.name}")
    print(f'  saved in {place}; schedule="tuned" uses it', flush=True)
    return ended


@contextmanager
def _shown(tuning: Tuning, what: str) -> Iterator[None]:
    """Show the progress on a terminal: the fraction done, the best time so far, and the current schedule."""
    done = round(_BAR * min(1.0, tuning.elapsed / tuning.seconds))
    best = f" {len(tuning.counted)} measured, best {time(tuning.best.seconds)}" if tuning.counted else ""
    step(f"[{'#' * done}{'.' * (_BAR - done)}]{best}")
    with doing(f"trying {what}"):
        yield
