"""Fit the weights of polymage_gpu's cost (line 35 of Algorithm 2) to times on a GPU, leaving one app out at a time.

    python tools/fit_warp_weights.py measure times.jsonl [--near 1,2,3,4,5,6,7] [--seconds 150]
    python tools/fit_warp_weights.py fit times.jsonl

`measure` finds schedules of the six apps of Table 4 under many weights: these are the groups, tiles, blocks and
fractions in registers that some weights choose. Each schedule is a line: its terms without weights, summed over its
groups, and its time. Processes find and compile side by side and take turns with the GPU. `--near` draws the weights
around some, to look closer. Without a GPU, `--simulated` writes the bytes that `predict` counts in place of times.

`fit` reads these lines. Of each list, the schedules of an app in tiles of blocks or of warps, weights choose the one
that costs least; wanted is that it is among the fastest. So the weights make the mean logarithm of time / least time
small, with schedules weighted by exp(-cost): by descent from several starts, on all apps but one, and then on all.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import pantile as pt
from pantile.apps import APPS
from pantile.autoschedule.blocks.warp_costs import Weights
from pantile.autoschedule.polymage_gpu import BLOCK, HYBRID, REGISTER, PolymageGpu

TABLE_4 = [f"{name}_polymage" for name in
           ("interpolate", "pyramid_blend", "camera_pipe", "bilateral_grid", "harris", "unsharp")]  # fmt: skip
FORMS = {HYBRID: 40, REGISTER: 20, BLOCK: 20}  # form of tiles -> how many weights are tried, of which many choose alike
WEIGHTS = ("w1", "w2", "w3", "w4", "w5", "w6", "w7")
USUAL = np.array([5.0, 1.0, 1.0, 1.0, 1.0, 0.3, 5.0])  # by how much terms differ, without weights
DECADES, NEAR_DECADES = 1.5, 0.3  # how far weights are drawn from these
STARTS, STEPS, RATE = 12, 1500, 0.03  # of descent


# ---- measure


def drawn(near: Sequence[float] | None) -> list[tuple[float, ...]]:
    """Weights to try: those of Table 3, or some given ones, and others at random, the same ones every time."""
    first = np.array(near or [getattr(Weights(), w) for w in WEIGHTS])
    rng = np.random.default_rng(7)
    middle, decades = (np.maximum(first, 1e-3), NEAR_DECADES) if near else (1 / USUAL, DECADES)
    others = middle * 10 ** rng.uniform(-decades, decades, (max(FORMS.values()) - 1, len(WEIGHTS)))
    return [tuple(map(float, w)) for w in (first, *np.round(others, 4))]


@dataclass(frozen=True)
class Process:
    """What a process needs for its tasks."""

    lock: Any  # of the GPU, and of the file
    known: Any  # schedules, with the weights that chose them first
    options: argparse.Namespace
    begun: float


here: Process  # in each of the processes


def start(lock: Any, known: Any, options: argparse.Namespace) -> None:
    """Begin a process."""
    global here
    warnings.simplefilter("ignore")
    here = Process(lock, known, options, time.monotonic())


def measure(task: tuple[str, str, tuple[float, ...]]) -> None:
    """Find a schedule, time it if it is a new one, and write its line."""
    name, tiles, weights = task
    line: dict[str, Any] = {"app": name, "tiles": tiles, "weights": weights}
    if time.monotonic() - here.begun > here.options.seconds:
        return
    try:
        found(line, PolymageGpu(tiles=tiles, **dict(zip(WEIGHTS, weights, strict=True))))
    except Exception as error:  # the other schedules count nonetheless
        line["error"] = f"{type(error).__name__}: {error}"[:300]
    if "error" in line or "ms" in line:
        with here.lock, here.options.file.open("a") as file:
            file.write(json.dumps(line) + "\n")


def found(line: dict[str, Any], strategy: PolymageGpu) -> None:
    """The terms of the schedule that a strategy finds, and its time."""
    app, simulated = APPS[line["app"]], here.options.simulated
    sizes = {**app.sizes[app.size_called("gpu")], **app.params}
    begun = time.process_time()
    p = app.build().with_options(target="cuda-sim" if simulated else "cuda")
    p = p.with_schedule(strategy, estimates=sizes, **({"machine": pt.machine.named("H200")} if simulated else {}))
    line |= {"find_s": round(time.process_time() - begun, 2), "schedule": p.schedule.to_json()}
    key = (line["app"], line["tiles"], line["schedule"])
    if here.known.setdefault(key, line["weights"]) != line["weights"]:
        return
    line["groups"] = [
        {"stages": [*g.members, g.output], "terms": terms(g.costs, line["weights"]), "costs": dict(g.costs),
         "remarks": g.remarks} for g in p.report.groups]  # fmt: skip
    line["terms"] = np.sum([g["terms"] for g in line["groups"]], axis=0).tolist()
    if simulated:
        line["ms"] = sum(k.work.read + k.work.written for k in p.predict(**sizes).kernels if k.work) / 4.8e9
    else:
        timed(line, replace(app, on_gpu=lambda: p.schedule))


def terms(costs: Mapping[str, float], weights: Sequence[float]) -> list[float]:
    """The seven terms of a group without weights."""
    by_name = {name.split()[0]: cost for name, cost in costs.items()}
    return [by_name.get(w, 0.0) / weight for w, weight in zip(WEIGHTS, weights, strict=True)]


def timed(line: dict[str, Any], app: Any) -> None:
    """The milliseconds of a call, and those of each kernel in a call that launches them one by one."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from pantile.bench.gpu import prepare_on_gpu, without_graphs

    begun = time.perf_counter()
    contender = prepare_on_gpu(app, "expert", "cuda", app.arguments(app.size_called("gpu")))
    line["compile_s"] = round(contender.compile_s, 2)
    with profile(activities=[ProfilerActivity.CUDA]):
        contender.work()  # what profiling takes to start, it takes here
    with here.lock:
        line["ms"] = min(contender.time(2))
        with profile(activities=[ProfilerActivity.CUDA]) as profiled, without_graphs():
            for _ in range(3):
                contender.work()
            torch.cuda.synchronize()
    kernels: dict[str, list[float]] = defaultdict(list)
    for event in profiled.events():
        if us := getattr(event, "device_time", 0.0):
            kernels[event.name].append(us)
    line |= {"kernels_us": {name: min(us) for name, us in kernels.items()}, "all_s": time.perf_counter() - begun}
    del contender
    torch.cuda.empty_cache()


