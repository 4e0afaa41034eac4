"""Who is timed when."""

from __future__ import annotations

from typing import Any

import pytest

from pantile.bench.contender import Label
from pantile.bench.rounds import CALLS, SLICE_MS, SLOW_MS, Limit, Runner, calls_per_slice, race
from tests.bench.fakes import FakeContender


def contenders(*ms: float) -> tuple[list[FakeContender], list[Any]]:
    log: list[Any] = []
    return [FakeContender(Label("fake", "abc"[k], 1), t, log=log) for k, t in enumerate(ms)], log


def test_every_round_times_everyone_forwards_and_backwards_in_turn() -> None:
    runners, log = contenders(5.0, 10.0, 20.0)
    done: list[int] = []
    runs = race(runners, Limit(rounds=3), done.append)
    trial, rounds = log[:3], log[3:]
    assert trial == [("a", 1), ("b", 1), ("c", 1)]
    assert [name for name, _ in rounds] == list("abccbaabc")
    assert done == [1, 2, 3]
    assert [set(r.runs_ms) for r in runs] == [{5.0}, {10.0}, {20.0}]


def test_all_get_the_same_number_of_calls() -> None:
    runners, log = contenders(5.0, 50.0)
    runs = race(runners, Limit(rounds=2), lambda _: None)
    assert {calls for _, calls in log[2:]} == {SLICE_MS / 5}
    assert [len(r.runs_ms) for r in runs] == [2 * SLICE_MS / 5] * 2


@pytest.mark.parametrize(("ms", "calls"), [(1e6, CALLS[0]), (0.0, CALLS[1]), (4.0, SLICE_MS / 4)])
def test_slices_are_neither_too_short_nor_too_long(ms: float, calls: int) -> None:
    assert calls_per_slice([Runner(c) for c in contenders(ms)[0]]) == calls


def test_without_a_number_time_decides_but_a_few_rounds_there_must_be() -> None:
    limit = Limit(rounds=None, seconds_each=2.0)
    assert not limit.reached(rounds=4, seconds=100, contenders=2)
    assert not limit.reached(rounds=100, seconds=3.9, contenders=2)
    assert limit.reached(rounds=5, seconds=4.0, contenders=2)


def test_a_slow_one_makes_fewer_calls() -> None:
    runners, log = contenders(5.0, SLOW_MS / 2, 10 * SLOW_MS)
    race(runners, Limit(rounds=1), lambda _: None)
    assert log[3:] == [("a", 4), ("b", 2), ("c", 1)]


def test_one_that_takes_long_sits_out() -> None:
    limit = Limit(rounds=None, most_seconds=8.0)
    assert not limit.sits_out(rounds=1, seconds=100)
    assert limit.sits_out(rounds=2, seconds=8.0)
    assert not Limit(rounds=10).sits_out(rounds=2, seconds=100)


def test_one_that_fails_has_no_times() -> None:
    runners, _ = contenders(5.0, 6.0)
    runners[1].fails_after = 2
    good, failed = race(runners, Limit(rounds=3), lambda _: None)
    assert good.runs_ms and not good.failure
    assert not failed.runs_ms and str(failed.failure) == "it broke"
