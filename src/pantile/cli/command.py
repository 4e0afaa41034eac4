"""The command line: parse the arguments, run a subcommand, return its exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from math import nan
from pathlib import Path
from typing import Any, TypeAlias

import pantile as pt

_DESCRIPTION = """\
Image pipelines as functions of pixel coordinates, compiled to fast native code.

  pantile demo                                 run a sample pipeline and report how fast it is
  pantile run unsharp --input a.jpg            run an app on your picture
  pantile run mine.py:blur --input a.jpg       run your own pipeline: blur in the file mine.py
  pantile show mine.py:blur                    print the schedule and the loops it produces
  pantile explain mine.py:blur                 report where the time goes, and why
  pantile tune mine.py:blur                    measure schedules and save the fastest
  pantile bench blur --rivals halide           compare apps with other systems

Instead of an app, you can name your own pipeline as FILE.py:NAME: a pt.Pipeline, a pt.Func, or a function that returns
one.
"""
_LARGEST_SIDE = 1 << 14  # of a generated picture: 800 MB
_TARGET_HELP = "an app such as unsharp, or your own pipeline as FILE.py:NAME"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0, 1 for a failure that was explained, 2 for wrong arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["bench"]:  # it parses its own arguments
        from ..bench import main as bench

        return _run_command("bench", lambda: bench(arguments[1:]))
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help()
        return 0
    return _run_command(options.command, lambda: options.run(options))


def _run_command(command: str, run: Callable[[], int]) -> int:
    """Run a subcommand. Errors that a user can correct are reported in one line."""
    from ..apps.names import WrongArgument, error_text

    try:
        return run()
    except WrongArgument as error:
        print(f"pantile {command}: {error}", file=sys.stderr)
        return 2
    except (pt.PantileError, OSError, MemoryError) as error:
        print(f"pantile {command}: {error_text(error)}", file=sys.stderr)
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
    commands.add_parser("bench", help="time apps and compare them with other systems", add_help=False)
    _add_calibrate(commands)
    _add_cache(commands)
    about = "List the NVIDIA GPUs that target='cuda' can run on, or report what is missing."
    commands.add_parser("devices", help="list the available GPUs", description=about).set_defaults(
        run=_later("devices")
    )
    commands.add_parser("version", help="print the version").set_defaults(run=_version)
    return parser


class _Plain(argparse.RawDescriptionHelpFormatter):
    """A formatter that keeps the line breaks of descriptions and aligns options in one column."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)


_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # generic for type checkers only


def _add_demo(commands: _Commands) -> None:
    about = "Increase the local contrast of a picture, write the result, and report how it was computed and how fast."
    demo = commands.add_parser(
        "demo", help="run a sample pipeline on a picture", description=about, formatter_class=_Plain
    )
    demo.add_argument("--input", type=Path, metavar="PICTURE", help="the picture (needs Pillow); generated if omitted")
    demo.add_argument(
        "--output",
        type=Path,
        metavar="PICTURE",
        default=Path("pantile-demo.png"),
        help="the file to write (default: %(default)s)",
    )
    demo.add_argument(
        "--amount", type=_amount, metavar="A", default=0.8, help="the strength, from 0 to 2 (default: %(default)s)"
    )
    demo.add_argument(
        "--size",
        type=_size,
        metavar="WxH",
        default=(1536, 1024),
        help="the size of a generated picture (default: 1536x1024)",
    )
    _add_shared(demo, "--threads")
    demo.add_argument("--compare", action="store_true", help="write the original and the result side by side")
    demo.set_defaults(run=_later("demo"))


def _add_run(commands: _Commands) -> None:
    about = """\
Run an app or your own pipeline on pictures. Without a name, list the apps that work on pictures.

  pantile run unsharp --input photo.jpg --output sharp.png
  pantile run mine.py:blur --input img=photo.jpg --param gain=1.5 --output out.png
  pantile run mine.py:edges --input photo.jpg --output strength=s.tif --output angle=a.npy

Pictures keep their depth (8 bits, 16 bits or floats); a file that cannot hold it is refused. Each input receives its
picture as it is declared: in grey if it has two axes, in RGB if it has three ([y, x, c], or [c, y, x] if its shape is
(3, None, None)). Float inputs range from 0 to 1, uint8 and uint16 inputs over their whole range; other integers are as
in the file. A .npy file is passed unchanged. Floats are written unchanged to .tif and .npy; in other files, 0 to 1
becomes the full range, with as many bits as the input pictures have.
"""
    run = commands.add_parser(
        "run", help="run an app or your own pipeline on a picture", description=about, formatter_class=_Plain
    )
    run.add_argument("app", nargs="?", metavar="APP|FILE.py:NAME", help=_TARGET_HELP)
    run.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a picture (needs Pillow, and tifffile for colour TIFF of more than 8 bits) or a .npy file, in the order "
        "of the inputs or by name. An input with four axes takes several",
    )
    run.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="the file to write (default: out.png; with several outputs, out-NAME.png for each)",
    )
    _add_shared(run, "--param", "--schedule", "--threads")
    run.set_defaults(run=_later("run"))


def _add_show(commands: _Commands) -> None:
    about = """Print what an app or your own pipeline computes, its schedule, the reasons for it if a strategy found it,
    and the loops that it produces. Apps are scheduled for the sizes of their papers; other pipelines for pictures of
    1080 x 1920, unless --input, --shape, estimates= or an Input says otherwise. Without a name, list all apps."""
    show = commands.add_parser("show", help="print the stages, the schedule and the loops", description=about)
    show.add_argument("app", nargs="?", metavar="APP|FILE.py:NAME", help=_TARGET_HELP)
    _add_call(show)
    show.add_argument("--asm", action="store_true", help="print the machine code as well")
    show.set_defaults(run=_later("show"))


