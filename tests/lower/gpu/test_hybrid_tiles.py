"""Hybrid tiles: the left part of what a warp has of a stage in shared memory, the right part in registers of lanes."""

from __future__ import annotations

import re

import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.ir.nodes import Alloc
from pantile.ir.visit import walk
from pantile.schedule.directives import StageSchedule
from pantile.target.kinds import Memory

from .simulated import assert_agrees, kernels, picture, x, y

SIZES = ((70, 300), (30, 131), (4, 10), (9, 517))
IMG = pt.Input("img", "float32", ndim=2)
HALO = {"g": {"y": 2, "x": 2}, "f": {"y": 3, "x": 4}}


def blur(*schedule: StageSchedule) -> pt.Pipeline:
    """That of Figure 3: columns, then rows."""
    blur_x, blur_y = pt.Func("blur_x"), pt.Func("blur_y")
    blur_x[y, x] = (IMG[y, x] + IMG[y + 1, x] + IMG[y + 2, x]) / 3
    blur_y[y, x] = (blur_x[y, x] + blur_x[y, x + 1] + blur_x[y, x + 2]) / 3
    p = pt.Pipeline(blur_y, shape=(IMG.shape[0] - 2, IMG.shape[1] - 2), target="cuda-sim")
    return p.with_schedule(pt.Schedule(*schedule))


def in_shared(stage: str, output: str, *lanes: str) -> StageSchedule:
    return pt.on(stage).compute_at(output, "w").store_in("shared").lane(*lanes)


def chain(*schedule: StageSchedule) -> pt.Pipeline:
    """Three stages."""
    f, g, out = pt.Func("f"), pt.Func("g"), pt.Func("out")
    f[y, x] = IMG[y, x] * 2 + IMG[y, x + 1]
    g[y, x] = f[y, x] + f[y + 1, x + 1] * 3 + f[y, x + 2]
    out[y, x] = g[y, x] + g[y + 1, x] + g[y + 2, x + 2]
    p = pt.Pipeline(out, shape=(IMG.shape[0] - 3, IMG.shape[1] - 5), target="cuda-sim")
    return p.with_schedule(pt.Schedule(*schedule))


def tiles(points: tuple[int, int], warp: tuple[int, int], *, unrolls: bool = True) -> StageSchedule:
    """Tiles of warps: so many points of each lane, and lanes, along y and x."""
    (high, wide), (rows, columns) = points, warp
    out = pt.on("out").split("y", "yo", "wy", 4 * high * rows).split("wy", "w", "yi", high * rows)
    out = out.split("x", "xo", "xi", wide * columns).split("yi", "yt", "yl", rows).split("xi", "xt", "xl", columns)
    out = out.reorder("yo", "xo", "w", "yt", "xt", "yl", "xl").block("yo", "xo").warp("w").lane("yl", "xl")
    return out.unroll("yt").unroll("xt") if unrolls else out


def hybrid(stage: str, dim: str, tiles_in_shared: int, warp: tuple[int, int]) -> StageSchedule:
    """With so many parallelogram tiles in shared memory, beside the overlap."""
    first = HALO[stage][dim] + tiles_in_shared * dict(zip("yx", warp, strict=True))[dim]
    return in_shared(stage, "out", "y", "x").registers_from(dim, first, *warp)


