"""Arguments of the command in, an exit status out. What a subcommand needs is imported when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pantile as pt

if TYPE_CHECKING:
    from .call import PipelineCall

_DESCRIPTION = """\
Image pipelines as functions of pixel coordinates, compiled to fast native code.

  pantile demo                                 run a real pipeline on a picture, and see how fast it is
  pantile run unsharp --input a.jpg            an app on a picture of yours
  pantile run mine.py:blur --input a.jpg       a pipeline of yours on it: blur in the file mine.py
  pantile show mine.py:blur                    the schedule and the loops it becomes
  pantile explain mine.py:blur                 where the time goes, and why
  pantile tune mine.py:blur                    measure schedules, and keep the fastest
  pantile bench blur --rivals halide           measure apps beside other systems

Wherever an app is named, FILE.py:NAME is a pipeline of yours: a pt.Pipeline, a pt.Func, or a function that returns one.
"""
_LARGEST_SIDE = 1 << 14  # of a picture that is made up: 800 MB
_SCHEDULE_HELP = "expert (as the app or the file has it, by default), plain, or a strategy such as auto or greedy"
_TARGET_HELP = "an app such as unsharp, or FILE.py:NAME, a pipeline of yours"
_SHAPE_HELP = "of an input, in NumPy's order, such as img=1080x1920x3; what estimates= or its Input says if left out"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0, 1 for a failure that was explained, 2 for wrong arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["bench"]:  # it reads its own arguments
        from ..bench import main as bench

        return _run_command("bench", lambda: bench(arguments[1:]))
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help()
        return 0
    return _run_command(options.command, lambda: options.run(options))


def _run_command(command: str, run: Callable[[], int]) -> int:
    """Run a subcommand. What a user can mend is said in one line."""
    from ..apps.names import WrongArgument, said

    try:
        return run()
    except WrongArgument as error:
        print(f"pantile {command}: {error}", file=sys.stderr)
        return 2
    except (pt.PantileError, OSError, MemoryError) as error:
        print(f"pantile {command}: {said(error)}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("pantile", description=_DESCRIPTION, formatter_class=_Plain)
    parser.set_defaults(run=None)
    parser.add_argument("--version", action="version", version=f"pantile {pt.__version__}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="")
    _add_demo(commands)
    _add_run(commands)
    _add_show(commands)
    _add_explain(commands)
    _add_tune(commands)
    commands.add_parser("bench", help="measure apps, beside other systems where they are installed", add_help=False)
    _add_calibrate(commands)
    _add_cache(commands)
    about = "List the NVIDIA GPUs that target='cuda' can run on, or say what is missing."
    commands.add_parser("devices", help="list the GPUs to run on", description=about).set_defaults(run=_devices)
    commands.add_parser("version", help="print the version").set_defaults(run=_version)
    return parser


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of descriptions, and aligns options in one column."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)


_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # generic for type checkers only


def _add_demo(commands: _Commands) -> None:
    about = "Raise the local contrast of a picture, write the result, and say what was done and how fast."
    demo = commands.add_parser(
        "demo", help="run a real pipeline on a picture", description=about, formatter_class=_Plain
    )
    demo.add_argument("--input", type=Path, metavar="PICTURE", help="the picture (needs Pillow); made up if left out")
    demo.add_argument(
        "--output",
        type=Path,
        metavar="PICTURE",
        default=Path("pantile-demo.png"),
        help="what to write; by default %(default)s",
    )
    demo.add_argument("--amount", type=_amount, metavar="A", default=0.8, help="how strong, from 0 to 2; %(default)s")
    demo.add_argument("--size", type=_size, metavar="WxH", default=(1536, 1024), help="of a picture made up; 1536x1024")
    demo.add_argument("--threads", type=_positive, metavar="N", help="how many to run on; one per core")
    demo.add_argument("--compare", action="store_true", help="write the picture before and after, side by side")
    demo.set_defaults(run=_demo)


def _add_run(commands: _Commands) -> None:
    about = """\
Run an app, or a pipeline of yours, on pictures. Without a name, list the apps that work on pictures.

  pantile run unsharp --input photo.jpg --output sharp.png
  pantile run mine.py:blur --input img=photo.jpg --param gain=1.5 --output out.png
  pantile run mine.py:edges --input photo.jpg --output strength=s.tif --output angle=a.npy

