"""Several strategies over several apps as a picture: the redder a time is, the slower, against the best strategy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .columns import milliseconds, two_digits
from .matrix import Matrix
from .plot import matplotlib
from .result import Result

SLOWEST = 8.0  # times as slow as the best strategy, and what is slower, are equally red
MEAN = "over the best"


def draw(path: Path, results: Sequence[Result], caption: str = "") -> None:
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
    axes.set_yticks(range(len(texts)), [*apps, MEAN])
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
