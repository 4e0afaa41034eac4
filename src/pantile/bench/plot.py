"""Charts: bars of speeds relative to one contender, or a picture of several strategies over several apps.

Bars start at that contender's speed: who is faster rises above the line, who is slower hangs below it. Dashes mark the
speed that the machine allows at most. In the picture, the redder a time is, the slower, against the best strategy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from .contender import Label, Unavailable
from .matrix import Matrix
from .ours import SYSTEM
from .result import Result, milliseconds, two_digits

OURS = ("#c1440e", "#e08e5b", "#f0c3a0", "#7f2d0a", "#d9a441", "#8c6d31", "#b56576", "#6d597a")
OTHERS = ("#3d5a80", "#8aa6c4", "#6b8f71", "#b5c99a", "#9a8c98", "#c9ada7", "#d3dce6")
BAR_INCHES = 0.26
MEAN = "geometric\nmean"
LIMIT = "what the machine allows"
SLOWEST = 8.0  # times as slow as the best strategy, and what is slower, are equally red
OVER_THE_BEST = "over the best"


@dataclass(frozen=True)
class Baseline:
    """What speeds are relative to: its name, and its milliseconds for each app."""

    name: str
    label: Label | None
    ms: Mapping[str, float]


def matplotlib() -> tuple[Any, Any]:
    """The modules of matplotlib that draw charts and place ticks."""
    try:
        return import_module("matplotlib.pyplot"), import_module("matplotlib.ticker")
    except ImportError:
        raise Unavailable("matplotlib draws it; install it with `pip install matplotlib`") from None


def draw(path: Path, results: Sequence[Result], caption: str = "") -> None:
    """Write the chart; its format is that of the file name."""
    pyplot, ticker = matplotlib()
    apps = list(dict.fromkeys(r.app for r in results))
    base = baseline(results)
    labels = list(dict.fromkeys(r.label for r in results))
    shown = [x for x in labels if x != base.label] or labels
    groups = [*apps, MEAN] if len(apps) > 1 else apps
    width = max(6.0, 1.4 + len(groups) * (0.3 + BAR_INCHES * len(shown)))
    figure, axes = pyplot.subplots(figsize=(width, 4.8), layout="constrained")
    _bars(axes, shown, [speeds(results, apps, label, base)[: len(groups)] for label in shown])
    _limits(axes, results, apps, base)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks(range(len(groups)), groups, **({"rotation": 30, "ha": "right"} if len(groups) > 8 else {}))
    axes.set_xlim(-0.6, len(groups) - 0.4)
    _scale(axes, ticker)
    axes.set_ylabel(f"speed over that of {base.name}")
    axes.set_title(caption, loc="left", fontsize=9, color="#555555")
    handles, _ = axes.get_legend_handles_labels()
    marks_last = sorted(handles, key=lambda handle: handle.get_label() == LIMIT)
    figure.legend(handles=marks_last, frameon=False, ncols=max(1, int(width / 2.2)), loc="outside upper left")
    figure.savefig(path, dpi=160)
    pyplot.close(figure)


def baseline(results: Sequence[Result]) -> Baseline:
    """The first rival's first schedule on the most threads, else our own first one; the limit, if that is all."""
    labels = list(dict.fromkeys(r.label for r in results))
    if len(labels) == 1 and all("bound_ms" in r.extra for r in results):
        return Baseline(LIMIT, None, {r.app: r.extra["bound_ms"] for r in results})
    rivals = [x for x in labels if x.system != SYSTEM] or labels
    first = max(rivals, key=lambda x: x.threads)
    return Baseline(_name(first), first, {r.app: r.ms for r in results if r.label == first})


def speeds(results: Sequence[Result], apps: Sequence[str], label: Label, base: Baseline) -> list[float]:
    """Per app, and their geometric mean; 0 where one of the two was not measured."""
    ms = {r.app: r.ms for r in results if r.label == label}
    known = [base.ms[app] / ms[app] if app in base.ms and app in ms else 0.0 for app in apps]
    measured = [v for v in known if v]
    return [*known, geometric_mean(measured) if measured else 0.0]


def _name(label: Label) -> str:
    return f"{label.system} {label.schedule}"