def measure_all(options: argparse.Namespace) -> None:
    """All tasks, those of the first weights first."""
    weights, forms = drawn(options.near), FORMS.items()
    tasks = [(app, tiles, w) for k, w in enumerate(weights) for tiles, n in forms if k < n for app in options.apps]
    spawned = multiprocessing.get_context("spawn")
    with spawned.Manager() as shared:
        known, lock = shared.dict(), spawned.Lock()
        with spawned.Pool(options.processes, start, (lock, known, options)) as pool:
            for _ in pool.imap_unordered(measure, tasks, chunksize=1):
                pass


# ---- fit


@dataclass(frozen=True)
class Choices:
    """The schedules of an app in tiles of blocks or of warps."""

    app: str
    tiles: str
    terms: np.ndarray  # by schedules
    ms: np.ndarray

    @property
    def slower(self) -> np.ndarray:
        """The logarithm of time / least time."""
        return np.log(self.ms / self.ms.min())

    def chosen(self, weights: np.ndarray) -> int:
        """The schedule that costs least."""
        return int(np.argmin(self.terms @ weights))


def read(files: Sequence[Path]) -> list[Choices]:
    """The lists of the files, without what failed."""
    lists: dict[tuple[str, str], dict[str, tuple[list[float], float]]] = defaultdict(dict)
    for line in (json.loads(text) for file in files for text in file.read_text().splitlines()):
        if "ms" in line:
            tiles = BLOCK if line["tiles"] == BLOCK else HYBRID  # among which those in registers alone are
            lists[line["app"], tiles][line["schedule"]] = (line["terms"], line["ms"])
    return [
        Choices(*key, *(np.array(column) for column in zip(*of.values(), strict=True)))
        for key, of in sorted(lists.items())
    ]


