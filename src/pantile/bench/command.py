"""`pantile bench`: its arguments, and the run from apps to table, JSON and chart."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from difflib import get_close_matches
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pantile as pt

from .. import tuning_results
from ..apps import APPS, GROUPS, SCHEDULES, App
from ..apps.named import app_in_file, is_in_file
from . import ablation, gpu, machine, plot, predictions, scheduling
from .console import Console
from .contender import ON_GPU, Rival, Unavailable
from .matrix import Matrix
from .ours import start_seconds
from .result import Result, write_document, write_json
from .rivals.registry import GPU_RIVALS, RIVALS
from .rounds import Limit
from .session import CPU, Session, Settings
from .table import brief, render

DESCRIPTION = """\
Time apps, and optionally other systems on the same arrays in the same run.

  pantile bench blur unsharp --rivals halide,numba      compare two apps with two systems
  pantile bench mine.py:blur --shape img=1080x1920      time your own pipeline
  pantile bench --rivals halide:manual --plot all.png   compare all apps with Halide's expert schedules
  pantile bench harris --rivals halide --check          check that the results agree
  pantile bench everyday --rivals opencv,numba          compare twelve everyday filters with libraries
  pantile bench library --rivals opencv,scipy           compare filters that are one call of a library
  pantile bench blur --target cuda --rivals torch       run on a GPU
  pantile bench --scheduling                            time how long strategies take to find schedules
  pantile bench blur --predictions 30                   compare predicted and measured times of 30 schedules
  pantile bench blur harris --ablate auto               measure what each ingredient of auto contributes
"""
ALL_RIVALS = tuple(dict.fromkeys((*RIVALS, *GPU_RIVALS)))
TARGETS = (CPU, "cuda")
ALL = ""  # of a rival's schedules
CACHE_VARIABLE = "PANTILE_CACHE_DIR"
SECONDS_PER_CONTENDER = 5  # two to be timed, the others to compile and to make arrays


def main(argv: Sequence[str] | None = None) -> int:
    """Run with command-line arguments; the exit status."""
    parser = argparse.ArgumentParser(
        prog="pantile bench",
        usage="pantile bench [APP|FILE.py:NAME ...] [--rivals NAME,...] [--schedule NAME,...] [--size NAME] ...",
        description=DESCRIPTION,
        epilog=textwrap.fill(f"apps: {', '.join(APPS)}", 100, subsequent_indent="      "),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26),
    )
    add_arguments(parser)
    args = parser.parse_intermixed_args(argv)
    words = [name for word in args.apps for name in GROUPS.get(word, (word,))]
    args.apps = [app_in_file(word, args.shape, args.param) if is_in_file(word) else APPS[word] for word in words]
    return run(args)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `run` reads."""
    _add_contenders(parser)
    _add_measurements(parser)
    where = parser.add_argument_group("what to write")
    where.add_argument("--json", type=_writable, metavar="FILE", help="write all results")
    where.add_argument("--plot", type=_writable, metavar="FILE.png", help="write a chart (needs matplotlib)")


def _add_contenders(parser: argparse.ArgumentParser) -> None:
    sizes = dict.fromkeys(size for app in APPS.values() for size in app.sizes)
    what = parser.add_argument_group("what to measure")
    what.add_argument(
        "apps",
        nargs="*",
        type=_app,
        metavar="APP|FILE.py:NAME",
        help=f"an app, a group of apps ({', '.join(GROUPS)}), or your own pipeline (default: all apps that are in no "
        "group; with --rivals, those of them that a rival has)",
    )
    what.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=HxW",
        help="the shape of an input of your pipeline, in NumPy order; defaults to estimates= or the Input's shape",
    )
    what.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="the value of a param of your pipeline"
    )
    what.add_argument(
        "--schedule",
        type=_schedules,
        metavar="NAME,...",
        help=f"schedules to time: {', '.join(SCHEDULES)} (default: expert; with --scheduling, all that do not measure)",
    )
    what.add_argument(
        "--rivals",
        type=_rivals,
        default=(),
        metavar="NAME,...",
        help=f"systems to compare with: {', '.join(ALL_RIVALS)}; NAME:SCHEDULE selects one schedule of a system",
    )
    what.add_argument(
        "--size",
        choices=sizes,
        metavar="NAME",
        help=f"the size of the inputs: {', '.join(sizes)} (default: paper; on a GPU gpu where an app has it; with "
        "--check small)",
    )
    what.add_argument("--target", choices=TARGETS, default=CPU, help="the hardware to run on (default: cpu)")
    what.add_argument(
        "--threads",
        type=_positive,
        metavar="N",
        help="the number of threads of every contender (default: one per core)",
    )


