"""`pantile tune`, as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pantile as pt
from pantile import tuning_results
from pantile.bench.tuning import Tuning
from pantile.cli import main

FILE = """
import pantile as pt
y, x = pt.vars("y x")
img, gain = pt.Input("img", "float32", 2), pt.Param("gain", "float32")
f = pt.Func("f")
f[y, x] = img[y, x] * gain
p = pt.Pipeline(f)
def made(): return p
def broken(): return 1 // 0
number = 5
"""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "cache").mkdir(mode=0o700)
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "mine.py").write_text(FILE)
    (tmp_path / "bad.py").write_text("import pantile\n\nimport nothing_of_that_name\n")
    (tmp_path / "funcs.py").write_text(FILE.split("p = pt")[0] + "def g(): return f\ndef h(radius): return f\n")
    (tmp_path / "nothing.py").write_text("number = 5\n")
    (tmp_path / "text.py").write_text("y x = 3\n")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_winner_is_kept_and_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "mine.py:p", "--shape", "40x50", "--param", "gain=2", "--seconds", "0.2"]) == 0
    told = capsys.readouterr().out
    assert "mine.py:p: " in told and "schedules in" in told and "  auto " in told and "  tuned " in told
    assert 'schedule="tuned" uses it' in told and len(tuning_results.files()) == 1
    assert main(["cache"]) == 0 and "1 tuned schedule" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0 and "and 1 tuned schedule" in capsys.readouterr().out
    assert not tuning_results.files()


def test_ctrl_c_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(self: Tuning) -> None:
        raise KeyboardInterrupt

    asked = ["tune", "mine.py:made", "--shape", "img=40x50", "--param", "gain=2"]
    monkeypatch.setattr(Tuning, "_climb", interrupted)
    assert main([*asked, "--seconds", "0.1"]) == 130
    assert "; stopped, the best so far is saved" in capsys.readouterr().out and len(tuning_results.files()) == 1
    monkeypatch.setattr(Tuning, "run", interrupted)
    assert main(asked) == 130
    assert "stopped before anything was measured; nothing is saved" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["blurr"], "there is no app 'blurr' (did you mean blur?); a pipeline of yours is FILE.py:NAME"),
        (["blur", "--size", "huge"], "blur has no size 'huge'; there are small, paper"),
        (["none.py:p"], "there is no file none.py; write FILE.py:NAME, or the name of an app"),
        (["mine.py:q"], "mine.py has no 'q'; it has the pipeline p; the Func f; the functions made, broken"),
        (["mine.py:number"], "mine.py:number is of type int, not a pt.Pipeline, a pt.Func or a function that "),
        (["funcs.py"], "funcs.py: say which pipeline, like funcs.py:f; it has the Func f; the function g"),
        (["nothing.py"], "nothing.py: say which pipeline, like nothing.py:blur; it has no pipelines, Funcs or functio"),
        (["mine.py:broken"], "mine.py:broken() does not make a pipeline: ZeroDivisionError: "),
        (["bad.py:p"], "bad.py cannot be imported: ModuleNotFoundError: No module named 'nothing_of_that_name' (li"),
        (["text.py"], "text.py cannot be imported: SyntaxError: "),
        (["leaves.py:p"], "leaves.py cannot be imported: SystemExit: 3"),
        (["mine.py"], "mine.py: how large are its arrays? Write --shape img=1080x1920, or as large as yours are"),
        (["mine.py:p", "--shape", "imag=4x5"], "mine.py:p has no input 'imag' (did you mean img?); it takes img"),
        (["mine.py:p", "--shape", "4xx5"], "'4xx5' is no shape; write it in NumPy's order, like 1080x1920x3"),
        (["mine.py:p", "--shape", "0x5"], "'0x5' is no shape"),
        (["mine.py:p", "--shape", "4x5x3"], "--shape 4x5x3: img has 2 axes, and this shape 3"),
        (["mine.py:p", "--shape", "999999x999999"], "is too large"),
        (["mine.py:p", "--shape", "4x5"], "f needs --param gain=<float32>"),
        (["mine.py:p", "--shape", "4x5", "--param", "gain=x"], "--param gain=x: 'x' is not a float32"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_mistakes_are_told_in_a_line(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *arguments]) == 2
    told = capsys.readouterr().err
    assert text in told and told.count("\n") <= 2, told


def test_what_cannot_be_kept_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", "/dev/null")
    assert main(["tune", "mine.py:p"]) == 1
    assert "pantile tune: nothing can be saved: there is no folder" in capsys.readouterr().err


def test_seconds_that_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["tune", "blur", "--seconds", "-1"])
    assert "'-1' is not a number of seconds, such as 20" in capsys.readouterr().err


def test_shapes_that_inputs_declare_need_not_be_said(folder: Path) -> None:
    (folder / "declared.py").write_text(FILE.replace('"float32", 2)', '"float32", shape=(40, 50))'))
    assert main(["tune", "declared.py", "--param", "gain=2", "--seconds", "0.1"]) == 0
    assert len(tuning_results.files()) == 1


def test_extents_that_inputs_declare_are_not_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "declared.py").write_text(FILE.replace('"float32", 2)', '"float32", shape=(3, None))'))
    assert main(["tune", "declared.py"]) == 2
    assert "Write --shape img=3x1080, or as large as yours are" in capsys.readouterr().err


def test_estimates_stand_for_shapes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sized.py").write_text(
        FILE.replace("pt.Pipeline(f)", 'pt.Pipeline(f, estimates={"img": (40, 50), "gain": 2.0}, schedule="naive")')
    )
    assert main(["tune", "sized.py", "--seconds", "0.1"]) == 0
    assert len(tuning_results.files()) == 1 and isinstance(pt.get_num_threads(), int)