def loss(lists: Sequence[Choices], weights: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean of the lists, and how it grows with each weight."""
    total, grows = 0.0, np.zeros(len(WEIGHTS))
    for each in lists:
        cost = each.terms @ weights
        share = np.exp(cost.min() - cost)
        share /= share.sum()
        mean = float(share @ each.slower)
        total += mean
        grows += (share * (mean - each.slower)) @ each.terms
    return total / len(lists), grows / len(lists)


def fitted(lists: Sequence[Choices]) -> np.ndarray:
    """Weights that are no less than zero: of all starts, those with the least loss (Adam, of their logarithms)."""
    rng = np.random.default_rng(1)
    best, least = np.ones(len(WEIGHTS)), np.inf
    for _ in range(STARTS):
        at = np.log(1 / USUAL) + rng.normal(0, 1, len(WEIGHTS))
        mean, square = np.zeros_like(at), np.zeros_like(at)
        for step in range(1, STEPS + 1):
            weights = np.exp(at)
            value, grows = loss(lists, weights)
            slope = grows * weights + 1e-3 * (at - np.log(1 / USUAL))  # stays near usual sizes where nothing is known
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            at = at - RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-9)
        if value < least:
            best, least = np.exp(at), value
    return best


def fit_all(options: argparse.Namespace) -> None:
    """For each app the schedule that the weights of the other apps choose, beside the best one and that of Table 3."""
    lists = read(options.files)
    table_3 = np.array([getattr(Weights(), w) for w in WEIGHTS])
    print(f"{'left out':24} {'tiles':7} {'schedules':>9} {'best us':>8} {'chosen':>8} {'Table 3':>8}   weights")
    ratios: dict[str, list[float]] = defaultdict(list)
    for app in sorted({each.app for each in lists}):
        weights = fitted([each for each in lists if each.app != app])
        for each in (e for e in lists if e.app == app):
            times = [each.ms.min(), *(each.ms[each.chosen(w)] for w in (weights, table_3))]
            columns = (*(f"{1e3 * ms:8.1f}" for ms in times), " ", *(f"{w:.3g}" for w in weights))
            print(f"{app:24} {each.tiles:7} {len(each.ms):9}", *columns)
            ratios[each.tiles].append(times[1] / times[0])
    for tiles, of in ratios.items():
        print(f"{tiles}: geometric mean of chosen / best, left out: {np.exp(np.mean(np.log(of))):.2f}")
    weights = fitted(lists)
    slower = [each.slower[each.chosen(weights)] for each in lists]
    print(f"all apps: {np.exp(np.mean(slower)):.2f}, weights " + ",".join(f"{w:.3g}" for w in weights))


def main() -> None:
    """Measure or fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    of = commands.add_parser("measure")
    of.add_argument("file", type=Path)
    of.add_argument("--near", type=lambda text: [float(w) for w in text.split(",")])
    of.add_argument("--apps", type=lambda text: text.split(","), default=TABLE_4)
    of.add_argument("--seconds", type=float, default=150.0, help="no schedule is begun after so many")
    of.add_argument("--processes", type=int, default=os.cpu_count())
    of.add_argument("--simulated", action="store_true")
    of.set_defaults(run=measure_all)
    of = commands.add_parser("fit")
    of.add_argument("files", type=Path, nargs="+")
    of.set_defaults(run=fit_all)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
