"""A bar chart of speeds relative to one contender, for each app and over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .contender import Label, Unavailable
from .ours import SYSTEM
from .result import Result, geometric_mean, ratio

OURS = ("#c1440e", "#e08e5b", "#f0c3a0")
OTHERS = ("#3d5a80", "#7394b8", "#a9bfd6", "#d3dce6")


def draw(path: Path, results: Sequence[Result]) -> None:
    """Write the chart; its format is that of the file name."""
    try:
        pyplot = import_module("matplotlib.pyplot")
    except ImportError:
        raise Unavailable("matplotlib draws it; install it with `pip install matplotlib`") from None
    apps = list(dict.fromkeys(r.app for r in results))
    labels = list(dict.fromkeys(r.label for r in results))
    base = baseline(labels)
    groups = [*apps, "geometric\nmean"]
    figure, axes = pyplot.subplots(figsize=(2 + 0.35 * len(labels) * len(groups), 4.5), layout="constrained")
    _bars(axes, labels, [speeds(results, apps, label, base) for label in labels])
    axes.set_xticks(range(len(groups)), groups)
    axes.set_ylabel(f"speed relative to {base.system} {base.schedule}")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, ncols=2, loc="outside upper left")
    figure.savefig(path, dpi=160)
    pyplot.close(figure)


def baseline(labels: Sequence[Label]) -> Label:
    """The first rival's first schedule on the most threads, or our own first one if we are alone."""
    rivals = [x for x in labels if x.system != SYSTEM] or list(labels)
    return max(rivals, key=lambda x: x.threads)


def speeds(results: Sequence[Result], apps: Sequence[str], label: Label, base: Label) -> list[float]:
    """Per app, and their geometric mean; 0 where one of the two was not measured."""
    known = [ratio(results, app, base, label) or 0.0 for app in apps]
    measured = [v for v in known if v]
    return [*known, geometric_mean(measured) if measured else 0.0]


def _bars(axes: Any, labels: Sequence[Label], heights: Sequence[Sequence[float]]) -> None:
    """A group per app, in it a bar per contender with its number on top."""
    width = 0.8 / len(labels)
    palettes = {True: iter(OURS * len(labels)), False: iter(OTHERS * len(labels))}
    for k, (label, values) in enumerate(zip(labels, heights, strict=True)):
        places = [i - 0.4 + (k + 0.5) * width for i in range(len(values))]
        color = next(palettes[label.system == SYSTEM])
        bars = axes.bar(places, values, 0.92 * width, label=str(label), color=color)
        axes.bar_label(bars, [f"{v:.2f}" if v else "" for v in values], fontsize=7)
