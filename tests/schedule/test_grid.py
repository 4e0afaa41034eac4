"""Blocks and threads in schedules: how they are written, and all that is refused about them."""

from __future__ import annotations

import pytest

import pantile as lang
from pantile import schedule as pt
from pantile.errors import UserError
from pantile.schedule import Schedule, StageSchedule
from pantile.schedule.plan import Plan
from pantile.schedule.resolve import resolve
from pantile.target import NAMED, named
from pantile.target.kinds import Kind
from tests.schedule import pipelines

GPU = named("cuda-sim")
TILES = pt.on("blur_y").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "xo").thread("yi", "xi")

WARPS = pt.on("blur_y").tile("y", "x", "yo", "xo", "w", "xi", 4, 30).block("yo", "xo").warp("w").lane("xi")


def plan(*asked: StageSchedule, target: lang.target.Target = GPU) -> Plan:
    return resolve(pipelines.blur(), Schedule(*asked), target=target)[1]


def refusal(*asked: StageSchedule, target: lang.target.Target = GPU) -> str:
    with pytest.raises(UserError) as caught:
        plan(*asked, target=target)
    return str(caught.value)


def test_the_kinds_of_loops_are_in_the_plan() -> None:
    found = plan(TILES, pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x")).stages
    assert [x.kind for x in found["blur_y"].nests[0].loops] == [Kind.BLOCK] * 2 + [Kind.THREAD] * 2
    assert [x.kind for x in found["blur_x"].nests[0].loops] == [Kind.THREAD] * 2


def test_warps_and_lanes() -> None:
    asked = WARPS, pt.on("blur_x").compute_at("blur_y", "w").lane("x")
    found = plan(*asked).stages
    assert [x.kind for x in found["blur_y"].nests[0].loops] == [Kind.BLOCK, Kind.BLOCK, Kind.WARP, Kind.LANE]
    assert [x.kind for x in found["blur_x"].nests[0].loops] == [Kind.SERIAL, Kind.LANE]
    text = str(Schedule(*asked))
    assert '.warp("w")' in text and '.lane("xi")' in text
    assert eval(text, {"pt": pt}) == Schedule(*asked) == Schedule.from_json(Schedule(*asked).to_json())


def test_it_prints_and_saves_as_it_was_written() -> None:
    asked = Schedule(TILES, pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x").store_in("shared"))
    assert '.block("yo", "xo")' in str(asked) and '.thread("yi", "xi")' in str(asked)
    assert eval(str(asked), {"pt": pt}) == asked
    assert Schedule.from_json(asked.to_json()) == asked


@pytest.mark.parametrize("verb", ["block", "thread", "warp"])
def test_loops_have_to_be_named(verb: str) -> None:
    with pytest.raises(UserError, match=rf'pt.on\("f"\).{verb}: no loop is named; write .{verb}\("y", "x"\)'):
        getattr(pt.on("f"), verb)()


HOST_LOOPS = "leave it serial; there are serial, parallel, vector, unroll"
GPU_LOOPS = "leave it serial; there are serial, block, thread, warp, lane, tensor_core, vector, unroll"


@pytest.mark.parametrize("verb", ["block", "thread", "warp", "lane"])
def test_a_cpu_has_none_of_them(verb: str) -> None:
    message = refusal(getattr(pt.on("blur_y"), verb)("y"), target=NAMED["aarch64"])
    assert f'.{verb}("y"): ' in message and f"has no {verb} loops; {HOST_LOOPS}" in message


def test_a_cpu_has_no_shared_memory() -> None:
    asked = pt.on("blur_x").compute_at("blur_y", "y").store_in("shared"), pt.on("blur_y").compute_root()
    assert "has no such memory; leave it out; there are auto, heap, scratch, stack, register" in refusal(
        *asked, target=NAMED["aarch64"]
    )


@pytest.mark.parametrize("asked", [pt.on("blur_y").threads(64), pt.on("blur_y").persistent()])
def test_a_cpu_has_no_blocks(asked: StageSchedule) -> None:
    message = refusal(asked, target=NAMED["aarch64"])
    assert f"{asked}: " in message and "has no blocks of threads; leave it out" in message


def test_a_cpu_has_no_cache_operators() -> None:
    message = refusal(pt.on("blur_y").cache_loads("img", "cg"), target=NAMED["aarch64"])
    assert '.cache_loads("img", "cg"): ' in message and "does not choose the caches of a load; leave it out" in message


def test_there_are_three_cache_operators() -> None:
    text = r"pt.on\(\"f\"\).cache_loads: operator is 'L2'; use one of ca, cg, cs"
    with pytest.raises(UserError, match=text):
        pt.on("f").cache_loads("img", "L2")


def test_the_number_of_threads_is_limited() -> None:
    text = r'pt.on\("f"\).threads: the number of threads is '
    for count, why in ((0, "0; give an integer of at least 1"), (1025, "1025; give at most 1024")):
        with pytest.raises(UserError, match=text + why):
            pt.on("f").threads(count)


def test_a_gpu_has_no_parallel_loops() -> None:
    assert f"has no parallel loops; {GPU_LOOPS}" in refusal(pt.on("blur_y").parallel("y"))


REFUSED = [
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "xo").block("y")],
        '.block("y"): blur_x is computed inside of block loops already; leave loop y serial, or compute blur_x outside',
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "xi").thread("x")],
        '.thread("x"): blur_x is computed inside of thread loops already; leave loop x serial, or compute '
        "blur_x outside",
    ),
    (
        [pt.on("blur_y").thread("y", "x"), pt.on("blur_x").compute_at("blur_y", "x").block("y")],
        '.block("y"): blur_x is computed inside of thread loops already; leave loop y serial, or compute '
        "blur_x outside",
    ),
    (
        [pt.on("blur_y").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo", "yi").thread("xi")],
        "loop xo (serial) lies between block loops; reorder the block loops so that they are directly inside "
        "each other",
    ),
    (
        [pt.on("blur_y").tile("y", "x", "yo", "xo", "yi", "xi", 8, 32).block("yo").thread("xo", "xi")],
        "loop yi (serial) lies between thread loops; reorder the thread loops so that they are directly inside each "
        "other",
    ),
    (
        [pt.on("blur_y").thread("y").block("x")],
        "block loop x lies inside of thread loops; reorder the block loops outermost",
    ),
    (
        [pt.on("blur_y").tile("y", "x", "yo", "xo", "yi", "xi", 32, 64).block("yo", "xo").thread("yi", "xi")],
        "a block would have 2048 threads, and a GPU has 1024 at most; split these loops further, and leave "
        "some of them serial",
    ),
    (
        [TILES.threads(500)],
        ".threads(500): blocks consist of warps of 32 threads; use .threads(512)",
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x").threads(512)],
        ".threads(512): the pure definition of blur_x has no block loops; write it for the definition whose loops the "
        "blocks are",
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x").persistent()],
        ".persistent(): the pure definition of blur_x has no block loops; write it for the definition whose loops the "
        "blocks are",
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "xo").cache_loads("img", "cg")],
        '.cache_loads("img", "cg"): blur_x has no block loops of its own; write it for the stage whose loops the '
        "blocks are",
    ),
    (
        [TILES.cache_loads("img", "cg"), pt.on("blur_x").compute_root()],
        "nothing in the loops of blur_y reads 'img'; there are: blur_x",
    ),
    (
        [TILES.cache_loads("blur_x", "cg"), pt.on("blur_x").compute_inline()],
        "nothing in the loops of blur_y reads 'blur_x'; there are: img",
    ),
    (
        [TILES.cache_loads("blur_x", "cs"), pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x")],
        "the kernel that loads blur_x computes it as well; leave it out: this is for inputs and stages that are "
        "computed before",
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "yo")],
        '.compute_at("blur_y", "yo"): loop yo of blur_y is a block loop around another, xo; '
        'use .compute_at("blur_y", "xo")',
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "yi")],
        'loop yi of blur_y is a thread loop around another, xi; use .compute_at("blur_y", "xi")',
    ),
    (
        [TILES, pt.on("blur_x").compute_root().store_in("shared")],
        "blur_x is stored outside of all blocks, and threads of one block or warp share this memory; store it at a "
        "block or warp loop, or at a loop between these and threads or lanes",
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "xi").store_in("shared")],
        "blur_x is stored inside of a thread, and threads of one block or warp share this memory",
    ),
    (
        [TILES, pt.on("blur_x").compute_root().store_in("register")],
        "blur_x is stored outside of all threads, and this is memory of one thread; compute it at a thread loop or in "
        "it, or at a block whose threads each keep their own",
    ),
    (
        [TILES, pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x").store_in("heap")],
        'blur_x is stored inside of a block, for which nobody allocates such memory; use "shared" or "register", or '
        "store it at root",
    ),
    (
        [WARPS, pt.on("blur_x").compute_at("blur_y", "w").thread("x")],
        "blur_x is computed inside of warp loops already; leave loop x serial, or compute blur_x outside",
    ),
    (
        [WARPS, pt.on("blur_x").compute_at("blur_y", "xi").lane("x")],
        "blur_x is computed inside of lane loops already; leave loop x serial, or compute blur_x outside",
    ),
    (
        [WARPS, pt.on("blur_x").compute_at("blur_y", "w").store_in("shared")],
        'the 32 lanes of a warp share this memory, and no loop of blur_x; mark its loops .lane("x"); lanes take more '
        "than 32 points in turn",
    ),
    (
        [WARPS, pt.on("blur_x").compute_at("blur_y", "xi").store_in("shared")],
        "blur_x is stored inside of a lane, and threads of one block or warp share this memory",
    ),
    (
        [WARPS, pt.on("blur_x").compute_at("blur_y", "w").split("x", "xo", "l", 64).lane("l")],
        "loop l has 64 iterations, and a warp 32 lanes",
    ),
    (
        [pt.on("blur_y").block("y").lane("x")],
        "loop x is shared by the lanes of a warp, and lies in no warp loop; mark a loop around it .warp(...), or "
        "compute blur_y at one",
    ),
    (
        [pt.on("blur_y").lane("y").warp("x")],
        "warp loop x lies inside of lane loops; reorder the lane loop innermost, and mark no loop .thread(...)",
    ),
    (
        [pt.on("blur_y").warp("y").thread("x")],
        "thread loop x lies inside of warp loops; mark loops of one definition .thread(...), or .warp(...) and "
        ".lane(...)",
    ),
    (
        [WARPS.lane("yo")],
        '.lane("yo"): loop yo is already block',
    ),
    (
        [
            pt.on("blur_y")
            .tile("y", "x", "yo", "xo", "yi", "xi", 4, 16)
            .split("yo", "yo", "w", 2)
            .reorder("yo", "xo", "w", "yi", "xi")
            .block("yo", "xo")
            .warp("w")
            .lane("yi", "xi")
        ],
        'loops yi and xi have 64 iterations, and a warp 32 lanes; split it, as in .split("xi", "outer", "inner", 8), '
        "and leave the outer one serial, or to warps",
    ),
    (
        [
            pt.on("blur_y")
            .tile("y", "x", "yo", "xo", "yi", "xi", 4, 8)
            .split("yo", "yo", "w", 2)
            .reorder("yo", "xo", "w", "yi", "xi")
            .block("yo", "xo")
            .warp("w")
            .lane("yi", "xi"),
            pt.on("blur_x").compute_at("blur_y", "yi"),
        ],
        'loop yi of blur_y is a lane loop around another, xi; use .compute_at("blur_y", "xi")',
    ),
    (
        [
            pt.on("blur_y")
            .tile("y", "x", "w", "xo", "row", "xi", 4, 8)
            .reorder("w", "xo", "row", "xi")
            .warp("w")
            .lane("xo", "xi")
        ],
        "loop row (serial) lies between lane loops; reorder the lane loops so that they are directly inside each other",
    ),
    (
        [pt.on("blur_y").tile("y", "x", "yo", "xo", "w", "xi", 4, 64).block("yo", "xo").warp("w").lane("xi")],
        'loop xi has 64 iterations, and a warp 32 lanes; split it, as in .split("xi", "outer", "inner", 32), and leave '
        "the outer one serial, or to warps",
    ),
    (
        [pt.on("blur_y").tile("y", "x", "yo", "xo", "w", "xi", 64, 30).block("yo", "xo").warp("w").lane("xi")],
        "a block would have 2048 threads, and a GPU has 1024 at most",
    ),
]


