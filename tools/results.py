"""Write the tables of the documentation from the JSON files that `pantile bench --json` wrote:

    pantile bench blur harris --schedule auto,expert --rivals halide --json docs/results/n1.json
    python tools/results.py             # writes the tables of README.md and docs/*.md
    python tools/results.py --check     # writes nothing; fails if a table is not what its file says

A table stands between two comments. The first one names the kind of table, the file in docs/results and, where not all
contenders of the file are wanted, those that are:

    <!-- table: beside n1.json auto expert halide:manual -->
    <!-- end -->

Every table begins with the date, the commit, the machine and the command that its file was measured with.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "results"
BLOCK = re.compile(r"^<!-- table: (?P<what>.*?) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
OURS = "pantile"
BASELINES = ("auto", "tuned", "expert", "plain", "naive")  # which strategies are compared with
MEAN = "geometric mean"
Row = list[str]


@dataclass(frozen=True)
class Measured:
    """A file of results, and which of its contenders a table shows."""

    document: dict[str, Any]
    wanted: tuple[str, ...]

    @property
    def times(self) -> dict[str, dict[str, float]]:
        """Milliseconds by app and contender: a schedule of ours, or "system:schedule"."""
        times: dict[str, dict[str, float]] = {}
        for result in self.document["results"]:
            name = contender(result)
            if not self.wanted or name in self.wanted or result["system"] in self.wanted:
                times.setdefault(result["app"], {})[name] = result["ms"]
        return times

    @property
    def contenders(self) -> list[str]:
        """All contenders of the table, ours first."""
        names = dict.fromkeys(name for of in self.times.values() for name in of)
        return sorted(names, key=lambda name: ":" in name)

    @property
    def unit(self) -> tuple[str, float]:
        """What tables show times in, and how many of that a millisecond is: microseconds for those of a GPU."""
        on_gpu = all(result["threads"] == 0 for result in self.document["results"])
        return ("µs", 1e3) if on_gpu else ("ms", 1.0)


def contender(result: dict[str, Any]) -> str:
    """The name of a result's contender."""
    return result["schedule"] if result["system"] == OURS else f"{result['system']}:{result['schedule']}"


def beside(m: Measured) -> list[Row]:
    """Our schedules and all rivals of the apps that some rival has; the best rival over each of our schedules, and the
    geometric means of that."""
    ours = [name for name in m.contenders if ":" not in name]
    rivals = [name for name in m.contenders if ":" in name]
    unit, scale = m.unit
    rows = [[unit, *ours, *(name.removesuffix(":default") for name in rivals), *(f"best / {name}" for name in ours)]]
    ratios: dict[str, list[float]] = {name: [] for name in ours}
    for app, of in m.times.items():
        best = min((of[name] for name in rivals if name in of), default=None)
        if best is None:
            continue
        cells = []
        for name in ours:
            cells.append(f"{best / of[name]:.2f}" if name in of else "")
            ratios[name] += [best / of[name]] if name in of else []
        times = [digits(scale * of[name]) if name in of else "–" for name in [*ours, *rivals]]
        rows.append([app, *times, *cells])
    means = [f"{geometric_mean(values):.2f}" if values else "" for values in ratios.values()]
    rows.append([MEAN, *[""] * (len(ours) + len(rivals)), *means])
    return rows


def strategies(m: Measured) -> list[Row]:
    """One column per contender, the best strategy in bold; how far each is from it on the geometric mean."""
    searched = [name for name in m.contenders if ":" not in name and name not in BASELINES]
    unit, scale = m.unit
    rows = [[unit, *m.contenders]]
    ratios: dict[str, list[float]] = {name: [] for name in m.contenders}
    for app, of in m.times.items():
        best = min(of[name] for name in searched if name in of)
        for name, ms in of.items():
            ratios[name].append(ms / best)
        bold = {name: "**" if name in searched and ms == best else "" for name, ms in of.items()}
        cells = [f"{bold[name]}{digits(scale * of[name])}{bold[name]}" if name in of else "–" for name in m.contenders]
        rows.append([app, *cells])
    rows.append(["over the best strategy", *(f"{geometric_mean(ratios[name]):.2f}" for name in m.contenders)])
    return rows


