"""Bounds made of many bounds are cut for LLVM, and have the same values."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pantile as pt
from pantile.codegen.compile import compile_object
from pantile.codegen.emit import emit
from pantile.expr.build import cast, maximum, minimum
from pantile.expr.nodes import Expr, var
from pantile.expr.types import INT32
from pantile.ir.nodes import For, Let, Program, Stmt, Store
from pantile.target import CPUS, host
from pantile.target.kinds import Kind

from .kernels import argument, i64, run

A, X = var("out.shape.0"), var("x")


def nested(levels: int, inner: Expr) -> Expr:
    for k in range(levels):
        inner = minimum(inner * 3, A + k) if k % 2 else maximum(inner - 1, A - 2 * k)
    return inner


def program(levels: int, lets: int) -> Stmt:
    """Bounds of bounds, by name."""
    last = var(f"b{lets - 1}")
    body: Stmt = For("x", i64(0), A, Kind.SERIAL, Store("out", (X,), cast(INT32, last + X)))
    for k in reversed(range(lets)):
        body = Let(f"b{k}", nested(levels, var(f"b{k - 1}") + 1 if k else A), body)
    return body


def sums(lets: int) -> Stmt:
    """Bounds of which each has the one before it in four places: as a tree, four times as large with each name."""
    last = var(f"b{lets - 1}")
    body: Stmt = For("x", i64(0), A, Kind.SERIAL, Store("out", (X,), cast(INT32, last + X)))
    for k in reversed(range(lets)):
        before = var(f"b{k - 1}") if k else A
        value = sum((maximum(minimum(before + i, A * i), A - i) for i in range(1, 4)), maximum(minimum(before, A), 0))
        body = Let(f"b{k}", value, body)
    return body


def largest_tree(text: str) -> int:
    """Minima and maxima that LLVM sees in one value, where what is shared is repeated."""
    size: dict[str, int] = {}
    for line in text.splitlines():
        if (found := re.match(r"  (%\S+) = (.*)", line)) is None or " = phi " in line:
            continue
        name, instruction = found.groups()
        inside = sum(size.get(n, 0) for n in re.findall(r"%[\w.]+", instruction))
        is_limit = "llvm.smin" in instruction or "llvm.smax" in instruction
        size[name] = 0 if " asm " in instruction else inside + is_limit
    return max(size.values(), default=0)


PROGRAMS = [program(40, 1), program(4, 10), program(7, 5), program(1, 30), sums(6)]


@pytest.mark.parametrize("body", PROGRAMS, ids=["deep", "names", "both", "single", "sums"])
def test_trees_are_cut(body: Stmt) -> None:
    p = Program("f", (argument("out", INT32, writable=True),), (), body)
    assert largest_tree(emit(p, host(), strict=True, debug=False)) <= 64


@pytest.mark.parametrize("target", CPUS)
def test_every_target_has_code_for_the_cut(target: str) -> None:
    p = Program("f", (argument("out", INT32, writable=True),), (), program(20, 2))
    assert compile_object(emit(p, CPUS[target], strict=True, debug=False), CPUS[target])


def test_small_trees_are_left_alone() -> None:
    p = Program("f", (argument("out", INT32, writable=True),), (), program(2, 2))
    assert " asm " not in emit(p, host(), strict=True, debug=False)


@pytest.mark.parametrize(("levels", "lets"), [(40, 1), (4, 10), (7, 5), (1, 30)])
def test_values_stay(levels: int, lets: int) -> None:
    out = np.zeros(9, np.int32)
    assert run(program(levels, lets), {"out": out}, ["out"]) == 0
    bound = 9
    for let in range(lets):
        bound += let > 0
        for k in range(levels):
            bound = min(bound * 3, 9 + k) if k % 2 else max(bound - 1, 9 - 2 * k)
    assert out.tolist() == [bound + x for x in range(9)]


def test_places_behind_many_buffers_are_one_value() -> None:
    """Else each address in scratch memory would be a sum of the sizes of all buffers before it."""
    stages = 8
    y, x = pt.vars("y x")
    img = pt.Input("img", "float32", ndim=2)
    f = pt.edge(img)
    for k in range(stages):
        g = pt.Func(f"f{k}")
        g[y, x] = f[y, x - 1] + f[y, x + 1]
        f = g
    rows = [pt.on(f"f{k}").compute_at(f"f{stages - 1}", "y").vectorize("x", 4) for k in range(stages - 1)]
    p = pt.Pipeline(f, shape=img.shape, schedule=pt.Schedule(pt.on(f"f{stages - 1}").parallel("y"), *rows))
    behind = re.findall(r"(%\S+) = getelementptr inbounds i8, ptr %scratch, i64 %", p.llvm())
    hidden = [name for name in behind if f'asm "", "=r,0"(ptr {name})' in p.llvm()]
    assert len(behind) >= len(hidden) >= stages - 5
    picture = np.arange(60, dtype="float32").reshape(3, 20)
    np.testing.assert_array_equal(p(img=picture), p.reference(img=picture))
