"""The predicted seconds of launches: what they follow from, and how near they are to measured ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pantile.apps import APPS
from pantile.launch_cost import Pipe, Work, launch_time, shares_in_l2
from pantile.machine import named

H200 = named("H200")
RESULTS = Path(__file__).parents[2] / "docs" / "results" / "gpu_strategies.json"
NOTHING = Work(0, 0, (0,), 0.0, {}, 0.0, 0.0, is_bound=False)


def seconds(work: Work, blocks: int = 132 * 64, in_l2: float = 0.0) -> float:
    return launch_time(H200, work, blocks, 256, 8, [in_l2]).seconds


def limit(work: Work) -> str:
    return launch_time(H200, work, 132 * 64, 256, 8, [0.0]).limit


def copied(bytes_: int) -> Work:
    return replace(NOTHING, read=bytes_, written=bytes_, moved=(2 * bytes_,))


def test_a_copy_takes_the_bandwidth_of_memory() -> None:
    work = copied(1 << 30)
    assert limit(work) == "memory"
    assert 1.1 < seconds(work) * H200.bandwidth / work.moved[0] < 1.7
    assert seconds(copied(1 << 23), in_l2=1.0) < 0.8 * seconds(copied(1 << 23))
    assert seconds(NOTHING) == pytest.approx(H200.costs.launch_s)


def test_what_was_accessed_a_short_time_ago_is_in_l2() -> None:
    small, large = {"a": 1 << 20, "b": 1 << 20}, {"b": 1 << 30, "c": 1 << 30}
    shares = shares_in_l2([small, {"b": 1 << 20, "a": 1 << 10}, large, {"c": 1 << 30}], H200.l2)
    assert shares[1]["b"] > 0.99 and shares[1]["a"] > 0.99  # since the last launch
    assert shares[0]["a"] < 0.01  # the call before accessed c after a
    assert shares[3]["c"] < 0.01  # its beginning is gone when all of it was written
    assert shares_in_l2([{"a": 1 << 20}], H200.l2)[0]["a"] > 0.99  # calls follow each other


def test_the_last_wave_takes_time() -> None:
    work = replace(copied(1 << 28), latency=1e9)
    whole, more = (seconds(work, blocks=132 * 8 * 2 + n) for n in (0, 132))
    assert 1.05 * whole < more < 1.2 * whole


def test_phases_of_one_wave_overlap_less() -> None:
    work = replace(copied(1 << 28), passes=2e7)
    assert seconds(work, blocks=132 * 8) > 1.05 * seconds(work, blocks=132 * 8 * 8)


def test_long_code_does_not_fit_its_caches() -> None:
    work = replace(NOTHING, instructions={Pipe.FLOAT: 1e9}, code=1000.0)
    assert seconds(replace(work, code=10_000.0)) > 2 * seconds(work)
    assert seconds(replace(work, code=100.0)) == seconds(work)


@pytest.mark.parametrize("pipe", list(Pipe))
def test_instructions_take_the_rate_of_their_pipe(pipe: Pipe) -> None:
    work = replace(NOTHING, instructions={pipe: 1e9})
    at_most_four = 1e9 / (4 * 132 * H200.ghz * 1e9)
    assert at_most_four < seconds(work) < 10 * at_most_four
    assert seconds(work, blocks=132 * 64) == pytest.approx(seconds(work, blocks=132), rel=0.15)
    assert seconds(work, blocks=133) > 1.9 * seconds(work, blocks=132)  # one has two of them


def test_few_warps_wait() -> None:
    alone = replace(NOTHING, latency=1e6)
    assert limit(alone) == "latency"
    assert seconds(alone, blocks=1) > 100 * (seconds(alone, blocks=132) - H200.costs.launch_s)


def test_causes_are_all_of_the_time() -> None:
    work = replace(copied(1 << 28), instructions={Pipe.FLOAT: 1e8}, passes=1e7, latency=1e10)
    took = launch_time(H200, work, 1000, 256, 8, [0.0])
    assert took.causes.seconds == pytest.approx(took.seconds)
    assert took.causes.traffic > 0 and took.causes.loads > 0 and took.causes.stalls > 0


MEASURED = {
    (r["app"], r["schedule"]): r["captured_ms"] / 1e3
    for r in json.loads(RESULTS.read_text())["results"]
    if r["system"] == "pantile"
}


@pytest.mark.parametrize("app", ["blur", "unsharp", "harris"])
def test_near_to_measured_times(app: str) -> None:
    """Within a factor of 1.7, and the slowest one is known."""
    predicted = {}
    for how in ("expert", "plain", "greedy", "posttile"):
        p = APPS[app].build().with_options(target="cuda-sim")
        sizes: dict[str, Any] = {**APPS[app].sizes["paper"]}
        p = p.with_schedule(APPS[app].schedule(how, p.options.target), machine=H200, estimates=sizes)
        predicted[how] = p.predict(**sizes).seconds
        assert 1 / 1.7 < predicted[how] / MEASURED[app, how] < 1.7, how
    assert max(predicted, key=lambda how: predicted[how]) == "plain"