@pytest.mark.parametrize(("asked", "text"), REFUSED, ids=lambda v: v[:40] if isinstance(v, str) else "")
def test_what_no_gpu_can_do(asked: list[StageSchedule], text: str) -> None:
    message = refusal(*asked)
    assert text in message
    assert message.startswith(__file__), "the line of the directive"


def test_all_places_of_a_stage_count() -> None:
    """Loop y is serial in one definition and a thread in the other: f is computed in both."""
    y, x = lang.vars("y x")
    f, g = lang.Func("f"), lang.Func("g")
    f[y, x] = y + x
    g[y, x] = f[y, x]
    g[y, x] += f[y + 1, x]
    graph, host = lang.Pipeline(g, shape=(5, 7)).graph, pt.on("g").update(0).thread("y")

    def refused(asked: StageSchedule) -> str:
        with pytest.raises(UserError) as caught:
            resolve(graph, Schedule(host, asked), target=GPU)
        return str(caught.value)

    inner = pt.on("f").compute_at("g", "y")
    assert "f is computed inside of thread loops already" in refused(inner.block("y"))
    assert "f is computed inside of thread loops already" in refused(inner.thread("x"))
    assert "f is stored outside of all threads" in refused(inner.store_in("register"))
    whole = pt.on("g").update(0).thread("y", "x")
    with pytest.raises(UserError, match="loop y of g is a thread loop around another, x"):
        resolve(graph, Schedule(whole, inner), target=GPU)


