"""Bounds that are nested deep are cut for LLVM, and have the same values."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pantile.codegen.compile import compile_object
from pantile.codegen.emit import emit
from pantile.codegen.target import NAMED, host
from pantile.expr.build import cast, maximum, minimum
from pantile.expr.nodes import Expr, var
from pantile.expr.types import INT32
from pantile.ir.nodes import For, Kind, Let, Program, Stmt, Store

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


def longest_chain(text: str) -> int:
    """Minima and maxima that LLVM sees in each other."""
    depth: dict[str, int] = {}
    for line in text.splitlines():
        if (found := re.match(r"  (%\S+) = (.*)", line)) is None or " = phi " in line:
            continue
        name, instruction = found.groups()
        inside = max((depth.get(n, 0) for n in re.findall(r"%[\w.]+", instruction)), default=0)
        is_limit = "llvm.smin" in instruction or "llvm.smax" in instruction
        depth[name] = 0 if " asm " in instruction else inside + is_limit
    return max(depth.values(), default=0)


@pytest.mark.parametrize(("levels", "lets"), [(40, 1), (4, 10), (7, 5), (1, 30)])
def test_chains_are_cut(levels: int, lets: int) -> None:
    p = Program("f", (argument("out", INT32, writable=True),), (), program(levels, lets))
    assert longest_chain(emit(p, host(), strict=True, debug=False)) <= 12


@pytest.mark.parametrize("target", NAMED)
def test_every_target_has_code_for_the_cut(target: str) -> None:
    p = Program("f", (argument("out", INT32, writable=True),), (), program(20, 2))
    assert compile_object(emit(p, NAMED[target], strict=True, debug=False), NAMED[target])


def test_short_chains_are_left_alone() -> None:
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