Pictures keep their depth, 8 or 16 bits or floats, or are refused. A pipeline's inputs get them as they are declared: in
grey where they have two axes, in RGB where they have three ([y, x, c]; [c, y, x] if the shape says 3, None, None);
float inputs from 0 to 1, uint8 and uint16 over their whole range, other integers as the file has them. A .npy file is
passed on as it is. Floats are written as they are to .tif and .npy; to other files they go from 0 to 1, with as many
bits as the input pictures have.
"""
    run = commands.add_parser(
        "run", help="run an app, or a pipeline of yours, on a picture", description=about, formatter_class=_Plain
    )
    run.add_argument("app", nargs="?", metavar="APP|FILE.py:NAME", help=_TARGET_HELP)
    run.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a picture (needs Pillow, and tifffile for TIFF of more than 8 bits in colour) or an array in a .npy "
        "file; in the order of the inputs, or by their names. An input of four axes takes several",
    )
    run.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="what to write, by default out.png; of several outputs each to out-NAME.png, or one --output for each",
    )
    run.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="a param of the pipeline, as often as needed"
    )
    run.add_argument("--schedule", default="expert", metavar="NAME", help=_SCHEDULE_HELP)
    run.add_argument("--threads", type=_positive, metavar="N", help="how many to run on; one per core")
    run.set_defaults(run=_run)


def _add_show(commands: _Commands) -> None:
    about = """Print what an app, or a pipeline of yours, computes, its schedule, and the loops that the schedule makes
    of it; under a strategy's schedule also why it is as it is. That is for arrays as large as in an app's paper, or for
    pictures of 1080 x 1920 unless --input, --shape, estimates= or an Input say otherwise. Without a name, list all
    apps."""
    show = commands.add_parser("show", help="print stages, schedule and loops", description=about)
    show.add_argument("app", nargs="?", metavar="APP|FILE.py:NAME", help=_TARGET_HELP)
    _add_call(show)
    show.add_argument("--asm", action="store_true", help="the machine code too")
    show.set_defaults(run=_show)


def _add_call(parser: argparse.ArgumentParser) -> None:
    """Add the options of a call, which `show` and `explain` share."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a picture or an array in a .npy file, as for pantile run: the call is one with these",
    )
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=HxW", help=_SHAPE_HELP)
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a param of the pipeline")
    parser.add_argument("--schedule", default="expert", metavar="NAME", help=_SCHEDULE_HELP)
    parser.add_argument("--machine", metavar="NAME", help="that it is for, such as i7-6700; this one if left out")


def _call(options: argparse.Namespace) -> PipelineCall:
    from .call import PipelineCall

    o = options
    return PipelineCall(o.app, o.input, o.shape, o.param, o.schedule, o.machine)


def _add_explain(commands: _Commands) -> None:
    about = """Run an app, or a pipeline of yours, on pictures or on arrays that are made up, and tell where the time
    goes, measured and predicted, how it is scheduled and why, and what else was considered. For another machine, times
    are predicted only."""
    explain = commands.add_parser("explain", help="tell where the time goes, and why", description=about)
    explain.add_argument("app", metavar="APP|FILE.py:NAME", help=_TARGET_HELP)
    _add_call(explain)
    explain.add_argument("--size", default="paper", metavar="NAME", help="of an app; by default paper")
    explain.add_argument("--html", type=Path, metavar="FILE", help="write all of it, with pictures, as a page instead")
    explain.add_argument("--threads", type=_positive, metavar="N", help="how many to run on; one per core")
    explain.set_defaults(run=_explain)