def compiling(m: Measured) -> list[Row]:
    """Seconds to find a schedule and to compile, of ours and of rivals."""
    rows = [["s", *m.contenders]]
    for app, of in m.times.items():
        seconds = {contender(r): r["schedule_s"] + r["compile_s"] for r in m.document["results"] if r["app"] == app}
        rows.append([app, *(f"{seconds[name]:.2f}" if name in of else "–" for name in m.contenders)])
    return rows


def overhead(m: Measured) -> list[Row]:
    """What a call costs beyond its kernel."""
    costs = {r["app"]: r["overhead_us"] for r in m.document["results"] if "overhead_us" in r}
    return [["", *costs], ["µs", *(f"{us:.1f}" for us in costs.values())]]


def ablation(m: Measured) -> list[Row]:
    """The time without an ingredient of `auto` over the time with it; empty where it changes nothing."""
    apps = m.document["ablation"]
    names = list(dict.fromkeys(name for app in apps for name in app["without_ms"]))
    rows = [["app", "auto, ms", *names]]
    for app in apps:
        without = app["without_ms"]
        rows.append([app["app"], digits(app["ms"]), *(_ratio(without.get(name), app["ms"]) for name in names)])
    means = [geometric_mean([app["without_ms"].get(name, app["ms"]) / app["ms"] for app in apps]) for name in names]
    return [*rows, [MEAN, "", *(f"{mean:.2f}" for mean in means)]]


KINDS: dict[str, Callable[[Measured], list[Row]]] = {
    "beside": beside,
    "strategies": strategies,
    "compiling": compiling,
    "overhead": overhead,
    "ablation": ablation,
}


def table(what: str) -> str:
    """The text between the comments of a table."""
    kind, file, *wanted = what.split()
    document = json.loads((DATA / file).read_text())
    rows = KINDS[kind](Measured(document, tuple(wanted)))
    return "\n".join([origin(document), "", *markdown(rows)])


def origin(document: dict[str, Any]) -> str:
    """When, at which commit, on what and by which command a file was measured, but for what it was to write."""
    machine, run = document["machine"], document["run"]
    where = machine["gpu"] if "gpu" in machine else f"{machine['cpu']}, {machine['cores']} cores"
    command = re.sub(r" --(json|plot) \S+", "", run["command"])
    return f"{run['date']}, commit {run['commit'][:10]}, {where}: `{command}`"


def markdown(rows: Sequence[Row]) -> Iterator[str]:
    """A table whose first column is text and whose others are numbers."""
    head, *body = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    yield f"| {' | '.join(head)} |"
    yield f"| --- |{' ---: |' * (len(head) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in body)


def digits(value: float) -> str:
    """Three significant digits, and all digits before the point."""
    return f"{value:.{max(0, 3 - len(str(int(value))))}f}" if value >= 1 else f"{value:.3f}"


def _ratio(without: float | None, ms: float) -> str:
    return "" if without is None else f"{without / ms:.2f}"


def written(text: str) -> str:
    """A page with its tables as their files say."""
    return BLOCK.sub(lambda m: f"<!-- table: {m['what']} -->\n{table(m['what'])}\n<!-- end -->", text)


def main() -> int:
    """Write all pages, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table is not what its file says")
    check = parser.parse_args().check
    outdated = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        before = page.read_text()
        after = written(before)
        if after != before:
            outdated.append(page.relative_to(ROOT))
            if not check:
                page.write_text(after)
    for page in outdated:
        print(f"{page}: {'its tables are not what docs/results says' if check else 'written'}")
    return 1 if check and outdated else 0


if __name__ == "__main__":
    sys.exit(main())