def _scale(axes: Any, ticker: Any) -> None:
    """Powers of two, from half to twice at least, with room for numbers above and below the bars."""
    low, high = axes.dataLim.y0, axes.dataLim.y1
    axes.set_yscale("log", base=2)
    axes.set_ylim(min(0.45, low / 1.25), max(2.2, high * 1.25))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:g}×" if v >= 1 else f"1/{1 / v:g}×"))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", length=0)


def _bars(axes: Any, labels: Sequence[Label], speeds: Sequence[Sequence[float]]) -> None:
    """A group per app, in it a bar per contender with its number at the end."""
    width = 0.8 / len(labels)
    palettes = {True: iter(OURS * len(labels)), False: iter(OTHERS * len(labels))}
    threads = {x.threads for x in labels}
    for k, (label, values) in enumerate(zip(labels, speeds, strict=True)):
        color = next(palettes[label.system == SYSTEM])
        places = [(i - 0.4 + (k + 0.5) * width, v) for i, v in enumerate(values) if v]
        name = str(label) if len(threads) > 1 else _name(label)
        axes.bar([x for x, _ in places], [v - 1 for _, v in places], 0.92 * width, 1, label=name, color=color)
        for x, v in places:
            above = v >= 1
            axes.annotate(
                f"{v:.2f}",
                (x, v),
                (0, 2 if above else -2),
                textcoords="offset points",
                ha="center",
                va="bottom" if above else "top",
                fontsize=7,
                fontweight="bold" if label.system == SYSTEM else "normal",
                zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.3},
            )


def _limits(axes: Any, results: Sequence[Result], apps: Sequence[str], base: Baseline) -> None:
    """Marks at the speed of the roofline."""
    least = {r.app: r.extra["bound_ms"] for r in results if "bound_ms" in r.extra}
    places = [(i, base.ms[app] / least[app]) for i, app in enumerate(apps) if app in least and app in base.ms]
    if places and base.label is not None:
        x, y = zip(*places, strict=True)
        left, right = [i - 0.4 for i in x], [i + 0.4 for i in x]
        axes.hlines(y, left, right, color="black", linewidth=1.2, linestyle=(0, (3, 2)), label=LIMIT, zorder=3)


def draw_heatmap(path: Path, results: Sequence[Result], caption: str = "") -> None:
    """Write the picture; its format is that of the file name."""
    pyplot, _ = matplotlib()
    m = Matrix(results)
    apps = list(m.times)
    ratios = [[m.ratio(app, [x]) if x in m.times[app] else None for x in m.labels] for app in apps]
    texts = [[milliseconds(m.times[app][x]) if x in m.times[app] else "" for x in m.labels] for app in apps]
    means = [m.mean([x]) for x in m.labels]
    ratios.append(means)
    texts.append(list(map(two_digits, means)))
    size = (2.2 + 0.85 * len(m.labels), 1.4 + 0.27 * len(texts))
    figure, axes = pyplot.subplots(figsize=size, layout="constrained")
    _cells(axes, ratios, texts)
    axes.set_xticks(range(len(m.labels)), [name.replace(" ", "\n") for name in m.head])
    axes.set_yticks(range(len(texts)), [*apps, OVER_THE_BEST])
    axes.axhline(len(apps) - 0.5, color="black", linewidth=1)
    axes.set_title(caption, loc="left", fontsize=9, color="#555555")
    figure.savefig(path, dpi=160)
    pyplot.close(figure)


def _cells(axes: Any, ratios: Sequence[Sequence[float | None]], texts: Sequence[Sequence[str]]) -> None:
    """From green, twice as fast as the best strategy, over white to red; a number in each."""
    shades = [[math.nan if r is None else _shade(r) for r in row] for row in ratios]
    axes.imshow(shades, cmap="RdYlGn_r", vmin=-1, vmax=1, aspect="auto", alpha=0.75)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            is_best = ratios[i][j] == 1
            axes.text(j, i, text, ha="center", va="center", fontsize=8, fontweight="bold" if is_best else "normal")


def _shade(ratio: float) -> float:
    """-1 for half the time of the best strategy, 0 for its own, 1 for `SLOWEST` times it."""
    shade = math.log2(ratio) if ratio < 1 else math.log(ratio, SLOWEST)
    return max(-1.0, min(1.0, shade))
