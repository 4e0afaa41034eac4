"""Least times from counted work and the rates of a machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pantile.apps import APPS
from pantile.bench.extras import Bound, bound
from pantile.machine import Issue, named
from tests.bench.fakes import TWICE

# 4 multiply-adds (8 operations) or 1 other operation on 32 bits per nanosecond.
MACHINE = replace(
    named("neoverse-n1"),
    ghz=1.0,
    vector_bits=128,
    issue=Issue(fma=1, int=0.25, load=1, store=1),
    core_bandwidth=1e9,
    bandwidth=1.5e9,
)


def test_the_longer_of_the_two() -> None:
    assert (Bound(2.0, 1.0).ms, Bound(2.0, 1.0).limit) == (2.0, "memory")
    assert (Bound(1.0, 3.0).ms, Bound(1.0, 3.0).limit) == (3.0, "arithmetic")


def test_bytes_and_operations_at_full_rate() -> None:
    found = bound(TWICE.build(), {"img": (1000, 1000)}, MACHINE, threads=1)
    assert (found.memory_ms, found.arithmetic_ms) == (pytest.approx(8.0), pytest.approx(1.0))
    blur = bound(APPS["blur"].build(), {"img": (102, 202)}, MACHINE, threads=1)
    assert blur.arithmetic_ms == pytest.approx(1e-6 * 3 * 200 * 202 / 2), "twice as many 16-bit operations at once"


def test_threads_share_the_memory() -> None:
    one, two = (bound(TWICE.build(), {"img": (1000, 1000)}, MACHINE, threads) for threads in (1, 2))
    assert one.memory_ms / two.memory_ms == pytest.approx(1.5)
    assert one.arithmetic_ms / two.arithmetic_ms == pytest.approx(2)
