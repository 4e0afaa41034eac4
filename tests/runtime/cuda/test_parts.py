"""Where arrays lie, which launches wait for which, and what is packed."""

from __future__ import annotations

import struct

from pantile.codegen.entry import entries
from pantile.expr.nodes import Var, const
from pantile.expr.types import BFLOAT16, FLOAT32, INDEX
from pantile.ir.nodes import Block, CapturedBuffer, Kernel, Program
from pantile.runtime.cuda.order import dependencies, places
from pantile.runtime.cuda.parameters import LaunchArguments, Parameters, ParamSlot
from pantile.runtime.launches import Allocation, LaunchPlan, PlannedLaunch


def kernel(buffers: int = 2) -> Kernel:
    captured = tuple(CapturedBuffer(f"b{k}", FLOAT32) for k in range(buffers))
    scalars = (Var(INDEX, 1, "n"), Var(FLOAT32, 1, "gain"), Var(BFLOAT16, 1, "half"))
    return Kernel("k", "block", const(0, INDEX), scalars, captured, Block(()), 32, 0)


def plan(sizes: dict[str, int], *launched: tuple[str, ...]) -> LaunchPlan:
    of = {n: kernel(n) for n in {len(names) for names in launched}}
    allocations = [Allocation(name, FLOAT32, n, 0, len(launched)) for name, n in sizes.items()]
    return LaunchPlan(allocations, [PlannedLaunch(of[len(names)], (), names, 1) for names in launched])


def test_arrays_share_places_that_others_have_left() -> None:
    at, size = places(plan({"a": 100, "b": 100, "c": 100}, ("a", "in"), ("b", "a"), ("c", "b"), ("out", "c")))
    assert at["a"] == at["c"] != at["b"] and size == 1024
    at, size = places(plan({"a": 100, "b": 10}, ("a", "b"), ("out", "b")))
    assert {*at.values()} == {0, 512} and size == 768


def test_launches_wait_for_writers_and_readers() -> None:
    p = plan({"a": 64, "b": 64}, ("a", "in"), ("b", "in"), ("out", "a"), ("a", "b"), ("more", "a"))
    where = {"a": (0, 256), "b": (256, 512)}
    assert dependencies(p.launches, [(True, False)] * 5, where) == [[], [], [0], [2, 1], [3]]
    assert dependencies(p.launches, [(True, False)] * 5, {"a": (0, 256), "b": (0, 256)}) == [[], [0], [1], [2], [3]]


def test_only_what_changes_is_written() -> None:
    (entry,) = entries(Program("p", (), (), Block(()), (kernel(),)), 32)
    given = [
        LaunchArguments(entry, (7, ParamSlot(0), 1.5), ((0, 0), (1, 64))),
        LaunchArguments(entry, (8, 2.5, 1.5), ((1, 0), (2, 0))),
    ]
    frames = Parameters(given)
    assert frames.change([0x1000, 0x2000, 0x3000], [0.5]) == {0, 1}
    assert struct.unpack("<i4xf4xH6xQQ", bytes(frames._memory)[: entry.size]) == (7, 0.5, 0x3FC0, 0x1000, 0x2040)
    assert frames.change([0x1000, 0x2000, 0x3000], [0.5]) == set()
    assert frames.change([0x1000, 0x2000, 0x4000], [0.5]) == {1}
    assert frames.change([0x1000, 0x2000, 0x4000], [-0.0]) == {0}
    assert frames.change([0x1000, 0x2000, 0x4000], [0.0]) == {0}
