"""Ratios, means and what else the table shows."""

from __future__ import annotations

import pytest

from pantile.bench.contender import Label
from pantile.bench.result import Result, ratio
from pantile.bench.table import brief, render

OURS, ALONE, RIVAL = Label("pantile", "expert", 2), Label("pantile", "expert", 1), Label("halide", "manual", 2)


def result(app: str, label: Label, ms: float, **extra: object) -> Result:
    return Result(app, label, ms, 0.25, 0.0, {"median_ms": ms, **extra})


RESULTS = [result("a", ALONE, 3.8), result("a", OURS, 2.0), result("a", RIVAL, 4.0), result("b", OURS, 9.0)]


def test_ratio_needs_both() -> None:
    assert ratio(RESULTS, "a", OURS, RIVAL) == 0.5
    assert ratio(RESULTS, "b", OURS, RIVAL) is None


def test_whole_text() -> None:
    lines = [" ".join(line.split()) for line in render(RESULTS).splitlines()]
    assert lines == [
        "app system schedule threads ms median compile s schedule s this/expert",
        "a pantile expert 1 3.80 3.80 0.25 0.00",
        "a pantile expert 2 2.00 2.00 0.25 0.00",
        "a halide manual 2 4.00 4.00 0.25 0.00 2.00",
        "",
        "b pantile expert 2 9.00 9.00 0.25 0.00",
        "",
        "their time over ours (> 1: ours is faster) threads apps geometric mean least",
        "halide manual / pantile expert 2 1 2.00 2.00 a",
        "",
        "a, pantile expert, 2 threads: 1.90 times as fast as one",
    ]


def test_bounds_and_differences() -> None:
    bounds = {"bound_ms": 1.0, "bound_by": "memory"}
    text = render([result("a", OURS, 2.0, **bounds), result("a", RIVAL, 4.0, **bounds, differs="it rounds")])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "app system schedule threads ms median compile s schedule s bound reached this/expert"
    assert lines[2] == "a halide* manual 2 4.00 4.00 0.25 0.00 1.00 mem 25 % 2.00"
    assert "* a, halide: it rounds" in lines


def test_predicted_times_have_a_column() -> None:
    lines = render([result("a", OURS, 2.0, predicted_ms=2.5), result("a", RIVAL, 4.0)]).splitlines()
    assert lines[0].split()[-2:] == ["predicted", "this/expert"]
    assert lines[1].split()[-1] == "2.50" and lines[2].split()[-1] == "2.00"


def test_the_worst_app_is_named() -> None:
    results = [result(app, who, ms) for app, ms in (("a", 4.0), ("b", 1.0)) for who, ms in ((OURS, 2.0), (RIVAL, ms))]
    assert "1.00  0.50 b" in render(results)


def test_one_line_per_app() -> None:
    assert brief(RESULTS[1:3]) == "a: pantile expert 2.00 ms, halide manual 4.00 ms"
    assert brief(RESULTS[:2]) == "a: pantile expert, 1 thread 3.80 ms, pantile expert, 2 threads 2.00 ms"


@pytest.mark.parametrize(
    ("ms", "text"), [(0.01234, "0.012"), (9.87, "9.87"), (12.34, "12.3"), (432.1, "432"), (4321.0, "4321")]
)
def test_digits(ms: float, text: str) -> None:
    assert f" {text} " in render([result("a", OURS, ms)])


def test_what_was_asked_for_besides() -> None:
    text = render([result("a", OURS, 2.0, overhead_us=12.34, memory_mb=123.6, passes_s={"inline": 0.001, "llvm": 0.2})])
    assert "a, pantile expert, 2 threads: a call takes 12.3 us beyond its kernel" in text
    assert "a, expert: compiling takes 124 MB at most" in text
    assert "a, expert: milliseconds per pass: inline 1.0, llvm 200.0" in text


def test_strategies_side_by_side() -> None:
    greedy, dp, theirs = Label("pantile", "greedy", 2), Label("pantile", "dp", 2), Label("halide", "adams2019", 2)
    times = {greedy: (4.0, 8.0), dp: (2.0, 16.0), OURS: (1.0, 8.0), theirs: (8.0, 8.0), RIVAL: (1.0, 4.0)}
    results = [result(app, who, ms[k]) for k, app in enumerate("ab") for who, ms in times.items()]
    lines = [" ".join(line.split()) for line in render([*results, result("c", dp, 3.0)]).splitlines()]
    start = lines.index("ms greedy dp expert halide adams2019 halide manual")
    assert lines[start + 1 : start + 6] == [
        "a 4.00 2.00 1.00 8.00 1.00",
        "b 8.00 16.0 8.00 8.00 4.00",
        "c 3.00",
        "this/best 1.41 1.26 0.71 2.00 0.50",
        "the best of halide's adams2019 over the best of our strategies: 2.00 on the geometric mean",
    ]


def test_the_best_of_several_rivals() -> None:
    greedy, numba, opencv = Label("pantile", "greedy", 2), Label("numba", "loops", 2), Label("opencv", "library", 2)
    plain = Label("pantile", "plain", 2)
    a = [result("a", plain, 8.0), result("a", greedy, 2.0), result("a", numba, 4.0), result("a", opencv, 6.0)]
    b = [result("b", plain, 1.0), result("b", greedy, 2.0), result("b", opencv, 2.0)]
    lines = [" ".join(line.split()) for line in render([*a, *b, result("c", plain, 1.0)]).splitlines()]
    start = lines.index("best rival / ours rival plain greedy best of ours")
    assert lines[start + 1 : start + 5] == [
        "a numba 0.50 2.00 2.00",
        "b opencv 2.00 1.00 2.00",
        "geometric mean 1.00 1.41 2.00",
        "least 0.50 1.00 2.00",
    ]