def _add_measurements(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("how to measure")
    how.add_argument(
        "--check", action="store_true", help="compare results with the reference evaluator instead of timing"
    )
    how.add_argument("--scheduling", action="store_true", help="time the search for schedules instead of the pipelines")
    how.add_argument("--predict", action="store_true", help="also show the predicted times")
    how.add_argument(
        "--predictions", type=_positive, metavar="N", help="compare predicted and measured times of N schedules per app"
    )
    how.add_argument("--ablate", choices=["auto"], metavar="auto", help="time auto without each of its ingredients")
    how.add_argument(
        "--repeat", type=_positive, metavar="N", help="the number of rounds (default: two seconds per contender)"
    )
    how.add_argument(
        "--rival-limit",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="skip a rival whose compilation, or whose run, takes longer (default: 60)",
    )
    how.add_argument("--scaling", action="store_true", help="also run on one thread, and show the speedup")
    how.add_argument("--passes", action="store_true", help="show how long each pass of our compiler took")
    how.add_argument("--memory", action="store_true", help="measure the memory that our compiler uses")
    how.add_argument("--overhead", action="store_true", help="measure the overhead of a call beyond its kernel")


def run(args: argparse.Namespace) -> int:
    """Measure and report; 1 if some contender failed or disagreed, else 0."""
    console = Console()
    on_gpu = args.target != CPU
    args.size = args.size or ("small" if args.check else "gpu" if on_gpu else "paper")
    if args.threads:
        pt.set_num_threads(args.threads)  # which tuned schedules are for
    console.begin("measuring this machine")
    host = machine.describe(on_gpu)
    if args.scheduling:
        return _schedule_only(args, host, console)
    if args.predictions:
        return _predictions_only(args, host, console)
    if args.ablate:
        return _ablation_only(args, host, console)
    args.schedule = args.schedule or ("expert",)
    settings = _settings(args, console)
    apps = _chosen(args.apps, settings, console)
    results: list[Result] = []
    with _empty_cache(but=tuning_results.files() if "tuned" in args.schedule else ()):
        console.note(f"starting LLVM and the threads took {start_seconds():.3f} s; compile times do not include it")
        console.note(_plan(apps, settings))
        try:
            for app in console.each(apps):
                measured = Session(app, replace(settings, size=app.size_called(settings.size)), console).measure()
                if measured:
                    console.done(brief(measured))
                results += measured
        except KeyboardInterrupt:
            console.error("stopped; these results were measured before")
    console.clear()
    _report(args, host, results, console)
    return 1 if console.errors else 0


def _schedule_only(args: argparse.Namespace, host: dict[str, object], console: Console) -> int:
    strategies, target, where = scheduling.STRATEGIES, None, f"{host['cpu']}"
    if args.target != CPU:
        strategies, (target, name) = scheduling.FOR_GPUS, _gpu(host)
        where = f"{where}, for {name}"
    with _cache_at(os.devnull):  # what was found before is not searched again
        results = scheduling.measure(_of_size(args), args.schedule or strategies, args.size, target, console)
    heading = f"{where}; size: {args.size}; seconds of one core to find a schedule (published in brackets)"
    lines = chain([heading, ""], scheduling.table(results))
    return _finish(args, host, console, "scheduling", lines, [r.to_json() for r in results])


def _gpu(host: dict[str, object]) -> tuple[str, object]:
    """The target and the name of the GPU to find schedules for: of the one at hand, or else of an H200."""
    if host["gpu"] != machine.UNKNOWN_GPU:
        return "cuda", host["gpu"]
    usual = pt.machine.GPUS["H200"]
    return usual.target.cpu, usual.name


def _predictions_only(args: argparse.Namespace, host: dict[str, object], console: Console) -> int:
    on: Callable[[App], predictions.Runner] = partial(predictions.OnOneThread, size=args.size)
    where = f"{host['cpu']}, one thread"
    if args.target != CPU:
        on, where = partial(gpu.OnGpu, size=args.size, target=args.target), f"{host['gpu']}"
    with _empty_cache():
        results = predictions.compare(_of_size(args), args.predictions, console, on)
    if args.plot and results:
        try:
            predictions.draw(args.plot, results, f"{where}; rank correlation per app")
        except Unavailable as reason:
            console.note(f"no chart: {reason}")
    heading = f"{where}; predicted and measured times of schedules"
    lines = chain([heading, ""], predictions.table(results))
    return _finish(args, host, console, "predictions", lines, [asdict(r) for r in results])


def _ablation_only(args: argparse.Namespace, host: dict[str, object], console: Console) -> int:
    threads = args.threads or pt.get_num_threads()
    with _empty_cache():
        results = ablation.ablate(_of_size(args), args.size, threads, Limit(args.repeat), console)
    what = f"size: {args.size}; {_number(threads, 'thread')}; what auto's ingredients contribute"
    lines = chain([f"{host['cpu']}; {what}", ""], ablation.table(results))
    return _finish(args, host, console, "ablation", lines, [asdict(r) for r in results])


def _finish(
    args: argparse.Namespace,
    host: dict[str, object],
    console: Console,
    kind: str,
    lines: Iterable[str],
    results: list[Any],
) -> int:
    """Print the lines, if there are results, and write these to a file; the exit status."""
    console.clear()
    if results:
        print("\n".join(lines))
    if args.json:
        write_document(args.json, host, kind, results)
    return 1 if console.errors else 0


def _of_size(args: argparse.Namespace) -> list[App]:
    """The apps that are named, or all of the literature, as far as they have the size."""
    return [app for app in args.apps or _ungrouped() if app.size_called(args.size) in app.sizes]


def _ungrouped() -> list[App]:
    """The apps of the literature."""
    grouped = {name for names in GROUPS.values() for name in names}
    return [app for name, app in APPS.items() if name not in grouped]


def _chosen(named: Sequence[App], settings: Settings, console: Console) -> list[App]:
    """Without names: every app of no group, or with rivals every one of those that some of them have, too. With names,
    it is told who lacks which of them.
    """
    systems = list(dict.fromkeys(system for system, _ in settings.rivals))
    of = settings.systems
    wanted = [app for app in _ungrouped() if not systems or any(app.name in of[s].apps for s in systems)]
    for system in systems if named else ():
        missing = [app.name for app in named if app.name not in of[system].apps]
        if missing:
            console.note(f"{system} has no {', '.join(missing)}")
    sized = [app for app in named or wanted if app.size_called(settings.size) in app.sizes]
    for app in named:
        if app not in sized:
            console.note(f"{app.name} has no size {settings.size!r}; there are {', '.join(app.sizes)}")
    return sized


def _plan(apps: Sequence[App], settings: Settings) -> str:
    """What is going to happen, and how long it may take."""
    ours = len(settings.schedules) * len(settings.threads) * len(apps)
    rivals = [name for app in apps for name, _ in settings.rivals if app.name in settings.systems[name].apps]
    contenders = ours + len(rivals) * len(settings.threads)
    seconds = contenders * SECONDS_PER_CONTENDER
    about = "a minute" if seconds < 90 else f"{seconds / 60:.0f} minutes"
    what = f"{_number(len(apps), 'app')}, {_number(contenders, 'contender')}"
    return f"{what}: about {about}, more if schedulers or images are slow"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _report(args: argparse.Namespace, host: dict[str, object], results: Sequence[Result], console: Console) -> None:
    if results:
        print(_heading(args, host))
        print(render(results))
    if args.json:
        write_json(args.json, host, results)
    if args.plot and results:
        threads = max(r.label.threads for r in results)
        where = f"{host['gpu']}" if threads == ON_GPU else f"{host['cpu']}, {threads} threads, {args.size} sizes"
        try:
            if Matrix(results).is_worth_showing:
                plot.draw_heatmap(args.plot, results, f"{where}; ms, less is better")
            else:
                plot.draw(args.plot, results, f"{where}; more is better")
        except Unavailable as reason:
            console.note(f"no chart: {reason}")


def _heading(args: argparse.Namespace, host: dict[str, object]) -> str:
    size = "as stated" if args.apps and all(is_in_file(app.name) for app in args.apps) else args.size
    if args.target != CPU:
        times = "the best of many samples of many calls, arrays on the GPU, in us"
        ways = "called: one by one; graph: as a CUDA graph; launched: ours without graphs of its own"
        return f"{host['gpu']}; size: {size}; times are {times}\n{ways}\n"
    bound = "bound: the least time to move all bytes (mem) or to do all operations (ops) at this machine's rates"
    return f"{host['cpu']}, {host['cores']} cores; size: {size}; times are the best of all calls, in ms\n{bound}\n"


def _settings(args: argparse.Namespace, console: Console) -> Settings:
    threads = args.threads or pt.get_num_threads()
    counts = (1, threads) if args.scaling and threads > 1 else (threads,)
    on_gpu = args.target != CPU
    systems = GPU_RIVALS if on_gpu else RIVALS
    return Settings(
        schedules=args.schedule,
        rivals=tuple(_installed(_entering(args.rivals, systems, args.target, console), systems, console)),
        threads=(ON_GPU,) if on_gpu else counts,
        size=args.size,
        limit=Limit(args.repeat),
        rival_limit_s=args.rival_limit,
        passes=args.passes,
        overhead=args.overhead,
        memory=args.memory,
        check=args.check,
        predict=args.predict,
        machine=None if args.check or on_gpu else pt.machine.detect(),
        target=args.target,
        systems=systems,
    )


def _entering(
    rivals: Sequence[tuple[str, str]], systems: Mapping[str, Rival], target: str, console: Console
) -> Iterator[tuple[str, str]]:
    """Systems and schedules of theirs that there are for a target."""
    for system, schedule in rivals:
        known = systems[system].schedules if system in systems else ()
        wanted = [s for s in known if schedule in (s, ALL)]
        if not wanted:
            what = f"{system} {schedule}".rstrip()
            console.note(f"{what} skipped: it does not run on target {target}; there are {', '.join(systems)}")
        yield from ((system, s) for s in wanted)


def _installed(
    rivals: Iterable[tuple[str, str]], systems: Mapping[str, Rival], console: Console
) -> Iterator[tuple[str, str]]:
    missing: set[str] = set()
    rivals = list(rivals)
    for system in dict.fromkeys(system for system, _ in rivals):
        try:
            systems[system].require()
        except Unavailable as reason:
            console.note(f"{system} skipped: {reason}")
            missing.add(system)
    yield from (r for r in rivals if r[0] not in missing)


@contextmanager
def _empty_cache(but: Sequence[Path] = ()) -> Iterator[None]:
    """Compile times are those of compiling: a folder with nothing but some files serves as cache until the end."""
    with tempfile.TemporaryDirectory(prefix="pantile-bench-") as folder, _cache_at(folder):
        for path in but:
            shutil.copy2(path, folder)
        yield


@contextmanager
def _cache_at(folder: str) -> Iterator[None]:
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = folder
    try:
        yield
    finally:
        del os.environ[CACHE_VARIABLE]
        if before is not None:
            os.environ[CACHE_VARIABLE] = before


def _app(name: str) -> str:
    return name if is_in_file(name) else _known(name, (*APPS, *GROUPS), "an app")


def _schedules(text: str) -> tuple[str, ...]:
    return tuple(_known(name, SCHEDULES, "a schedule") for name in text.split(","))


def _rivals(text: str) -> tuple[tuple[str, str], ...]:
    """`halide:manual` is one schedule of Halide's, `halide` all of them."""
    pairs = []
    for item in text.split(","):
        system, _, schedule = item.partition(":")
        _known(system, {**RIVALS, **GPU_RIVALS}, "a rival")
        known = [s for systems in (RIVALS, GPU_RIVALS) if system in systems for s in systems[system].schedules]
        pairs.append((system, _known(schedule, tuple(dict.fromkeys(known)), "a schedule of it") if schedule else ALL))
    return tuple(pairs)


def _known(name: str, names: Collection[str], what: str) -> str:
    if name not in names:
        close = get_close_matches(name, names)
        suggestion = f"did you mean {' or '.join(close)}? There" if close else "there"
        raise argparse.ArgumentTypeError(f"{name!r} is not {what}; {suggestion} are {', '.join(names)}")
    return name


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def _writable(text: str) -> Path:
    """Better now than after all the work."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"{text!r} cannot be written: its folder does not exist, or it is itself a folder"
        )
    return path