def test_lanes_take_sums_and_no_other_values_that_are_carried() -> None:
    y, r = lang.vars("y")[0], lang.RDom((0, 8), names="x")
    img = lang.Input("img", "float32", ndim=2)
    f, g, h = lang.Func("f"), lang.Func("g"), lang.Func("h")
    f[y] = 0.0
    f[y] += img[y, r.x]
    g[y] = 0.0
    g[y] = g[y] * 0.5 + img[y, r.x]
    h[y] = f[y] + g[y]
    graph = lang.Pipeline(h, shape=(8,)).graph
    rows = pt.on("h").split("y", "yo", "w", 4).block("yo").warp("w")

    def lanes(name: str) -> StageSchedule:
        return pt.on(name).compute_at("h", "w").update().lane("r.x")

    resolve(graph, Schedule(rows, lanes("f")), target=GPU)
    with pytest.raises(UserError, match="carries values from one iteration to the next, other than sums"):
        resolve(graph, Schedule(rows, lanes("g")), target=GPU)
    with pytest.raises(UserError, match="would round float sums differently, and strict=True forbids that"):
        resolve(graph, Schedule(rows, lanes("f")), target=GPU, strict=True)


def test_lanes_inside_of_others_are_a_constant_number() -> None:
    y, x = lang.vars("y x")
    img, f = lang.Input("img", "float32", ndim=2), lang.Func("f")
    f[y, x] = img[y, x] + 1
    graph = lang.Pipeline(f, shape=img.shape).graph
    lanes = pt.on("f").split("y", "w", "row", 8).warp("w").lane("row", "x")
    with pytest.raises(UserError) as caught:
        resolve(graph, Schedule(lanes), target=GPU)
    why = '.lane("row", "x"): loop x lies in another lane loop, and how many lanes it takes is not constant; split it '
    assert f'{why}by a constant, as in .split("x", "outer", "inner", 16), and mark the inner one' in str(caught.value)


