"""Arguments of the command in, an exit status out. What a subcommand needs is imported when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from .names import WrongArgument
from .version import version

_DESCRIPTION = """\
Image pipelines as functions of pixel coordinates, compiled to fast native code.

  pantile demo                         run a real pipeline on a picture, and see how fast it is
  pantile run unsharp --input a.jpg    an app on a picture of yours
  pantile show blur                    an app's schedule and the loops it becomes
  pantile tune filters.py:blur         measure schedules of a pipeline of yours, and keep the fastest
  pantile bench blur --rivals halide   measure apps beside other systems
"""
_LARGEST_SIDE = 1 << 14  # of a picture that is made up: 800 MB
_SCHEDULE_HELP = "expert (by hand; auto where nobody wrote one), plain, or a strategy such as greedy; %(default)s"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0, 1 for a failure that was explained, 2 for wrong arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["bench"]:  # it reads its own arguments
        from ..bench import main as bench

        return bench(arguments[1:])
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help()
        return 0
    return _explained(options)


def _explained(options: argparse.Namespace) -> int:
    """Run a subcommand. What a user can mend is said in one line."""
    import pantile as pt

    try:
        status: int = options.run(options)
    except WrongArgument as error:
        print(f"pantile {options.command}: {error}", file=sys.stderr)
        return 2
    except (pt.PantileError, OSError) as error:
        print(f"pantile {options.command}: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("pantile", description=_DESCRIPTION, formatter_class=_Plain)
    parser.set_defaults(run=None)
    parser.add_argument("--version", action="version", version=f"pantile {version()}")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="")
    _add_demo(commands)
    _add_run(commands)
    _add_show(commands)
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
    about = "Raise the local contrast of a picture, write the result as PNG, and say what was done and how fast."
    demo = commands.add_parser(
        "demo", help="run a real pipeline on a picture", description=about, formatter_class=_Plain
    )
    demo.add_argument("--input", type=Path, metavar="PICTURE", help="the picture (needs Pillow); made up if left out")
    demo.add_argument(
        "--output", type=Path, metavar="PNG", default=Path("pantile-demo.png"), help="what to write; %(default)s"
    )
    demo.add_argument("--amount", type=_amount, metavar="A", default=0.8, help="how strong, from 0 to 2; %(default)s")
    demo.add_argument("--size", type=_size, metavar="WxH", default=(1536, 1024), help="of a picture made up; 1536x1024")
    demo.add_argument("--threads", type=_positive, metavar="N", help="how many to run on; one per core")
    demo.add_argument("--compare", action="store_true", help="write the picture before and after, side by side")
    demo.set_defaults(run=_demo)


def _add_run(commands: _Commands) -> None:
    about = "Run an app on a picture. Without an app's name, list those that work on pictures."
    run = commands.add_parser("run", help="run an app on a picture of yours", description=about, formatter_class=_Plain)
    run.add_argument("app", nargs="?", metavar="APP", help="unsharp, bilateral_grid, ...")
    run.add_argument(
        "--input", action="append", default=[], metavar="PICTURE",
        help="the picture (needs Pillow); NAME=PICTURE where an app takes several",
    )  # fmt: skip
    run.add_argument(
        "--output", type=Path, metavar="PICTURE", default=Path("out.png"), help="what to write; %(default)s"
    )
    run.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="of the app, as often as needed"
    )
    run.add_argument("--schedule", default="expert", metavar="NAME", help=_SCHEDULE_HELP)
    run.add_argument("--threads", type=_positive, metavar="N", help="how many to run on; one per core")
    run.set_defaults(run=_run)


def _add_show(commands: _Commands) -> None:
    about = """Print what an app computes, its schedule, and the loops that the schedule makes of it. Under a strategy's
    schedule, for pictures as large as in its paper, also why it is as it is. Without an app's name, list all apps."""
    show = commands.add_parser("show", help="print an app's stages, schedule and loops", description=about)
    show.add_argument("app", nargs="?", metavar="APP", help="blur, unsharp, harris, ...")
    show.add_argument("--schedule", default="expert", metavar="NAME", help=_SCHEDULE_HELP)
    show.add_argument("--machine", metavar="NAME", help="that a strategy schedules for, such as i7-6700; this one")
    show.add_argument("--asm", action="store_true", help="the machine code too")
    show.add_argument("--html", type=Path, metavar="FILE", help="write all of it, with pictures, as a page instead")
    show.set_defaults(run=_show)


def _add_tune(commands: _Commands) -> None:
    about = """\
Measure the schedules that are predicted to be fastest, and keep the winner for this machine: schedule="tuned" uses it.
Ctrl-C ends it early and keeps the best so far.

  pantile tune blur                                      an app, at the size of its paper
  pantile tune filters.py:sharpen --shape img=1080x1920  a pipeline of yours, for pictures of this size
"""
    tune = commands.add_parser("tune", help="measure schedules, and keep the fastest", description=about,
                               formatter_class=_Plain)  # fmt: skip
    tune.add_argument(
        "targets", nargs="+", metavar="APP|FILE.py:NAME",
        help="an app, a group of them such as everyday, or a pipeline (or a function that makes one) in a file",
    )  # fmt: skip
    tune.add_argument("--seconds", type=_seconds, default=20.0, metavar="S", help="for each, once auto has chosen; 20")
    tune.add_argument(
        "--shape", action="append", default=[], metavar="NAME=HxW",
        help="of an input, in NumPy's order, such as img=1080x1920x3; what estimates= says if left out",
    )  # fmt: skip
    tune.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="that the pipeline takes")
    tune.add_argument("--size", default="paper", metavar="NAME", help="of an app; %(default)s")
    tune.add_argument("--threads", type=_positive, metavar="N", help="how many to run on; one per core")
    tune.set_defaults(run=_tune)


def _add_calibrate(commands: _Commands) -> None:
    about = """Measure what instructions cost on this machine, for predicted times (Pipeline.predict), and keep it in
    the directory of compiled code (PANTILE_CACHE_DIR). Takes some seconds; the machine should be idle."""
    calibrate = commands.add_parser("calibrate", help="measure this machine, for predicted times", description=about)
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


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def _demo(options: argparse.Namespace) -> int:
    from .demo import demo

    return demo(options.input, options.output, options.size, options.amount, options.threads, options.compare)


def _run(options: argparse.Namespace) -> int:
    from .run import Request, listing, run

    if options.app is None:
        print(f"pantile run APP --input PICTURE --output PICTURE, where APP is one of\n{listing()}")
        return 0
    asked = options
    return run(Request(asked.app, asked.input, asked.output, asked.param, asked.schedule, asked.threads))


def _show(options: argparse.Namespace) -> int:
    from .show import listing, show

    if options.app is None:
        print(listing())
        return 0
    return show(options.app, options.schedule, options.machine, options.asm, options.html)


def _tune(options: argparse.Namespace) -> int:
    from .tune import Request, tune

    asked = options
    return tune(Request(asked.targets, asked.seconds, asked.size, asked.shape, asked.param, asked.threads))


def _calibrate(_: argparse.Namespace) -> int:
    from .calibrate import calibrate

    return calibrate()


def _cache(options: argparse.Namespace) -> int:
    from .cache import clear, info

    return clear() if options.clear else info()


def _devices(_: argparse.Namespace) -> int:
    from .devices import devices

    return devices()


def _version(_: argparse.Namespace) -> int:
    print(f"pantile {version()}")
    return 0