def test_the_four_kinds_of_loads() -> None:
    """Figure 4: warps four threads wide, tiles 0 and 1 in shared memory, 2 and 3 in registers. All loads of the first
    two are from shared memory. Of the third, lanes read their own register, or that of another lane, but shared memory
    where that is to the left; and of the fourth a register of the third tile."""
    out = pt.on("blur_y").split("y", "yo", "yl", 8).split("x", "xo", "xi", 16).split("xi", "xt", "xl", 4)
    out = out.split("yo", "yo", "w", 4).reorder("yo", "xo", "w", "xt", "yl", "xl").block("yo", "xo").warp("w")
    p = blur(
        out.lane("yl", "xl").unroll("xt"), in_shared("blur_x", "blur_y", "y", "x").registers_from("x", 2 + 2 * 4, 8, 4)
    )
    for size in ((64, 50), (9, 130), (3, 4)):
        assert_agrees(p, img=picture(*size))
    stores = [line.strip() for line in p.loops().split("else:")[0].splitlines() if line.strip().startswith("blur_y[")]
    kinds = [re.findall(r"select|shfl|blur_x\.registers\[\d\]|blur_x\[", s.split(" = ")[1]) for s in stores]
    shared, shuffled, third, fourth = "blur_x[", "shfl", "blur_x.registers[0]", "blur_x.registers[1]"
    assert kinds == [
        [shared] * 3,
        [shared] * 3,
        [*["select", shared, shuffled, third] * 2, third],
        [*[shuffled, "select", fourth, third] * 2, fourth],
    ]
    assert re.findall(r"lane%4 < \d", stores[3]) == ["lane%4 < 2", "lane%4 < 3"]


def test_the_code_of_figure_5() -> None:
    """Tiles of 16 points of each of 32 lanes, in blocks of 64 x 4 threads: 8 of 16 in shared memory and 8 in registers,
    the overlap in shared memory; lanes wait for each other, blocks do not."""
    out = pt.on("blur_y").split("y", "yo", "wy", 4).split("x", "xo", "xw", 1024).split("xw", "w", "xi", 512)
    out = out.split("xi", "xt", "xl", 32).reorder("yo", "xo", "wy", "w", "xt", "xl").block("yo", "xo").warp("wy", "w")
    whole = in_shared("blur_x", "blur_y", "x")
    plain, half = blur(out.lane("xl"), whole), blur(out.lane("xl").unroll("xt"), whole.registers_from("x", 8 * 32 + 2))
    for size in ((9, 1100), (6, 700)):
        assert all(launch.barriers == 0 for launch in assert_agrees(half, img=picture(*size)))
    assert [count(plain), count(half)] == [(514, 0), (258, 8)]
    (kernel,) = kernels(half)
    assert kernel.threads == 256
    asm = half.asm("sm_70")
    assert "bar.sync" not in asm and "bar.warp.sync" in asm and "shfl.sync" in asm


def count(p: pt.Pipeline) -> tuple[int, ...]:
    """The elements of a warp in shared memory, and the registers of a lane."""
    allocations = {(i.memory, int(str(i.size))) for k in kernels(p) for i in walk(k.body) if isinstance(i, Alloc)}
    return sum(n for m, n in allocations if m is Memory.SHARED), sum(
        n for m, n in allocations if m is not Memory.SHARED
    )


@pytest.mark.parametrize(
    ("points", "warp", "dim", "in_memory"),
    [
        ((2, 3), (1, 32), "x", 1),
        ((2, 3), (1, 32), "x", 0),
        ((3, 1), (1, 32), "y", 1),
        ((2, 3), (2, 16), "x", 1),
        ((3, 2), (4, 8), "y", 1),
        ((3, 2), (4, 8), "y", 0),
        ((1, 1), (4, 8), "x", 0),
    ],
)
def test_chains(points: tuple[int, int], warp: tuple[int, int], dim: str, in_memory: int) -> None:
    """Each stage is in both memories, and reads both; or one is, and others are in shared memory."""
    g, f = hybrid("g", dim, in_memory, warp), hybrid("f", dim, in_memory, warp)
    for stages, sizes in (((g, f), SIZES), ((g, in_shared("f", "out", "y", "x")), SIZES[:1])):
        p = chain(tiles(points, warp), *stages)
        for size in sizes:
            assert all(launch.barriers == 0 for launch in assert_agrees(p, img=picture(*size)))
    with pytest.raises(UserError, match="entries are read at once, by more lanes than have them"):
        chain(tiles(points, warp), in_shared("g", "out", "y", "x"), f).loops()