def test_only_one_loop_of_lanes_is_summed_over() -> None:
    y, r = lang.vars("y")[0], lang.RDom((0, 8), names="x")
    img, f = lang.Input("img", "float32", ndim=2), lang.Func("f")
    f[y] = 0.0
    f[y] += img[y, r.x]
    graph = lang.Pipeline(f, shape=(64,)).graph
    update = pt.on("f").update().split("y", "w", "row", 4).warp("w").lane("row", "r.x")
    with pytest.raises(UserError, match=r"all lanes of a warp combine the terms of loop r[.]x, and share another loop"):
        resolve(graph, Schedule(update), target=GPU)


def test_the_number_of_threads_is_that_of_the_definition_whose_loops_are_shared() -> None:
    i, r = lang.vars("i")[0], lang.RDom((0, 8), names="x")
    img, f = lang.Input("img", "int32", ndim=2), lang.Func("f")
    f[i] = 0
    f[i] += img[i, r.x]
    graph = lang.Pipeline(f, shape=(img.shape[0],)).graph
    tiles = pt.on("f").split("i", "io", "ii", 32).block("io").thread("ii")
    shared = tiles.update().split("i", "io", "ii", 32).reorder("io", "ii", "r.x").block("io").thread("ii")
    shared = shared.compute_with("f", "ii")
    assert resolve(graph, Schedule(shared.pure().threads(64)), target=GPU)[1].stages["f"].nests[0].threads == 64
    with pytest.raises(UserError) as caught:
        resolve(graph, Schedule(shared.threads(64)), target=GPU)
    assert '.threads(64): update 0 of f shares the loop io, by .compute_with("f", "ii"); ' in str(caught.value)


def test_threads_of_other_stages_may_be_many() -> None:
    """They share those of the block."""
    assert plan(TILES, pt.on("blur_x").compute_at("blur_y", "xo").thread("y", "x"))
    assert plan(TILES, pt.on("blur_x").compute_root().split("x", "xo", "xi", 4096).thread("xi"))
