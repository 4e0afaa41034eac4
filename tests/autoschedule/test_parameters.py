"""Every parameter of every strategy and every field of a machine, with odd values: it works, or it is a UserError."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields, replace
from functools import cache
from typing import Any

import pytest

import pantile as pt
from pantile.autoschedule import STRATEGIES, Problem, Strategy
from pantile.machine import Cache, Cpu, Issue, Machine

from ..odd_values import ODD, assert_made_or_refused

MACHINE, GPU = pt.machine.named("i7-6700"), replace(pt.machine.named("RTX 2080 Ti"), multiprocessors=1)
UNTUNED = [s for s in STRATEGIES.values() if s.for_cpus and not s.measures]
Y, X = pt.vars("y x")


def pipeline(**options: Any) -> pt.Pipeline:
    """Two stencils, and a product that has a reduction."""
    img, across, down, product = pt.Input("img", "float32", 2), pt.Func("across"), pt.Func("down"), pt.Func("product")
    r = pt.RDom((0, 7), name="r")
    across[Y, X] = img[Y, X] + img[Y, X + 1] * 2.0
    down[Y, X] = across[Y, X] + across[Y + 1, X] * 3.0
    product[Y, X] = 0.0
    product[Y, X] += down[Y, r[0]] * down[r[0], X]
    return pt.Pipeline(product, (30, 40), **options)


GRAPH = pipeline().graph


def assert_finds(strategy: Strategy, machine: Machine) -> None:
    """Find a schedule, and let its legality be checked."""
    scalars = {"img.shape.0": 31, "img.shape.1": 41}
    found = strategy.find(Problem(GRAPH, {"product": (30, 40)}, scalars, machine, measure=lambda _: 1.0))
    assert_legal(found.schedule, "cuda-sim" if machine.target.has_blocks else "host")
    assert str(found.report)


@cache
def assert_legal(schedule: pt.Schedule, target: str) -> None:
    """Once for all strategies and machines that find it."""
    pipeline(schedule=schedule, target=target)


def made(make: Callable[[], Any]) -> Any:
    """None if it is refused."""
    return assert_made_or_refused(make, __file__)


PARAMETERS = [pytest.param(s, f, id=f"{s.name}.{f.name}") for s in STRATEGIES.values() for f in fields(s)]  # type: ignore[arg-type]


# Fewer tile sizes than by default, each of which is tried with each other one.
FEW = {"polymage_tuned": {"tile_sizes": (8, 64)}}


@pytest.mark.parametrize(("strategy", "field"), PARAMETERS)
def test_of_a_strategy(strategy: type[Strategy], field: Field[Any]) -> None:
    tried, others = 0, FEW.get(strategy.name, {})
    for value in (*ODD, field.default):
        found = made(lambda value=value: strategy(**{**others, field.name: value}))
        if found is not None:
            assert_finds(found, MACHINE if strategy.for_cpus else GPU)
            tried += 1
    assert tried > 0
    assert made(lambda: strategy(**{field.name: object()})) is None


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES.values() if fields(s)], ids=lambda s: s.name)  # type: ignore[arg-type]
def test_a_replaced_parameter_is_checked(strategy: Callable[..., Strategy]) -> None:
    usual: Any = strategy()
    for field in fields(usual):
        assert made(lambda field=field: replace(usual, **{field.name: object()})) is None


def of_machine(name: str, value: object) -> Cpu:
    return replace(MACHINE, **{name: value})


def of_issue(name: str, value: object) -> Cpu:
    return replace(MACHINE, issue=replace(MACHINE.issue, **{name: value}))


def of_l1(name: str, value: object) -> Cpu:
    return replace(MACHINE, caches=(replace(MACHINE.l1, **{name: value}), *MACHINE.caches[1:]))


def of_l2(name: str, value: object) -> Cpu:
    return replace(MACHINE, caches=(MACHINE.l1, replace(MACHINE.l2, **{name: value}), *MACHINE.caches[2:]))


KINDS = ((of_machine, Cpu), (of_issue, Issue), (of_l1, Cache), (of_l2, Cache))
FIELDS = [pytest.param(make, f.name, id=f"{make.__name__}.{f.name}") for make, kind in KINDS for f in fields(kind)]


@pytest.mark.parametrize(("make", "name"), FIELDS)
def test_of_a_machine(make: Callable[[str, object], Cpu], name: str) -> None:
    for value in ODD:
        machine = made(lambda value=value: make(name, value))
        for strategy in UNTUNED if machine is not None else ():
            assert_finds(strategy(), machine)
    assert made(lambda: make(name, object())) is None


@pytest.mark.parametrize("caches", [1, 2, 4])
def test_machines_with_few_or_many_caches(caches: int) -> None:
    machine = replace(MACHINE, caches=(*MACHINE.caches, replace(MACHINE.last, size=1 << 30))[:caches])
    for strategy in UNTUNED:
        assert_finds(strategy(), machine)
