"""Looking at a pipeline: its text, schedule, loops and code; compiling ahead; how long compiling took."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt

from .examples import blur, picture, scaled


def test_text() -> None:
    assert repr(blur()) == "<Pipeline blur(img: uint16[:, :]) -> down: uint16[:, :]>"
    assert repr(scaled()) == "<Pipeline scaled(img: float32[:, :], gain: float32) -> scaled: float32[:, :]>"
    assert str(blur()).splitlines() == [
        "pipeline blur",
        "  input img: uint16[img.shape[0], img.shape[1]]",
        "  across[y, x]: uint16 = (img[y, x] + img[y, x + 1] + img[y, x + 2])//3",
        "  down[y, x]: uint16 = (across[y, x] + across[y + 1, x] + across[y + 2, x])//3",
        "  output down: uint16[img.shape[0] - 2, img.shape[1] - 2]",
    ]


def test_the_schedule_is_complete_and_reproduces_itself() -> None:
    p = blur()
    assert set(p.schedule) == {"across", "down"}
    assert eval(repr(p.schedule), {"pt": pt}) == p.schedule == p.with_schedule(p.schedule).schedule


def test_another_schedule_gives_the_same_result() -> None:
    p, pixels = blur(), picture(30, 40)
    q = p.with_schedule(pt.Schedule(pt.on("across").compute_inline(), pt.on("down").vectorize("x", 4)))
    assert q.graph is p.graph and q.schedule != p.schedule and q.options == p.options
    assert np.array_equal(q(img=pixels), p(img=pixels))


def test_a_schedule_that_cannot_be_honoured_is_refused_at_once() -> None:
    with pytest.raises(pt.UserError, match="the pipeline has no stage 'acros'; did you mean 'across'"):
        blur(schedule=pt.Schedule(pt.on("acros").compute_root()))
    with pytest.raises(pt.UserError, match="the pipeline has no stage 'up'"):
        blur().with_schedule(pt.Schedule(pt.on("up").compute_root()))


def test_loops_and_code() -> None:
    p = blur()
    assert "parallel for down.y" in p.loops()
    assert 'define i32 @"pantile.blur"(ptr' in p.llvm()
    assert "pantile.blur" in p.asm()


@pytest.mark.parametrize(
    ("name", "text"), [("x86-64-v3", "%ymm"), ("x86-64-v4", "%zmm"), ("aarch64", "v0"), ("riscv64", "vsetivli")]
)
def test_code_for_other_targets_is_scheduled_for_them(name: str, text: str) -> None:
    assert text in scaled("int32").asm(name)
    assert scaled("int32", target=name).asm() == scaled("int32").asm(name)


def test_compiling_ahead() -> None:
    p = blur().compile(img=(200, 300))
    assert p.timings
    kinds = dict(p._calls._kinds)
    p(img=picture(200, 300))
    assert p._calls._kinds == kinds


def test_compiling_ahead_without_arguments_is_for_large_arrays() -> None:
    p = blur(strict=True).compile()
    ahead = p.timings
    p(img=picture(200, 300))
    assert ahead and p.timings == ahead
    p(img=picture(5, 6))
    assert "llvm" in p.timings  # too small for what that relies on


def test_timings_name_the_passes_and_can_be_printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PANTILE_TIMINGS", "1")
    p = scaled("int16").compile()
    assert {"key", "cache", "inline", "vectorize", "emit", "llvm", "load"} <= set(p.timings)
    text = capfd.readouterr().err
    assert text.startswith("compiled scaled in ") and " ms  vectorize\n" in text


def test_equal_pipelines_share_their_code() -> None:
    pixels = picture(20, 20)
    p, q = blur(), blur()
    p(img=pixels)
    q(img=pixels)
    assert set(q.timings) == {"key"}


def test_compiling_for_arrays_of_which_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PANTILE_SCHEDULE", raising=False)
    p = blur()
    assert p.compile(img=(2, 9)) is p
    assert p(img=picture(2, 9)).shape == (0, 7)


def test_who_finds_the_schedule() -> None:
    assert blur(schedule="greedy").strategy == pt.autoschedule.Greedy()
    assert blur(schedule=pt.Schedule(pt.on("across").compute_inline())).strategy is None


def test_usual_pictures_have_the_extents_that_inputs_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PANTILE_SCHEDULE", raising=False)
    c, y, x = pt.vars("c y x")
    planes, f = pt.Input("planes", "float32", shape=(3, None, None)), pt.Func("f")
    f[c, y, x] = planes[c, y, x] + 1
    assert "planes 3x1080x1920" in pt.Pipeline(f).explain()
