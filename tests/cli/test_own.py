"""Pipelines in files of the user's: `pantile run FILE.py:NAME`, and show, explain and bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pantile as pt
from pantile.cli import main
from pantile.cli.reading import read
from pantile.cli.scenery import scenery
from pantile.cli.writing import write

FILE = """
import pantile as pt
y, x, c, i = pt.vars("y x c i")

img, gain = pt.Input("img", "float32", ndim=3), pt.Param("gain", "float32")
bright = pt.Func("bright")
bright[y, x, c] = gain * img[y, x, c]
blur = pt.Pipeline(bright)

def of_grey(dtype):
    g, f = pt.Input("g", dtype, ndim=2), pt.Func("f")
    f[y, x] = g[y, x]
    return f

bytes_, words, wide, doubles, bits = (of_grey(t) for t in ("uint8", "uint16", "int32", "float64", "bool"))

def planes():
    p, inverse = pt.Input("p", "uint8", shape=(3, None, None)), pt.Func("inverse")
    inverse[c, y, x] = 255 - p[c, y, x]
    return pt.Pipeline(inverse)

def one_channel():
    p, same = pt.Input("p", "uint8", shape=(None, None, 1)), pt.Func("same")
    same[y, x, c] = p[y, x, c]
    return same

def opacity():
    p, same = pt.Input("p", "uint8", shape=(None, None, 4)), pt.Func("same")
    same[y, x, c] = p[y, x, c]
    return same

def five():
    p, same = pt.Input("p", "uint8", shape=(None, None, 5)), pt.Func("same")
    same[y, x, c] = p[y, x, c]
    return same

def two():
    p, first, counts = pt.Input("p", "uint8", ndim=3), pt.Func("first"), pt.Func("counts")
    first[y, x] = p[y, x, 0]
    r = pt.RDom((0, p.shape[0]), (0, p.shape[1]))
    counts[i] = 0
    counts[p[r[0], r[1], 0]] += 1
    return pt.Pipeline([first, counts], shape=[p.shape[:2], (256,)])

def added():
    a, b, s = pt.Input("a", "uint8", ndim=3), pt.Input("b", "uint8", ndim=3), pt.Func("s")
    s[y, x, c] = pt.saturating_add(a[y, x, c], b[y, x, c])
    return pt.Pipeline(s, shape=a.shape)

def weighted():
    a, k, s = pt.Input("a", "uint8", ndim=2), pt.Input("k", "float32", ndim=1), pt.Func("s")
    s[y, x] = a[y, x] * k[0] / 255
    return s

def mean():
    f, s, t = pt.Input("f", "uint8", ndim=4), pt.Func("s"), pt.RDom((0, 2))
    s[y, x, c] = pt.cast("uint8", pt.sum(pt.cast("int32", f[t[0], y, x, c]), over=t) // 2)
    return pt.Pipeline(s, shape=f.shape[1:])

def narrower():
    g, f = pt.Input("g", "uint8", ndim=2), pt.Func("f")
    f[y, x] = g[y, x + 2]
    return pt.Pipeline(f, shape=(g.shape[0], g.shape[1] - 2))

def by_hand():
    return pt.Pipeline(bytes_, schedule=pt.Schedule(pt.on("f").split("y", "strip", "row", 8)))
"""
PHOTO = scenery(40, 50)
GREY = np.rint(PHOTO @ [0.299, 0.587, 0.114])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _folder(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the command runs, with a file of pipelines and some pictures."""
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(cache))
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(FILE)
    Image.fromarray(PHOTO).save("photo.png")
    Image.fromarray(np.dstack([PHOTO, PHOTO[..., 0]])).save("clear.png")
    Image.fromarray(PHOTO[..., 1]).save("grey.png")
    write(Path("deep.png"), PHOTO.astype(np.uint16) * 257 - 3, np.dtype(np.uint16))


def run(name: str, *arguments: str) -> int:
    return main(["run", f"mine.py:{name}", *arguments])


def output(path: str = "out.png") -> np.ndarray[Any, Any]:
    return read(Path(path)).values


def test_the_example_of_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("blur", "--input", "img=photo.png", "--param", "gain=0.5", "--output", "half.png") == 0
    told = capsys.readouterr().out
    assert "read      photo.png, 50 x 40, RGB -> img: float32[40, 50, 3] in 0 .. 1\n" in told
    assert f"wrote     {Path('half.png').resolve()}, 50 x 40\n" in told
    assert np.abs(output("half.png") - PHOTO / 2).max() <= 0.5


def test_sixteen_bits_stay_sixteen_bits() -> None:
    assert run("blur", "--input", "deep.png", "--param", "gain=1") == 0
    np.testing.assert_array_equal(output(), PHOTO.astype(np.uint16) * 257 - 3)


def test_floats_stay_floats() -> None:
    values = np.float32([[[-0.1, 0.2, 3.25]]])
    np.save("in.npy", values)
    assert run("blur", "--input", "in.npy", "--param", "gain=2", "--output", "out.npy") == 0
    np.testing.assert_array_equal(output("out.npy"), 2 * values)


