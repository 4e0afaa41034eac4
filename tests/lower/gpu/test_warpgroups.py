"""Products of matrices by warpgroups: right at every size, where they find their matrices, and what is in flight."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.expr.nodes import Const, Instruction
from pantile.expr.visit import walk as parts
from pantile.ir.instructions import Effect, effect_of, lies
from pantile.ir.nodes import Alloc, Evaluate, For, Let, Stmt
from pantile.ir.visit import walk
from pantile.schedule.directives import StageSchedule
from pantile.target.kinds import Kind, Memory
from pantile.target.wgmma import CoreMatrices

from ...long import LONG
from ...matrices import Product, Warpgroups, by_warpgroups
from .simulated import assert_agrees, kernels
from .test_tensorize import assert_right, instructions

USUAL = Warpgroups()
ORDERS = [*product((True, False), repeat=2)]
WHOLE = (128, 64, 64)
# Blocks that are not whole, fewer rows or columns than a fragment has, terms that are left over, a single number.
SIZES = ((70, 45, 37), (5, 7, 3), (17, 9, 16), (1, 1, 1), (9, 128, 16), (129, 65, 100), (64, 200, 65))


def multiplied(case: Product, cut: Warpgroups = USUAL) -> pt.Pipeline:
    return case.pipeline().with_schedule(by_warpgroups(case, cut))


def products(p: pt.Pipeline) -> list[Instruction]:
    (kernel,) = kernels(p)
    return instructions(kernel.body, "wgmma.")


@pytest.mark.parametrize(("a_by_rows", "b_by_rows"), ORDERS)
def test_all_orders(a_by_rows: bool, b_by_rows: bool) -> None:
    """What does not lie by terms is transposed by the instruction."""
    case = Product(a_by_rows=a_by_rows, b_by_rows=b_by_rows)
    p = multiplied(case)
    e, *_ = products(p)  # another one where blocks at the edges have code of their own
    assert e.name == "wgmma.m64n32k32.float16.float32"
    core, panel_of_a, panel_of_b = 8 * 8, 8 * ((64 if a_by_rows else 32) + 1), 8 * (32 + 1)
    assert lies(e, 0) == (CoreMatrices(core, panel_of_a, False) if a_by_rows else CoreMatrices(panel_of_a, core, True))
    assert lies(e, 4) == (CoreMatrices(panel_of_b, core, True) if b_by_rows else CoreMatrices(core, panel_of_b, False))
    assert_right(p, case, WHOLE, (70, 45, 37))


@pytest.mark.parametrize("size", SIZES if LONG else SIZES[:4])
def test_all_sizes(size: tuple[int, int, int]) -> None:
    case = Product()
    assert_right(multiplied(case), case, size)
    assert_right(multiplied(case, Warpgroups(24, 16, beside=2, ahead=2)), case, size)


@pytest.mark.parametrize(
    "cut",
    [
        Warpgroups(24, 16),
        Warpgroups(40, 48, beside=2),
        Warpgroups(64, 32, rows=2, ahead=2),
        Warpgroups(128, 64, padding=0),
        Warpgroups(32, 128, ahead=0),
        Warpgroups(256, 16, ahead=3),
    ],
)
def test_all_tiles(cut: Warpgroups) -> None:
    case = Product()
    p = multiplied(case, cut)
    assert {e.name for e in products(p)} == {f"wgmma.m64n{cut.columns}k{cut.terms}.float16.float32"}
    rows, columns = cut.tile
    assert_agrees(p, **case.random(2 * rows, columns, 3 * cut.terms))


def test_bfloat16() -> None:
    """NumPy has none; bits of small integers are the upper halves of those of floats."""
    (i, j, k), out = pt.vars("i j k"), pt.Func("out")
    a, b = pt.Input("a", "int32", ndim=2), pt.Input("b", "int32", ndim=2)
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    left, right = pt.Func("left"), pt.Func("right")
    left[i, k], right[k, j] = pt.cast("bfloat16", a[i, k]), pt.cast("bfloat16", b[k, j])
    out[i, j] = pt.sum(pt.cast("float32", left[i, r.k]) * pt.cast("float32", right[r.k, j]), over=r)
    p = pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), target="cuda-sim")
    p = p.with_schedule(by_warpgroups(Product("bfloat16"), Warpgroups(ahead=0)).without("a").without("b"))
    assert {e.name for e in instructions(kernels(p)[-1].body, "wgmma.")} == {"wgmma.m64n32k32.bfloat16.float32"}
    rng = np.random.default_rng(2)
    arrays = {name: rng.integers(-9, 9, s, np.int32) for name, s in (("a", (64, 32)), ("b", (32, 32)))}
    np.testing.assert_array_equal(p(**arrays), arrays["a"] @ arrays["b"])


def test_padded_columns_of_a_slice_lie_in_different_banks() -> None:
    """Those of one row, which adjacent threads copy."""
    case, conflicts = Product(), dict[int, int]()
    for padding in (0, 1):
        (counts,) = assert_agrees(multiplied(case, Warpgroups(64, 64, padding=padding)), **case.random(64, 64, 128))
        conflicts[padding] = counts.traffic.bank_conflicts["store"]
    assert conflicts[0] > conflicts[1] == 0


def order(s: Stmt) -> list[str]:
    """What a loop does, in order."""
    done = list[str]()
    for i in walk(s):
        if isinstance(i, Evaluate | Let) and isinstance(i.value, Instruction):
            done.append(i.value.name.split(".")[0])
    return done


def slices(p: pt.Pipeline) -> For:
    (kernel,) = kernels(p)
    return next(s for s in walk(kernel.body) if isinstance(s, For) and s.var == "sums.u1.slice")


def test_products_are_in_flight_while_the_next_slice_is_copied() -> None:
    p = multiplied(Product(), Warpgroups(ahead=2))
    loop = slices(p)
    waits = instructions(loop, "wgmma_wait")
    assert [e.args[1].value for e in waits if isinstance(e.args[1], Const)] == [1]
    (kernel,) = kernels(p)
    assert [e.args[1].value for e in instructions(kernel.body, "wgmma_wait") if isinstance(e.args[1], Const)] == [1, 0]
    assert order(loop) == ["wait_group", "fence_proxy", "barrier", "wgmma", "commit_group", "wgmma_wait"]
    allocated = [s for s in walk(kernel.body) if isinstance(s, Alloc) and s.slots > 1]
    assert {s.slots for s in allocated} == {4}  # two on their way, and two that are multiplied


def test_of_copies_one_ahead_products_are_complete() -> None:
    p = multiplied(Product(), Warpgroups(ahead=1))
    loop = slices(p)
    assert [e.args[1].value for e in instructions(loop, "wgmma_wait") if isinstance(e.args[1], Const)] == [0]
    assert order(loop) == ["wait_group", "fence_proxy", "barrier", "wgmma", "commit_group", "wgmma_wait"]
    (kernel,) = kernels(p)
    assert {s.slots for s in walk(kernel.body) if isinstance(s, Alloc)} == {1, 2}


def test_without_copies_ahead_warpgroups_wait_at_once() -> None:
    loop = slices(multiplied(Product(), Warpgroups(ahead=0)))
    assert [e.args[1].value for e in instructions(loop, "wgmma_wait") if isinstance(e.args[1], Const)] == [0]


def test_what_else_uses_sums_in_the_loop_finds_them_complete() -> None:
    """Slices of slices: the inner loop is around the products, and its iterations are none of threads."""
    case = Product()
    schedule = by_warpgroups(case, Warpgroups(terms=64))
    sums = schedule.on("sums")
    changed = list[pt.schedule.Directive]()
    for d in sums.directives:
        if d.verb == "reorder" and d.args[0] == "slice":
            changed.append(type(d)("split", ("term", "part", "of_part", 32), "peel", d.where))
            d = type(d)("reorder", ("slice", "wj", "wi", "part", "iw", "jw", "of_part"), d.tail, d.where)
        elif d.verb == "tensor_core":
            d = type(d)("tensor_core", ("iw", "jw", "of_part"), d.tail, d.where)
        changed.append(d)
    p = case.pipeline().with_schedule(schedule.replace(StageSchedule("sums", tuple(changed))))
    loop = slices(p)
    assert [e.args[1].value for e in instructions(loop, "wgmma_wait") if isinstance(e.args[1], Const)] == [0]
    assert order(loop)[:4] == ["wait_group", "fence_proxy", "barrier", "commit_group"]
    assert_right(p, case, WHOLE)


def test_only_kernels_of_warpgroups_have_fences() -> None:
    from ...matrices import staged

    (kernel,) = kernels(Product().pipeline().with_schedule(staged(Product())))
    assert all(effect_of(s) is not Effect.FENCE_PROXY for s in walk(kernel.body))


def test_three_warps_are_no_warpgroup() -> None:
    """Lanes add up what belongs to them, and results are right."""
    case = Product()
    schedule = by_warpgroups(case, USUAL)
    out = schedule.on("out")
    directives = [type(d)(d.verb, tuple(48 if a == 64 else a for a in d.args), d.tail, d.where) for d in out.directives]
    p = case.pipeline().with_schedule(schedule.replace(StageSchedule("out", tuple(directives))))
    assert not products(p)
    assert_right(p, case, (96, 64, 64))


def refused(change: tuple[str, ...], by_hand: StageSchedule | None = None) -> str:
    """Why a factor without some directives is refused."""
    case = Product()
    schedule = by_warpgroups(case, USUAL)
    left = schedule.on("left")
    some = StageSchedule("left", tuple(d for d in left.directives if d.verb not in change))
    with pytest.raises(UserError) as caught:
        case.pipeline().with_schedule(schedule.replace(by_hand or some)).loops()
    return str(caught.value)


def test_factors_lie_as_the_instruction_reads_them() -> None:
    for change in (("split_storage", "reorder_storage", "pad_storage"), ("reorder_storage",)):
        text = refused(change)
        assert 'pt.on("sums").tensor_core("iw", "jw", "term"): four warps multiply by so many columns at once' in text
        assert "and left does not lie in shared memory as they read it" in text
        assert '.split_storage("k", "k8", "of8", 8).reorder_storage("k8", "i", "of8")' in text
        assert "tests/matrices.py" in text.split(":")[0]


def test_memory_of_matrices() -> None:
    (kernel,) = kernels(multiplied(Product()))
    allocated = {s.buffer: s.memory for s in walk(kernel.body) if isinstance(s, Alloc)}
    assert allocated["left"] is allocated["right"] is Memory.SHARED and allocated["sums"] is Memory.REGISTER
    assert all(s.kind is not Kind.TENSOR_CORE for s in walk(kernel.body) if isinstance(s, For))
    assert all(isinstance(n, Const) for e in products(multiplied(Product())) for n in parts(e.args[1]))