def _add_call(parser: argparse.ArgumentParser) -> None:
    """Add the options of a call, which `show` and `explain` share."""
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a picture or a .npy file to call the pipeline with, as for pantile run",
    )
    _add_shared(parser, "--shape", "--param", "--schedule")
    parser.add_argument(
        "--machine", metavar="NAME", help="the machine to schedule for, such as i7-6700 or H200 (default: this one)"
    )


def _add_explain(commands: _Commands) -> None:
    about = """Run an app or your own pipeline on pictures or on generated arrays, and report where the time goes,
    measured and predicted, how the pipeline is scheduled and why, and which alternatives were considered. For another
    machine, times are only predicted."""
    explain = commands.add_parser("explain", help="report where the time goes, and why", description=about)
    explain.add_argument("app", metavar="APP|FILE.py:NAME", help=_TARGET_HELP)
    _add_call(explain)
    _add_shared(explain, "--size")
    explain.add_argument("--html", type=Path, metavar="FILE", help="write an HTML page with diagrams instead")
    _add_shared(explain, "--threads")
    explain.set_defaults(run=_later("explain"))


def _add_tune(commands: _Commands) -> None:
    about = """\
Measure the schedules that are predicted to be fastest, and save the winner for this machine: schedule="tuned" uses it.
Ctrl-C stops early and saves the best schedule so far.

  pantile tune blur                                      an app, at the size of its paper
  pantile tune filters.py:sharpen --shape img=1080x1920  your own pipeline, for pictures of this size
"""
    tune = commands.add_parser(
        "tune", help="measure schedules and save the fastest", description=about, formatter_class=_Plain
    )
    tune.add_argument(
        "targets",
        nargs="+",
        metavar="APP|FILE.py:NAME",
        help="an app, a group of apps such as everyday, or your own pipeline: a Pipeline, a Func, or a function that "
        "returns one",
    )
    tune.add_argument(
        "--seconds",
        type=_seconds,
        default=20.0,
        metavar="S",
        help="the time to spend on each pipeline, after auto has run (default: 20)",
    )
    _add_shared(tune, "--shape", "--param", "--size", "--threads")
    tune.set_defaults(run=_later("tune"))


def _add_calibrate(commands: _Commands) -> None:
    about = """Measure the instruction costs of this machine, which Pipeline.predict uses, and save them in the
    cache directory (PANTILE_CACHE_DIR). This takes some seconds; the machine should be idle. With --gpu, measure a GPU
    instead: its clock, and the bandwidths of its global and shared memory."""
    calibrate = commands.add_parser("calibrate", help="measure this machine for the cost model", description=about)
    calibrate.add_argument(
        "--gpu",
        type=_number,
        nargs="?",
        const=0,
        metavar="NUMBER",
        help="measure a GPU, by its number in pantile devices (default: 0)",
    )
    calibrate.set_defaults(run=_later("calibrate"))


def _add_cache(commands: _Commands) -> None:
    about = "Show or clear the cache of compiled code (PANTILE_CACHE_DIR)."
    cache = commands.add_parser("cache", help="show or clear the cache of compiled code", description=about)
    choice = cache.add_mutually_exclusive_group()
    choice.add_argument("--info", action="store_true", help="print where the cache is and how large (the default)")
    choice.add_argument("--clear", action="store_true", help="remove everything in it")
    cache.set_defaults(run=_later("cache"))


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdecimal() and height.isdecimal() and int(width) >= 1 and int(height) >= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it like 1536x1024")
    if max(int(width), int(height)) > _LARGEST_SIDE:
        raise argparse.ArgumentTypeError(f"{text!r} is too large; a side may have at most {_LARGEST_SIDE} pixels")
    return int(width), int(height)


def _amount(text: str) -> float:
    amount = _float(text)
    if not 0 <= amount <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount; write a number from 0 to 2")
    return amount


def _seconds(text: str) -> float:
    amount = _float(text)
    if not 0 < amount <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, such as 20")
    return amount


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


def _number(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return int(text)


def _positive(text: str) -> int:
    return _number(text, 1)


_SEVERAL = {"action": "append", "default": []}
_SCHEDULES = "expert (the schedule in the app or file; the default), plain, or a strategy such as auto or greedy"
_SHAPE = "the shape of an input in NumPy order, such as img=1080x1920x3; defaults to estimates= or the Input's shape"
_SHARED: dict[str, dict[str, Any]] = {
    "--param": {**_SEVERAL, "metavar": "NAME=VALUE", "help": "the value of a param; may be repeated"},
    "--schedule": {"default": "expert", "metavar": "NAME", "help": _SCHEDULES},
    "--shape": {**_SEVERAL, "metavar": "NAME=HxW", "help": _SHAPE},
    "--size": {"default": "paper", "metavar": "NAME", "help": "the size of an app's inputs (default: paper)"},
    "--threads": {"type": _positive, "metavar": "N", "help": "the number of threads (default: one per core)"},
}


def _add_shared(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options that several commands have."""
    for name in names:
        parser.add_argument(name, **_SHARED[name])


def _later(command: str) -> Callable[[argparse.Namespace], int]:
    """The function `run` of a command's module, which is imported when it runs."""

    def run(options: argparse.Namespace) -> int:
        status: int = import_module(f".{command}", __package__).run(options)
        return status

    return run


def _version(_: argparse.Namespace) -> int:
    print(f"pantile {pt.__version__}")
    return 0