@pytest.mark.parametrize(
    ("name", "expected"), [("bytes_", GREY), ("words", 257 * (PHOTO @ [0.299, 0.587, 0.114])), ("wide", GREY)]
)
def test_an_input_of_two_axes_takes_grey(name: str, expected: np.ndarray[Any, Any]) -> None:
    assert run(name, "--input", "photo.png", "--output", "out.npy") == 0
    assert np.abs(output("out.npy") - expected).max() <= 0.51
    assert run(name, "--input", "grey.png", "--output", "out.npy") == 0
    np.testing.assert_array_equal(output("out.npy"), PHOTO[..., 1].astype(int) * (257 if name == "words" else 1))


def test_an_input_of_three_axes_takes_colours() -> None:
    for source in ("photo.png", "clear.png", "grey.png"):
        assert run("blur", "--input", source, "--param", "gain=1") == 0
        np.testing.assert_array_equal(output(), PHOTO[..., [1, 1, 1]] if source == "grey.png" else PHOTO)


def test_channels_as_the_input_declares_them() -> None:
    assert run("planes", "--input", "photo.png") == 0
    np.testing.assert_array_equal(output(), 255 - PHOTO)
    assert run("one_channel", "--input", "photo.png") == 0
    np.testing.assert_array_equal(output()[..., 0], GREY)
    assert run("opacity", "--input", "photo.png") == 0
    np.testing.assert_array_equal(output(), np.dstack([PHOTO, np.full((40, 50), 255)]))
    assert run("opacity", "--input", "clear.png") == 0
    np.testing.assert_array_equal(output(), np.dstack([PHOTO, PHOTO[..., 0]]))


def test_a_mask() -> None:
    Image.fromarray(PHOTO[..., 0] > 100).save("mask.png")
    assert run("bits", "--input", "mask.png") == 0
    np.testing.assert_array_equal(output()[..., 0], 255 * (PHOTO[..., 0] > 100))


def test_several_inputs() -> None:
    twice = np.minimum(2 * PHOTO.astype(int), 255)
    assert run("added", "--input", "photo.png", "--input", "photo.png") == 0
    np.testing.assert_array_equal(output(), twice)
    assert run("added", "--input", "b=grey.png", "--input", "photo.png") == 0
    np.testing.assert_array_equal(output(), np.minimum(PHOTO.astype(int) + PHOTO[..., [1]], 255))


def test_several_pictures_for_one_input() -> None:
    assert run("mean", "--input", "photo.png", "--input", "grey.png") == 0
    np.testing.assert_array_equal(output(), (PHOTO.astype(int) + PHOTO[..., [1]]) // 2)


def test_weights_come_as_an_array_and_do_not_count_as_a_picture() -> None:
    np.save("k.npy", np.float32([0.5]))
    assert run("weighted", "--input", "grey.png", "--input", "k=k.npy") == 0
    values = output()
    assert values.dtype == np.uint8
    assert np.abs(values[..., 0] - PHOTO[..., 1] / 2).max() <= 0.5


def test_several_outputs() -> None:
    counts = np.bincount(PHOTO[..., 0].ravel(), minlength=256)
    assert run("two", "--input", "photo.png", "--output", "a.png", "--output", "b.npy") == 0
    np.testing.assert_array_equal(output("a.png")[..., 0], PHOTO[..., 0])
    np.testing.assert_array_equal(output("b.npy"), counts)
    assert run("two", "--input", "photo.png", "--output", "all.npy") == 0
    np.testing.assert_array_equal(output("all-first.npy"), PHOTO[..., 0])
    np.testing.assert_array_equal(output("all-counts.npy"), counts)
    assert run("two", "--input", "photo.png", "--output", "counts=c.npy") == 0
    np.testing.assert_array_equal(output("c.npy"), counts)
    assert not Path("out.png").exists()


def test_a_schedule_by_name() -> None:
    assert run("by_hand", "--input", "grey.png", "--schedule", "naive") == 0
    np.testing.assert_array_equal(output()[..., 0], PHOTO[..., 1])


@pytest.mark.parametrize(
    ("name", "arguments", "status", "message"),
    [
        ("blur", ["photo.png"], 2, "bright needs --param gain=<float32>"),
        ("bleu", ["photo.png"], 2, "mine.py has no 'bleu' (did you mean blur?); it has the pipeline blur; the Funcs"),
        ("added", ["photo.png"], 2, "it needs --input b=PICTURE"),
        ("bytes_", ["photo.png", "grey.png"], 2, "it takes g, and grey.png is one more"),
        ("bytes_", ["deep.png"], 1, "deep.png holds uint16, and g takes uint8, which would lose precision"),
        ("bits", ["photo.png"], 1, "photo.png holds uint8, and g takes bool, which would lose precision"),
        ("weighted", ["grey.png", "photo.png"], 1, "k is an array of 1 axis of float32, which is not a picture; save"),
        ("five", ["photo.png"], 1, "p has 5 channels, and pictures have 1, 3 or 4; save an array by np.save"),
        ("wide", ["photo.png"], 1, "out.png holds uint8 or uint16, and what is written is int32; cast it, such as by"),
        ("two", ["photo.png"], 1, "out-counts.png cannot hold an array of 1 axis; write it to a .npy file, such as ou"),
        ("narrower", ["one.png"], 1, "output 'f' (from "),
        ("narrower", ["two.png"], 1, "out.png is not written: the result has no pixels (its shape is (1, 0))"),
        ("added", ["photo.png", "one.png"], 1, "Func 's' (defined at "),
        ("mean", ["photo.png", "one.png"], 1, "one.png and photo.png are not of the same size, and f takes both"),
    ],
)
def test_what_does_not_fit_is_told(
    name: str, arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(PHOTO[:1, :1]).save("one.png")
    Image.fromarray(PHOTO[:1, :2]).save("two.png")
    assert run(name, *(a for file in arguments for a in ("--input", file))) == status
    told = capsys.readouterr().err
    assert told.startswith(f"pantile run: {message}") and told.count("\n") == 1, told
    assert str(Path(pt.__file__).parent) not in told, "the lines that are named are the user's"


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["a.png", "b.npy", "c.png"], "it gives first and counts, and --output c.png is one more"),
        (["first=a.npy", "counts=a.npy"], "two outputs would be written to the same file; name another --output"),
    ],
)
def test_outputs_that_are_too_many(outputs: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("two", "--input", "photo.png", *(a for o in outputs for a in ("--output", o))) == 2
    assert capsys.readouterr().err == f"pantile run: {message}\n"


def test_show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PANTILE_SCHEDULE", raising=False)
    assert main(["show", "mine.py:planes"]) == 0
    told = capsys.readouterr().out
    assert "kernel inverse(" in told and "auto for " in told and "p 3x1080x1920" in told
    assert main(["show", "mine.py:by_hand"]) == 0
    told = capsys.readouterr().out
    assert '"strip"' in told and "auto" not in told
    assert main(["show", "mine.py:bytes_", "--schedule", "greedy", "--shape", "g=300x400"]) == 0
    assert "g 300x400" in capsys.readouterr().out
    assert main(["show", "mine.py:by_hand", "--schedule", "plain"]) == 0
    assert '"strip"' not in capsys.readouterr().out


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "mine.py:blur", "--shape", "40x50x3", "--param", "gain=2"]) == 0
    told = capsys.readouterr().out
    assert "bright, img 40x50x3" in told and "measured (best of 5 calls)" in told
    assert main(["explain", "mine.py:planes"]) == 2
    assert "how large are its arrays? Write --shape p=3x1080x1920, or as large as" in capsys.readouterr().err


