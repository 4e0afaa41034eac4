"""Schedules as values: they record, print as Python, save as JSON, and compare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pantile import schedule as pt
from pantile.expr.nodes import coordinate
from pantile.schedule import Schedule, StageSchedule
from pantile.schedule.directives import CACHE_OPERATORS, MEMORIES, PARTITIONS, TAILS

EVERYTHING = (
    pt.on("f")
    .split("x", "xo", "xi", 8, tail="guard")
    .tile("y", "z", "yo", "zo", "yi", "zi", 4, 2)
    .reorder("yo", "xo")
    .fuse("yo", "zo", "p")
    .vectorize("xi")
    .unroll("yi", 2)
    .parallel("p", 3, tail="shift")
    .partition("xo", "never")
    .compute_at("out", "y")
    .clone_in("out", "copy", 0, 2)
    .copy_in("out", "near", "y", "x", 1)
    .copy_out("far")
    .panels("z", "zo", "zi", 8)
    .store_at("out", "yo")
    .store_in("stack")
    .registers_from("x", 18, 2, 16)
    .reorder_storage("x", "y")
    .split_storage("x", "panel", "lane", 8)
    .fold_storage("y", 4)
    .nontemporal()
    .prefetch("img", "y", 2)
    .cache_loads("img", "cg")
    .specialize("img.shape[0] >= 64 and gain == 1.0")
    .update(1)
    .rfactor("r.x", "u")
    .strips("r.y", "s", 32)
    .atomic()
    .threads(512)
    .persistent()
    .tensor_core("y", "x", "r.x")
    .pure()
)


def test_it_prints_as_the_python_that_makes_it() -> None:
    s = Schedule(pt.on("out").split("y", "yo", "yi", 32).parallel("yo"), pt.on("blur").compute_at("out", "yo"))
    assert str(s) == (
        "pt.Schedule(\n"
        '    pt.on("out").split("y", "yo", "yi", 32).parallel("yo"),\n'
        '    pt.on("blur").compute_at("out", "yo"),\n'
        ")"
    )
    assert str(Schedule()) == "pt.Schedule()"


def test_long_chains_take_a_line_per_directive() -> None:
    s = Schedule(EVERYTHING)
    assert '\n    .split("x", "xo", "xi", 8, tail="guard")\n' in str(s)
    assert eval(str(s), {"pt": pt}) == s


def test_objects_with_names_stand_for_their_names() -> None:
    y, x = coordinate("y"), coordinate("x")
    f = pt.on("f")
    assert pt.on(f).reorder(x, y).compute_at(f, y) == pt.on("f").reorder("x", "y").compute_at("f", "y")


def test_values_do_not_depend_on_where_they_were_written() -> None:
    first = pt.on("f").split("x", "xo", "xi", 8)
    second = pt.on("f").split("x", "xo", "xi", 8, tail="auto")
    assert first == second
    assert hash(first) == hash(second)
    assert first.directives[0].where != second.directives[0].where


def test_conditions_have_one_spelling() -> None:
    assert pt.on("f").specialize("(gain==1.0)") == pt.on("f").specialize(" gain == 1.0 ")


def test_replace_overrides_and_the_order_of_stages_has_no_meaning() -> None:
    f, g = pt.on("f").parallel("y"), pt.on("g").compute_root()
    s = Schedule(f, g)
    assert s == Schedule(g, f)
    assert hash(s) == hash(Schedule(g, f))
    assert s.replace(pt.on("f")) == Schedule(pt.on("f"), g)
    assert s.without("g") == Schedule(f)
    assert s.on("f") is f
    assert s.on("h") == pt.on("h")
    assert dict(s) == {"f": f, "g": g}


def test_saved_schedules_state_their_format() -> None:
    s = Schedule(pt.on("f").split("x", "xo", "xi", 8, tail="guard"))
    assert s.to_json() == '{"format": 1, "stages": {"f": [["split", "x", "xo", "xi", 8, {"tail": "guard"}]]}}'


@pytest.mark.parametrize("name", sorted(d.verb for d in EVERYTHING.directives))
def test_every_directive_shows_its_effect(name: str) -> None:
    doc = getattr(StageSchedule, name).__doc__
    assert "->" in doc or name in ("update", "pure")


names = st.from_regex(r"[a-z][a-z0-9_]{0,3}(\.[a-z0-9])?", fullmatch=True)
new = st.from_regex(r"[a-z][a-z0-9_]{0,3}", fullmatch=True)
factors = st.integers(1, 64)
tails = st.sampled_from(TAILS)
calls = st.one_of(
    st.tuples(st.just("split"), st.tuples(names, new, new, factors, tails)),
    st.tuples(st.just("tile"), st.tuples(names, names, new, new, new, new, factors, factors)),
    st.tuples(st.sampled_from(["reorder", "reorder_storage"]), st.lists(names, max_size=4).map(tuple)),
    st.tuples(st.sampled_from(["vectorize", "unroll", "parallel"]), st.tuples(names, factors, tails)),
    st.tuples(st.sampled_from(["vectorize", "unroll", "parallel"]), st.tuples(names)),
    st.tuples(st.just("fuse"), st.tuples(names, names, new)),
    st.tuples(st.just("partition"), st.tuples(names, st.sampled_from(PARTITIONS))),
    st.tuples(st.sampled_from(["compute_at", "store_at", "compute_with"]), st.tuples(names, names)),
    st.tuples(st.just("rfactor"), st.tuples(names, new)),
    st.tuples(st.just("strips"), st.tuples(names, new, st.integers(2, 64))),
    st.tuples(
        st.sampled_from(
            ["compute_root", "compute_inline", "store_root", "nontemporal", "pure", "atomic", "persistent"]
        ),
        st.just(()),
    ),
    st.tuples(st.just("clone_in"), st.tuples(names, st.sampled_from(["copy", "f_2"]), st.integers(0, 3))),
    st.tuples(st.just("copy_in"), st.tuples(names, st.just("near"), new, st.integers(0, 3))),
    st.tuples(st.just("copy_out"), st.tuples(st.just("far"))),
    st.tuples(st.sampled_from(["split_storage", "panels"]), st.tuples(names, new, new, factors)),
    st.tuples(st.just("store_in"), st.tuples(st.sampled_from(MEMORIES))),
    st.tuples(st.just("fold_storage"), st.tuples(names, factors)),
    st.tuples(
        st.just("registers_from"), st.tuples(names, factors) | st.tuples(names, factors, st.just(2), st.just(16))
    ),
    st.tuples(st.just("prefetch"), st.tuples(names, names, factors)),
    st.tuples(st.just("specialize"), st.tuples(st.sampled_from(["gain > 1", "img.shape[0] % 8 == 0 or not flag"]))),
    st.tuples(st.just("update"), st.tuples(st.integers(0, 3))),
    st.tuples(st.just("threads"), st.tuples(factors)),
    st.tuples(st.just("tensor_core"), st.tuples(names, names, names)),
    st.tuples(st.just("cache_loads"), st.tuples(names, st.sampled_from(CACHE_OPERATORS))),
)


def build(name: str, chain: list[tuple[str, tuple[object, ...]]]) -> StageSchedule:
    s = pt.on(name)
    for verb, args in chain:
        s = getattr(s, verb)(*args)
    return s


@given(st.dictionaries(names, st.lists(calls, max_size=8), max_size=3))
def test_printing_and_saving_lose_nothing(stages: dict[str, list[tuple[str, tuple[object, ...]]]]) -> None:
    s = Schedule(*(build(name, chain) for name, chain in stages.items()))
    assert eval(str(s), {"pt": pt}) == s
    assert Schedule.from_json(s.to_json()) == s
    assert hash(Schedule.from_json(s.to_json())) == hash(s)


def test_halves_of_reduction_loops_have_names() -> None:
    """Numbered ones too: `unroll("r.0", 4)` makes a loop "r.0_u", which other directives name."""
    chain = pt.on("total").update().unroll("r.0", 4).reorder("r.1", "r.0", "r.0_u")
    assert pt.Schedule.from_json(pt.Schedule(chain).to_json()) == pt.Schedule(chain)