def _add_tune(commands: _Commands) -> None:
    about = """\
Measure the schedules that are predicted to be fastest, and keep the winner for this machine: schedule="tuned" uses it.
Ctrl-C ends it early and keeps the best so far.

  pantile tune blur                                      an app, at the size of its paper
  pantile tune filters.py:sharpen --shape img=1080x1920  a pipeline of yours, for pictures of this size
"""
    tune = commands.add_parser(
        "tune", help="measure schedules, and keep the fastest", description=about, formatter_class=_Plain
    )
    tune.add_argument(
        "targets",
        nargs="+",
        metavar="APP|FILE.py:NAME",
        help="an app, a group of them such as everyday, or a pipeline of yours: a Pipeline, a Func, or a function that "
        "returns one",
    )
    tune.add_argument("--seconds", type=_seconds, default=20.0, metavar="S", help="for each, once auto has chosen; 20")
    tune.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=HxW",
        help=_SHAPE_HELP,
    )
    tune.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="a param of the pipeline")
    tune.add_argument("--size", default="paper", metavar="NAME", help="of an app; by default paper")
    tune.add_argument("--threads", type=_positive, metavar="N", help="how many to run on; one per core")
    tune.set_defaults(run=_tune)


def _add_calibrate(commands: _Commands) -> None:
    about = """Measure what instructions cost on this machine, for predicted times (Pipeline.predict), and keep it in
    the directory of compiled code (PANTILE_CACHE_DIR). Takes some seconds; the machine should be idle. With --gpu, a
    GPU is measured instead: its clock, and the bandwidths of its global and shared memory."""
    calibrate = commands.add_parser("calibrate", help="measure this machine, for predicted times", description=about)
    calibrate.add_argument(
        "--gpu",
        type=_number,
        nargs="?",
        const=0,
        metavar="NUMBER",
        help="measure a GPU, by its number in pantile devices; the first if left out",
    )
    calibrate.set_defaults(run=_calibrate)


def _add_cache(commands: _Commands) -> None:
    about = "Compiled code is kept in a directory (PANTILE_CACHE_DIR) so that it is compiled once only."
    cache = commands.add_parser("cache", help="look at the compiled code kept on disk, or remove it", description=about)
    choice = cache.add_mutually_exclusive_group()
    choice.add_argument("--info", action="store_true", help="where it is and how large (the default)")
    choice.add_argument("--clear", action="store_true", help="remove all of it")
    cache.set_defaults(run=_cache)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) >= 1 and int(height) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it like 1536x1024")
    if max(int(width), int(height)) > _LARGEST_SIDE:
        raise argparse.ArgumentTypeError(f"{text!r} is too large; a side has up to {_LARGEST_SIDE} pixels")
    return int(width), int(height)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount; write a number from 0 to 2")
    return amount


def _seconds(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
    if not 0 < amount <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, such as 20")
    return amount


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _demo(options: argparse.Namespace) -> int:
    from .demo import demo

    return demo(options.input, options.output, options.size, options.amount, options.threads, options.compare)


def _run(options: argparse.Namespace) -> int:
    from .run import RunRequest, listing, run

    if options.app is None:
        print(
            "pantile run APP --input PICTURE --output PICTURE, where APP is FILE.py:NAME, a pipeline of yours, or one "
            f"of\n{listing()}"
        )
        return 0
    asked = options
    return run(RunRequest(asked.app, asked.input, asked.output, asked.param, asked.schedule, asked.threads))


def _show(options: argparse.Namespace) -> int:
    from .show import ShowRequest, listing, show

    if options.app is None:
        print(listing())
        return 0
    return show(ShowRequest(_call(options), options.asm))


def _explain(options: argparse.Namespace) -> int:
    from .explain import ExplainRequest, explain

    return explain(ExplainRequest(_call(options), options.size, options.html, options.threads))


def _tune(options: argparse.Namespace) -> int:
    from .tune import TuneRequest, tune

    asked = options
    return tune(TuneRequest(asked.targets, asked.seconds, asked.size, asked.shape, asked.param, asked.threads))


def _calibrate(options: argparse.Namespace) -> int:
    if options.gpu is not None:
        from .calibrate_gpu import calibrate_gpu

        return calibrate_gpu(options.gpu)
    from .calibrate import calibrate

    return calibrate()


def _cache(options: argparse.Namespace) -> int:
    from .cache import clear, info

    return clear() if options.clear else info()


def _devices(_: argparse.Namespace) -> int:
    from .devices import devices

    return devices()


def _version(_: argparse.Namespace) -> int:
    print(f"pantile {pt.__version__}")
    return 0
