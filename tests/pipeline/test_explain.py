"""What `explain` says: the time and its causes, what bounds it, why other choices lost."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pantile as pt
from pantile.autoschedule import Alternative
from pantile.autoschedule.search.candidates import ALIKE, MOST, shape
from pantile.backends import LaunchReport
from pantile.explain.differences import differences
from pantile.machine import named
from pantile.schedule.schedule import Group, groups

from .examples import blur, picture, scaled

MACHINE = named("neoverse-n1")


def test_a_schedule_for_unknown_sizes_has_no_time() -> None:
    assert blur().explain().startswith("blur runs under a hand-written schedule or the default one:\npt.Schedule(")


def test_the_time_that_was_asked_for() -> None:
    p = scaled(schedule="greedy", estimates={"img": (4000, 5000)}, machine=MACHINE)
    first, *causes = p.explain().split("\n\n")[0].splitlines()
    assert re.fullmatch(r"scaled, img 4000x5000, gain 2, \d+ threads: [\d.]+ \ws predicted", first), first
    shares = [int(line.split()[1]) for line in causes[:-1]]
    assert shares == sorted(shares, reverse=True) and 95 <= sum(shares) <= 100
    bound = r"  bound by memory: \S+ MB at full speed take \S+ \ws; the call takes \S+ times as long"
    assert re.fullmatch(bound, causes[-1])


def test_the_time_that_was_measured() -> None:
    p = blur()
    for _ in range(3):
        p(img=picture(60, 70), num_threads=1)
    first = p.explain().splitlines()[0]
    assert re.fullmatch(
        r"blur, img 60x70, 1 thread: [\d.]+ \ws measured \(best of 3 calls\), [\d.]+ \ws predicted", first
    ), first
    p(img=picture(80, 70), num_threads=2)
    assert "blur, img 80x70, 2 threads" in p.explain() and "(one call)" in p.explain()
    assert "img 90x70" in p.explain(img=(90, 70)) and "measured" not in p.explain(img=(90, 70))


def test_what_bounds_it_depends_on_the_machine() -> None:
    slow_units = replace(MACHINE, issue=replace(MACHINE.issue, fma=0.01, int=0.01))
    for machine, what in ((slow_units, "arithmetic: all operations"), (MACHINE, "memory: ")):
        text = scaled(schedule="naive", estimates={"img": (2000, 2000)}, machine=machine).explain()
        assert f"bound by {what}" in text


def test_empty_calls_are_not_timed() -> None:
    p = scaled()
    p(img=np.zeros((0, 5), np.float32))
    assert "measured" not in p.explain()


@pytest.fixture(scope="module")
def auto() -> pt.Pipeline:
    return blur(schedule="auto", estimates={"img": (2000, 3000)}, machine=MACHINE)


def test_why_neighbours_lost(auto: pt.Pipeline) -> None:
    report = next(iter(auto._scheduling.results.values())).report
    others = report.alternatives
    assert 2 <= len(others) <= MOST
    assert len({a.schedule for a in (*others, Alternative("", auto.schedule, 0))}) == len(others) + 1
    assert all([shape(a.schedule) for a in others].count(s) <= ALIKE for s in map(shape, (a.schedule for a in others)))
    text = auto.explain().split("\n\nnext best schedules, predicted:\n")[1]
    assert re.search(r"[\d.]+ \ws  .+ \([\d.]+ \ws more \w+\): \w+: ", text), text


def test_alternatives_run_and_give_the_same(auto: pt.Pipeline) -> None:
    others = next(iter(auto._scheduling.results.values())).report.alternatives
    pixels = picture(40, 50)
    for a in others[:3]:
        np.testing.assert_array_equal(auto.with_schedule(a.schedule)(img=pixels), auto.reference(img=pixels))


def test_the_schedule_is_that_of_the_latest_call() -> None:
    p = scaled(schedule="auto")
    for size in ((2000, 1000), (7, 9)):
        p(img=np.ones(size, np.float32))
        found = p._scheduling.results[p._calls.class_of({"img": size})].report
        assert str(found) in p.explain() and f"img {size[0]}x{size[1]}" in p.explain()
    assert len(p._scheduling.results) == 2


def test_differences_in_words() -> None:
    mine = pt.Schedule(
        pt.on("f").compute_at("g", "yo").vectorize("x", 8),
        pt.on("g").split("y", "yo", "yi", 32).parallel("yo"),
    )
    other = pt.Schedule(
        pt.on("f").compute_inline(),
        pt.on("g").split("y", "yo", "yi", 64),
    )
    assert differences(mine, other) == "f: inlined, no vectorize x by 8; g: y split by 64 (not 32), no parallel yo"
    assert differences(mine, mine) == "the same loops"
    turned = mine.replace(mine.on("g").reorder("yi", "yo"))
    assert differences(mine, turned) == "g: loops in another order"
    many = pt.Schedule(*(pt.on(n).compute_root() for n in "abcd"))
    assert differences(pt.Schedule(), many).endswith("; 2 more stages")


def test_groups_are_what_is_computed_together() -> None:
    s = pt.Schedule(
        pt.on("a").compute_inline(),
        pt.on("b").store_at("d", "yo").compute_at("c", "x"),
        pt.on("c").compute_at("d", "yo"),
        pt.on("d").tile("y", "x", "yo", "xo", "yi", "xi", 16, 64),
        pt.on("e").compute_root().compute_at("d", "yi").compute_root(),
    )
    assert groups(s) == [Group("d", ("b", "c"), (("y", 16), ("x", 64))), Group("e", (), ())]


def summed(target: str) -> pt.Pipeline:
    """A picture minus its mean, times `gain`: of blocks that share memory, and of one block."""
    y, x = pt.vars("y x")
    img, gain, out = pt.Input("img", "uint8", 2), pt.Param("gain", "float32"), pt.Func("out")
    r = pt.RDom((0, img.shape[0]), (0, img.shape[1]))
    out[y, x] = (img[y, x] - pt.mean(img[r[0], r[1]], over=r)) * gain
    return pt.Pipeline(out, target=target)


@pytest.mark.parametrize("target", ["cuda-sim", "cuda", "sm_90"])
def test_launches_are_predicted_without_a_gpu(target: str) -> None:
    """What is launched follows from sizes alone."""
    p = summed(target)
    found = p.predict(img=(100, 200), gain=1.0)
    assert 1e-6 < found.seconds < 1e-3
    first, titles, *kernels, memory = str(found).splitlines()
    assert re.fullmatch(
        rf"out, target {target if target != 'sm_90' else 'cuda'} \(sm_\d+\): \d+ kernels, "
        r"[\d.]+ µs predicted on [\w ]+",
        first,
    )
    assert titles.split() == [
        *("kernel", "time", "limited", "by", "blocks", "threads", "shared", "bytes", "registers", "occupancy"),
        *("bytes", "read", "written", "in", "its", "arrays"),
    ]
    assert re.search(rf" µs +[\w ]+ {13 * 7} +256 +0 ", kernels[-1])  # blocks of 8 by 32 pixels
    assert isinstance(found, LaunchReport) and any(k.shared_bytes > 0 for k in found.kernels)
    assert memory.startswith("  arrays of the call have 0.1 MB, memory between kernels ")
    assert p.explain(img=(100, 200), gain=1.0).startswith(str(found))
    assert p.explain().startswith("out runs under a hand-written schedule or the default one:")
    assert str(p.predict(img=(0, 5), gain=1.0)).startswith(f"{first.split(':')[0]}: 0 kernels, 0 µs")


def test_data_may_decide_the_time() -> None:
    (x,) = pt.vars("x")
    n, img, out = pt.Input("n", "int32", 1), pt.Input("img", "float32", 2), pt.Func("out")
    r = pt.RDom((0, img.shape[1]))
    out[x] = pt.sum(img[x, r[0]], over=r.where(r[0] < n[x]))
    found = pt.Pipeline(out, shape=n.shape, target="cuda-sim").predict(n=(100,), img=(100, 50))
    assert math.isnan(found.seconds) and "data decide their time" in str(found)


def test_the_times_of_the_simulator_are_not_shown(tmp_path: Path) -> None:
    p = summed("cuda-sim")
    p(img=np.ones((40, 50), np.uint8), gain=2.0)
    text = p.explain(html=tmp_path / "page.html")
    assert text.startswith(str(p.predict(img=(40, 50), gain=2.0))) and "took" not in text
    page = (tmp_path / "page.html").read_text()
    assert "<h2>Kernels</h2>" in page and "µs predicted on" in page


def test_sizes_that_are_expected_on_a_gpu() -> None:
    p = summed("cuda").with_schedule(pt.Schedule(), estimates={"img": (64, 64), "gain": 1.0})
    assert " µs predicted on " in p.explain()
    with pytest.raises(pt.UserError, match="img"):
        p.predict(gain=1.0)