def test_a_call_with_pictures_is_shown_and_explained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PANTILE_SCHEDULE", raising=False)
    height, width, _ = PHOTO.shape
    assert main(["show", "mine.py:blur", "--input", "img=photo.png", "--param", "gain=2"]) == 0
    assert f"img {height}x{width}x3" in capsys.readouterr().out
    assert main(["explain", "mine.py:blur", "--input", "photo.png", "--param", "gain=2"]) == 0
    told = capsys.readouterr().out
    assert f"bright, img {height}x{width}x3" in told and "measured (best of 5 calls)" in told
    assert main(["explain", "grayscale", "--input", "photo.png"]) == 0
    assert f"{height}x{width}x3" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["show", "explain"])
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["mine.py:blur", "--input", "photo.png", "--shape", "4x5x3"],
            2,
            "pictures determine the shapes of the arrays; omit --shape or --input",
        ),
        (["mine.py:blur", "--input", "photo.png", "--input", "b.png"], 2, "it takes img, and b.png is one more"),
        (["mine.py:blur", "--input", "none.png"], 1, "there is no file none.png"),
    ],
)
def test_pictures_that_do_not_fit_a_call_are_refused(
    command: str, arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *arguments, "--param", "gain=2"]) == status
    assert capsys.readouterr().err == f"pantile {command}: {message}\n"


def test_bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PANTILE_SCHEDULE", raising=False)
    shape = ["--shape", "40x50x3", "--param", "gain=2"]
    assert main(["bench", "mine.py:blur", *shape, "--schedule", "expert,plain", "--check"]) == 0
    told = capsys.readouterr().err
    assert "mine.py:blur: pantile auto" in told and "pantile plain" in told
    assert told.count("agrees with the reference") == 2
    assert main(["bench", "mine.py:by_hand", "--shape", "40x50", "--repeat", "1"]) == 0
    told = capsys.readouterr().out
    assert "size: as stated" in told and "mine.py:by_hand  pantile  expert" in told
    assert main(["bench", "mine.py:blur", "--shape", "40x50x3"]) == 2
    assert capsys.readouterr().err == "pantile bench: bright needs --param gain=<float32>\n"


def test_a_file_may_be_called_as_a_module_of_pythons_own() -> None:
    import random

    Path("random.py").write_text(FILE)
    assert main(["run", "random.py:bytes_", "--input", "grey.png"]) == 0
    import sys

    assert sys.modules["random"] is random