def test_all_in_registers() -> None:
    """Without an overlap along the dim, nothing is left in shared memory."""
    f, out = pt.Func("f"), pt.Func("out")
    f[y, x] = IMG[y, x] * 2
    out[y, x] = f[y, x] + f[y + 1, x]
    p = pt.Pipeline(out, shape=(IMG.shape[0] - 1, IMG.shape[1]), target="cuda-sim")
    p = p.with_schedule(pt.Schedule(
        tiles((2, 2), (1, 32)), in_shared("f", "out", "y", "x").registers_from("x", 0, 1, 32)
    ))  # fmt: skip
    for size in SIZES:
        (launch,) = assert_agrees(p, img=picture(*size))
        assert launch.shared_bytes == 0 or size[0] < 10


def test_edges_and_tuples() -> None:
    f, out, around = pt.Func("f"), pt.Func("out"), pt.edge(IMG)
    f[y, x] = (around[y - 1, x] + around[y + 1, x] * 2, around[y, x])
    out[y, x] = f[y, x - 1][0] + f[y, x + 1][1] + f[y - 1, x][0]
    p = pt.Pipeline(out, shape=IMG.shape, target="cuda-sim").with_schedule(pt.Schedule(
        tiles((2, 3), (1, 32)), in_shared("f", "out", "y", "x").registers_from("x", 34, 1, 32)
    ))  # fmt: skip
    for size in SIZES:
        assert_agrees(p, img=picture(*size))


SHARED = in_shared("g", "out", "y", "x")
INLINED = pt.on("f").compute_inline()


@pytest.mark.parametrize(
    ("g", "why"),
    [
        (SHARED.registers_from("x", 33, 1, 32), "65 of its 98 entries lie there, which is no multiple of 32 lanes"),
        (SHARED.registers_from("x", 98, 1, 32), "a warp has 98 of them"),
        (SHARED.registers_from("x", 34), "give a number for each of y, x, whose product is 32"),
        (SHARED.registers_from("x", 34, 2, 32), "2 x 32 lanes are stated for 2 lane loops of a warp of 32"),
        (SHARED.store_in("register").registers_from("x", 34, 1, 32), "g is not in shared memory of a warp"),
        (SHARED.registers_from("z", 34, 1, 32), "g has no dim 'z'"),
        (pt.on("g").store_at("out", "w").compute_at("out", "yt").store_in("shared").lane("x").registers_from("x", 34),
         "not all of g is stored at once"),
        (pt.on("g").compute_at("out", "w").store_in("shared").split("x", "xo", "xl", 32).lane("xl")
         .registers_from("x", 34), "loop xl is a part of a dim; mark its loops over whole dims"),
        (in_shared("g", "out", "y").registers_from("x", 34), "loop x is no lane loop; mark its loops over whole dims "
                                                             ".lane(...), x among them"),
    ],
)  # fmt: skip
def test_what_is_refused(g: StageSchedule, why: str) -> None:
    with pytest.raises(UserError, match=re.escape(why)):
        chain(tiles((2, 3), (1, 32)), g, INLINED).loops()


def test_a_thread_has_255_registers() -> None:
    tall = chain(tiles((83, 3), (1, 32)), SHARED.registers_from("x", 2, 1, 32), INLINED)
    with pytest.raises(UserError, match="a lane would have 255 values of it in 255 registers"):
        tall.loops()


def test_loops_that_read_it_are_unrolled() -> None:
    with pytest.raises(UserError, match="which entries are read is not constant; unroll the loops around"):
        chain(tiles((2, 3), (1, 32), unrolls=False), SHARED.registers_from("x", 34, 1, 32), INLINED).loops()


def test_a_cpu_has_no_lanes() -> None:
    with pytest.raises(UserError, match="has no blocks of threads"):
        chain().with_options(target="x86-64-v3").with_schedule(pt.Schedule(pt.on("g").registers_from("x", 34)))


def test_small_arrays() -> None:
    """Blocks are smaller there: less of a tile is in registers, or all of it in shared memory."""
    p = chain(tiles((2, 3), (1, 32)), hybrid("g", "x", 1, (1, 32)), hybrid("f", "x", 1, (1, 32)))
    for width in (101, 100, 69, 68, 40, 9):
        for height in (50, 11, 5):
            assert_agrees(p, img=picture(height, width))
