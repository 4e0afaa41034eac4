"""Products of matrices by tensor cores: right at every size, and what lanes load."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pantile as pt
from pantile.expr.nodes import Const, Instruction
from pantile.expr.visit import walk as parts
from pantile.ir.nodes import For, Stmt
from pantile.ir.visit import expressions, walk
from pantile.schedule.schedule import Schedule
from pantile.target.kinds import Kind
from pantile.target.mma import MMAS

from ...long import LONG
from ...matrices import Product, alone, staged
from .simulated import assert_agrees, kernels, loops

ORDERS = [*product((True, False), repeat=2)]
NUMPY_TYPES = [types for types in MMAS if types[0] != "bfloat16"]
# Whole blocks, some that are not, fewer rows or columns than a fragment has, no terms at all, and a single number.
SIZES = ((64, 32, 64), (70, 45, 37), (5, 7, 3), (17, 9, 16), (64, 40, 0), (1, 1, 1), (129, 65, 100))
SOME = SIZES if LONG else SIZES[:4]


def instructions(s: Stmt, name: str) -> list[Instruction]:
    found = (e for i in walk(s) for root in expressions(i) for e in parts(root))
    return [e for e in found if isinstance(e, Instruction) and e.name.startswith(name)]


def assert_right(p: pt.Pipeline, case: Product, *sizes: tuple[int, int, int]) -> None:
    """Sums of small integers are exact, whatever their order: results are equal to the last bit."""
    for size in sizes:
        arrays = case.random(*size)
        np.testing.assert_array_equal(p(**arrays), p.reference(**arrays))


@pytest.mark.parametrize("types", NUMPY_TYPES, ids="-".join)
def test_all_types(types: tuple[str, str]) -> None:
    case = Product(*types)
    for schedule in (alone(case), staged(case)):
        assert_right(case.pipeline().with_schedule(schedule), case, (33, 40, 70))
        assert_agrees(case.pipeline().with_schedule(schedule), **case.random(64, 32, 64))


@pytest.mark.parametrize(("a_by_rows", "b_by_rows"), ORDERS)
@pytest.mark.parametrize("columns", [8, 16])
def test_all_orders(a_by_rows: bool, b_by_rows: bool, columns: int) -> None:
    case = Product(a_by_rows=a_by_rows, b_by_rows=b_by_rows)
    for schedule in (alone(case, columns), staged(case, columns)):
        assert_right(case.pipeline().with_schedule(schedule), case, (33, 40, 70))


@pytest.mark.parametrize("size", SOME)
def test_all_sizes(size: tuple[int, int, int]) -> None:
    case, schedules = Product(), list[Schedule]()
    if size[1] > 1:  # lanes have pairs of columns, and share no single one in registers of a warp
        schedules.append(alone(case))
    if size[2] > 0:  # nor does shared memory have slices of no terms
        schedules += [staged(case), staged(case, columns=16, padding=0, ahead=2, slices=16)]
    for schedule in schedules:
        assert_right(case.pipeline().with_schedule(schedule), case, size)


@pytest.mark.parametrize("size", [(64, 9, 16), (9, 64, 16), (64, 1, 40)])
def test_blocks_with_fewer_rows_or_columns_than_warps_have(size: tuple[int, int, int]) -> None:
    """The lanes of a warp share one dim of the sums, and then not the other."""
    case = Product()
    assert_right(case.pipeline().with_schedule(staged(case)), case, size)


def test_bfloat16() -> None:
    """NumPy has none; bits of small integers are the upper halves of those of floats."""
    (i, j, k), out = pt.vars("i j k"), pt.Func("out")
    a, b = pt.Input("a", "int32", ndim=2), pt.Input("b", "int32", ndim=2)
    r = pt.RDom((0, a.shape[1]), name="r", names="k")
    left, right = pt.Func("left"), pt.Func("right")
    left[i, k], right[k, j] = pt.cast("bfloat16", a[i, k]), pt.cast("bfloat16", b[k, j])
    out[i, j] = pt.sum(pt.cast("float32", left[i, r.k]) * pt.cast("float32", right[r.k, j]), over=r)
    p = pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), target="cuda-sim")
    case = Product("bfloat16")
    beside = staged(case).without("a").without("b")
    p = p.with_schedule(beside)
    assert len(instructions(kernels(p)[-1].body, "mma.m16n8k16.bfloat16.float32"))
    rng = np.random.default_rng(2)
    for rows, columns, terms in SIZES[:3]:
        arrays = {name: rng.integers(-9, 9, s, np.int32) for name, s in (("a", (rows, terms)), ("b", (terms, columns)))}
        np.testing.assert_array_equal(p(**arrays), arrays["a"] @ arrays["b"])
    assert_agrees(p, **arrays)


@pytest.mark.parametrize(("a_by_rows", "b_by_rows"), ORDERS)
@pytest.mark.parametrize("columns", [8, 16])
def test_lanes_load_rows_for_each_other(a_by_rows: bool, b_by_rows: bool, columns: int) -> None:
    """By 4 matrices for 16 rows, and as many for 16 columns; what is in the other order is transposed."""
    case = Product(a_by_rows=a_by_rows, b_by_rows=b_by_rows)
    (kernel,) = kernels(case.pipeline().with_schedule(staged(case, columns)))
    assert len(instructions(kernel.body, "mma")) in (8, 16)  # twice where blocks at the edges have code of their own
    of_a = "ldmatrix.x4" if a_by_rows else "ldmatrix.x4.trans"
    of_b = f"ldmatrix.x{columns // 4}{'.trans' if b_by_rows else ''}"
    assert {e.name for e in instructions(kernel.body, "ldmatrix")} == {of_a, of_b}


@pytest.mark.parametrize(
    ("case", "schedule"),
    [
        (Product(), alone(Product())),  # from global memory
        (Product("int8", "int32"), staged(Product("int8", "int32"))),  # of 8 bits
        (Product(), staged(Product(), padding=4)),  # whose rows begin in the middle of 16 bytes
    ],
)
def test_other_fragments_are_loaded_by_elements(case: Product, schedule: Schedule) -> None:
    p = case.pipeline().with_schedule(schedule)
    (kernel,) = kernels(p)
    assert instructions(kernel.body, "mma") and not instructions(kernel.body, "ldmatrix")
    assert_right(p, case, (70, 45, 37))


def test_padded_rows_lie_in_different_banks() -> None:
    case, conflicts = Product(), dict[int, int]()
    for padding in (0, 8):
        p = case.pipeline().with_schedule(staged(case, padding=padding))
        (counts,) = assert_agrees(p, **case.random(64, 32, 64))
        conflicts[padding] = counts.traffic.bank_conflicts["load"]
    assert conflicts[0] > conflicts[8] == 0


def test_what_is_left_over_is_shared_as_fragments_are() -> None:
    """The lanes of a warp that has no whole tile of terms compute what they have of it, one term after the other."""
    case = Product()
    p = case.pipeline().with_schedule(alone(case))
    made = loops(p, "tensorize")
    rest = [i for i in walk(made) if isinstance(i, For) and i.kind is Kind.SERIAL and i.var == "sums.u1.term"]
    assert rest and not any(instructions(i, "mma") for i in rest)
    for lanes, extent in (("row", 8), ("column", 4)):
        (loop, *_) = (i for i in walk(rest[0]) if isinstance(i, For) and i.var == f"sums.u1.{lanes}.lane")
        assert loop.kind is Kind.LANE and isinstance(loop.extent, Const) and loop.extent.value == extent
    assert_right(p, case, (16, 32, 15))


def test_rows_left_over_are_apart() -> None:
    """Where a tile of rows is not whole, whole ones are computed by instructions nevertheless."""
    case = Product()
    schedule = alone(case)
    out = schedule.on("out")
    taller = type(out)(out.name, tuple(d if d.verb != "tile" else _taller(d) for d in out.directives))
    p = case.pipeline().with_schedule(schedule.replace(taller))
    (kernel,) = kernels(p)
    assert instructions(kernel.body, "mma")
    assert_right(p, case, (24, 32, 40), (50, 33, 20))


def _taller(d: pt.schedule.Directive) -> pt.schedule.Directive:
    return type(d)(d.verb, tuple(24 if a == 16 else a for a in d.args), d.tail, d.where)


def test_a_product_of_windows() -> None:
    """Rows are pixels of a row of a picture, and terms its channels: a convolution is a sum of such products."""
    x, c = pt.vars("x c")
    img, weights = pt.Input("img", "float16", ndim=2), pt.Input("weights", "float16", ndim=3)
    out, r = pt.Func("out"), pt.RDom((0, 3), (0, img.shape[1]), name="r", names="dx k")
    f = pt.cast("float32", img[x + r.dx, r.k]) * pt.cast("float32", weights[r.dx, r.k, c])
    out[x, c] = pt.sum(f, over=r)
    p = pt.Pipeline(out, shape=(img.shape[0] - 2, weights.shape[2]), target="cuda-sim")
    schedule = alone(Product())
    renamed = [_renamed(s) for s in schedule.values()]
    p = p.with_schedule(pt.Schedule(*renamed))
    (kernel,) = kernels(p)
    assert instructions(kernel.body, "mma")
    rng = np.random.default_rng(0)
    for pixels, channels, results in ((40, 32, 16), (21, 20, 9)):
        arrays = {
            "img": rng.integers(-3, 4, (pixels, channels)).astype(np.float16),
            "weights": rng.integers(-3, 4, (3, channels, results)).astype(np.float16),
        }
        np.testing.assert_array_equal(p(**arrays), p.reference(**arrays))


def _renamed(s: pt.StageSchedule) -> pt.StageSchedule:
    """The directives for stages of dims x and c."""
    names = {"i": "x", "j": "c"}
    changed = tuple(type(d)(d.verb, tuple(names.get(a, a) for a in d.args), d.tail, d.where) for d in s.directives)
    update = [d for d in changed if d.verb == "reorder"][-1]
    around = type(update)("reorder", ("r.dx", *update.args), update.tail, update.where)
    return type(s)(s.name, tuple(around if d is update and s.name == "sums" else d for d in changed))
