"""Compare the times that are predicted for a GPU with measured ones. It needs no GPU.

    python tools/gpu_predictions.py docs/results/gpu_strategies.json docs/results/gpu_thesis.json
    python tools/gpu_predictions.py docs/results/gpu.json --each     # a line per schedule, the worst first

The files are those that `pantile bench --target cuda --json` wrote. Each of their schedules is found again and
predicted for the GPU that is named (`--gpu`, an H200 unless it is given).
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pantile as pt
from pantile.apps import APPS
from pantile.bench.predictions import PredictionResult, table
from pantile.cost_model.result import time

SIMULATED = "cuda-sim"  # a target that needs no GPU
Measured = tuple[str, str, str]  # app, schedule, size


def measured(paths: list[Path]) -> dict[Measured, float]:
    """The milliseconds of our schedules in these files, launched as one graph."""
    results = [r for path in paths for r in json.loads(path.read_text())["results"] if r["system"] == "pantile"]
    return {(r["app"], r["schedule"], r["size"]): r["captured_ms"] for r in results if "captured_ms" in r}


def compared(paths: list[Path], gpu: pt.machine.Machine) -> Iterator[PredictionResult]:
    for (name, schedule, size), ms in measured(paths).items():
        app = APPS[name]
        arguments = {**app.sizes[size], **app.params}
        pipeline = app.build().with_options(target=SIMULATED)
        chosen = app.schedule(schedule, pipeline.options.target)
        found = pipeline.with_schedule(chosen, machine=gpu, estimates=arguments).predict(**arguments)
        label = f"{name} ({size})" if size != "paper" else name
        yield PredictionResult(label, schedule, 1e3 * found.seconds, ms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--gpu", default="H200", help="the GPU that the times were measured on")
    parser.add_argument("--each", action="store_true", help="print a line per schedule instead of one per app")
    args = parser.parse_args()
    results = list(compared(args.files, pt.machine.named(args.gpu)))
    if args.each:
        for r in sorted(results, key=lambda r: -abs(math.log(r.ratio))):
            took = f"{time(r.predicted_ms / 1e3)} predicted, {time(r.measured_ms / 1e3)} measured"
            print(f"{r.app} {r.schedule}: {took}, {r.ratio:.2f}")
    else:
        print(*table(results), sep="\n")


if __name__ == "__main__":
    main()
