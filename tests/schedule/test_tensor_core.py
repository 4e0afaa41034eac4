"""The directive tensor_core: what it marks, and all that is refused about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pantile as pt
from pantile.errors import UserError
from pantile.schedule import Schedule, StageSchedule
from pantile.schedule.plan import Nest
from pantile.schedule.resolve import resolve
from pantile.target import named
from pantile.target.kinds import Kind

from ..matrices import Product, Warpgroups, alone, by_warpgroups, staged

HALVES = Product()


def nest(p: pt.Pipeline, schedule: Schedule, strict: bool = False) -> Nest:
    _, plan = resolve(p.rewritten, schedule, target=named("cuda-sim"), strict=strict)
    return plan.stages["sums"].nests[1]


def refusal(change: Callable[[StageSchedule], StageSchedule], product: Product = HALVES, strict: bool = False) -> str:
    """Why a schedule is refused after a change to the directives of the sums."""
    schedule = alone(product)
    with pytest.raises(UserError) as caught:
        product.pipeline(strict).with_schedule(schedule.replace(change(schedule.on("sums"))))
    return str(caught.value)


def without(*verbs: str) -> Callable[[StageSchedule], StageSchedule]:
    """The sums without some directives."""
    return lambda s: StageSchedule(s.name, tuple(d for d in s.directives if d.verb not in verbs))


def instead(
    verb: str, *directives: Callable[[StageSchedule], StageSchedule]
) -> Callable[[StageSchedule], StageSchedule]:
    """The sums with other directives in the place of one."""

    def change(s: StageSchedule) -> StageSchedule:
        made = StageSchedule(s.name, ())
        for d in s.directives:
            if d.verb != verb:
                made = StageSchedule(s.name, (*made.directives, d))
                continue
            for f in directives:
                made = f(made)
        return made

    return change


def test_it_is_in_the_plan() -> None:
    schedule = alone(HALVES)
    found = nest(HALVES.pipeline(), schedule)
    assert found.tensor_core == ("row", "column", "term")
    assert [x.kind for x in found.loops][-3:] == [Kind.TENSOR_CORE] * 3
    assert '.tensor_core("row", "column", "term")' in str(schedule)
    assert eval(str(schedule), {"pt": pt}) == schedule == Schedule.from_json(schedule.to_json())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            instead("tensor_core", lambda s: s.tensor_core("row", "jo", "term")),
            '.tensor_core("row", "jo", "term"): loop jo is already unroll by .unroll("jo"); give a loop one kind',
        ),
        (
            instead("tensor_core", lambda s: s.tensor_core("io", "column", "term")),
            "loop io has an unknown number of iterations, and the instruction takes 16 of it; split it, as in "
            '.split("io", "outer", "inner", 16), and name the inner loop',
        ),
        (
            instead("tensor_core", lambda s: s.split("column", "four", "two", 2).tensor_core("row", "four", "term")),
            "loop four has 4 iterations, and the instruction takes 8 of it",
        ),
        (
            instead("tensor_core", lambda s: s.tensor_core("row", "term", "column")),
            "update 0 is no product of matrices, c[i, j] += T(a[i, k])*T(b[k, j]), over parts of i, j and k; "
            "name loops over rows, columns and terms of one, or leave it out",
        ),
        (
            instead("tensor_core", lambda s: s.fuse("row", "column", "f").tensor_core("f", "f", "term")),
            "update 0 is no product of matrices",
        ),
        (
            instead("tensor_core", lambda s: s.tensor_core("row", "colum", "term")),
            "update 0 has no loop 'colum'; did you mean 'column'?",
        ),
        (
            instead("tensor_core", lambda s: s.reorder("column", "row").tensor_core("row", "column", "term")),
            "the innermost loops are column, row, term, and an instruction computes them at once; reorder row, column, "
            "term innermost, in this order",
        ),
        (
            without("store_in"),
            'instructions add to what lanes have in registers, as sums is not; add .store_in("register")',
        ),
        (
            instead("lane", lambda s: s),
            "the lanes of a warp do not have sums as the instruction does, in 8 rows of 4 times two columns; write "
            '.split("i", "rows", "row", 8).split("j", "columns", "two", 8).split("two", "pair", "one", 2) and '
            '.lane("row", "pair") for the pure definition',
        ),
        (
            lambda s: StageSchedule(s.name, (*s.pure().directives,)).tensor_core("i8", "j8", "jl"),
            "is no product of matrices",
        ),
    ],
)
def test_what_no_instruction_computes(change: Callable[[StageSchedule], StageSchedule], text: str) -> None:
    message = refusal(change)
    assert message.startswith(f"{__file__}:") or "tests/matrices.py" in message
    assert text in message


@pytest.mark.parametrize("accumulator", ["float16", "float64"])
def test_types_that_no_instruction_has(accumulator: str) -> None:
    product = Product("float32", accumulator)
    schedule = alone(HALVES)
    with pytest.raises(UserError) as caught:
        product.pipeline().with_schedule(schedule)
    assert "use one of float16 to float32, bfloat16 to float32, float16 to float16, int8 to int32" in str(caught.value)


def test_warps_execute_it() -> None:
    """The pure definition has a warp loop here, the update none."""
    schedule = staged(HALVES)
    sums = schedule.on("sums")
    last = max(k for k, d in enumerate(sums.directives) if d.verb == "warp")
    asked = StageSchedule(sums.name, (*sums.directives[:last], *sums.directives[last + 1 :]))
    with pytest.raises(UserError) as caught:
        HALVES.pipeline().with_schedule(schedule.replace(asked))
    assert (
        '.tensor_core("row", "column", "term"): a warp executes matrix instructions, and these loops lie in no warp '
        "loop; mark a loop around them .warp(...), or compute sums at one" in str(caught.value)
    )


def test_nothing_else_is_computed_in_it() -> None:
    schedule = staged(HALVES)
    asked = pt.on("left").compute_at("sums", "term").store_in("register")
    with pytest.raises(UserError) as caught:
        HALVES.pipeline().with_schedule(schedule.replace(asked))
    assert (
        '.compute_at("sums", "term"): an instruction computes loop term of sums, and nothing else in it; compute it at '
        "a loop around those of .tensor_core(...)" in str(caught.value)
    )


def test_sums_of_three_factors() -> None:
    (i, j), out, r = pt.vars("i j"), pt.Func("out"), pt.RDom((0, 64), name="r", names="k")
    a, b, c = (pt.Input(name, "float16", ndim=2) for name in "abc")
    out[i, j] = pt.sum(a[i, r.k] * b[r.k, j] * c[i, j], over=r)
    with pytest.raises(UserError, match="update 0 is no product of matrices"):
        pt.Pipeline(out, shape=(a.shape[0], b.shape[1]), target="cuda-sim").with_schedule(alone(HALVES))


def test_strict_floats_keep_their_order() -> None:
    message = refusal(lambda s: s, strict=True)
    assert "tensor cores add up floats in another order and round them differently, and strict=True forbids" in message
    integers = Product("int8", "int32")
    assert nest(integers.pipeline(), alone(integers), strict=True).tensor_core


def test_older_gpus_have_other_instructions() -> None:
    with pytest.raises(UserError, match="has no such matrix instructions; leave it out; GPUs have them from sm_80 on"):
        HALVES.pipeline(target="sm_75").with_schedule(alone(HALVES))


def test_cpus_have_none() -> None:
    p = HALVES.pipeline(target="aarch64")
    tiles = pt.on("out").update().split("i", "io", "ii", 16).split("j", "jo", "ji", 8).split("r.k", "ko", "ki", 16)
    tiles = tiles.reorder("io", "jo", "ko", "ii", "ji", "ki").tensor_core("ii", "ji", "ki")
    with pytest.raises(UserError, match="has no tensor_core loops; leave it serial"):
        p.with_schedule(Schedule(tiles))


def refused_warpgroups(change: Callable[[StageSchedule], StageSchedule], target: str = "cuda-sim") -> str:
    """Why a schedule for warpgroups is refused after a change to the directives of the sums."""
    schedule = by_warpgroups(HALVES, Warpgroups())
    with pytest.raises(UserError) as caught:
        HALVES.pipeline(target=target).with_schedule(schedule.replace(change(schedule.on("sums"))))
    return str(caught.value)


def test_older_gpus_have_no_warpgroups() -> None:
    text = refused_warpgroups(lambda s: s, "sm_80")
    assert "tests/matrices.py" in text
    assert (
        'pt.on("sums").tensor_core("iw", "jw", "term"): nvptx64-nvidia-cuda/sm_80 has no instructions of warpgroups, '
        "which multiply by 24 to 256 columns; sm_90 alone has them; split the columns into tiles of 8 or 16, and the "
        "terms into those of 16" in text
    )


def changed(verb: str, before: tuple[object, ...], *after: object) -> Callable[[StageSchedule], StageSchedule]:
    """The sums with other arguments of some directives."""

    def change(s: StageSchedule) -> StageSchedule:
        made = [
            type(d)(d.verb, after, d.tail, d.where) if (d.verb, d.args) == (verb, before) else d for d in s.directives
        ]
        return StageSchedule(s.name, tuple(made))

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            changed("split", ("r.k", "slice", "term", 32), "r.k", "slice", "term", 24),
            "loop term has 24 iterations, and the instruction takes 16 of it",
        ),
        (
            changed("split", ("j", "wj", "jw", 32), "j", "wj", "jw", 20),
            "loop jw has 20 iterations, and the instruction takes 8 of it",
        ),
        (
            changed("reorder", ("slice", "wj", "wi", "iw", "jw", "term"), "slice", "wi", "wj", "iw", "jw", "term"),
            "four warps with adjacent rows multiply by so many columns at once, 16 rows each, and the innermost warp "
            'loop does not count them; write .split("i", "warp", "iw", 16) and .warp("warp"), with a multiple of 4 '
            "warps",
        ),
    ],
)
def test_what_warpgroups_do_not_multiply(change: Callable[[StageSchedule], StageSchedule], text: str) -> None:
    assert text in refused_warpgroups(change)


def test_a_block_has_whole_warpgroups() -> None:
    schedule = by_warpgroups(HALVES, Warpgroups())
    out = schedule.on("out").threads(192)
    with pytest.raises(UserError, match="warpgroups multiply matrices in these blocks, and have 128 threads; choose"):
        HALVES.pipeline().with_schedule(schedule.replace(out))
