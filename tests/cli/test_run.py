"""`pantile run`: apps on pictures, and what it says when something is wrong."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pantile.apps import APPS, GROUPS
from pantile.cli import main
from pantile.cli.scenery import scenery

from ..apps.short import app_and_case

PHOTOS = [name for name, app in APPS.items() if app.photo is not None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures to work on."""
    folder = tmp_path_factory.mktemp("pictures")
    Image.fromarray(scenery(130, 150)).save(folder / "photo.png")
    (folder / "letter.png").write_text("Dear reader")
    return folder


@pytest.fixture
def photo(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the photo, in the folder that the command runs in. Code that tests of apps compile serves here, too."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "photo.png", "photo.png")
    return Path("photo.png")


def run(*arguments: str) -> int:
    return main(["run", *arguments])


def output() -> np.ndarray:  # type: ignore[type-arg]
    with Image.open("out.png") as image:
        return np.asarray(image)


@pytest.mark.parametrize("name", PHOTOS)
def test_every_app_makes_a_picture(name: str, photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(APPS, name, app_and_case(name)[0])
    described = APPS[name].photo
    assert described is not None
    if name == "lucas_kanade":  # nothing moves between a picture and itself
        Image.fromarray(np.roll(scenery(130, 150), 1, axis=1)).save("moved.png")
    files = {n: [photo] * (5 if layout.frames else 1) for n, layout in described.takes.items()}
    files |= {"after": [Path("moved.png")]} if name == "lucas_kanade" else {}
    inputs = [argument for n, paths in files.items() for path in paths for argument in ("--input", f"{n}={path}")]
    assert run(name, *inputs, "--schedule", "plain") == 0
    result = output()
    assert result.dtype == np.uint8 and (result.ndim == 2 or result.shape[2] == 3)
    assert result.std() > 1, "there is something to see"


def test_every_app_that_maps_a_picture_to_a_picture_does() -> None:
    """What is left out has matrices, sparse matrices, physical quantities, or weights that somebody must train."""
    others = set(APPS) - set(PHOTOS)
    assert not others & {name for names in GROUPS.values() for name in names}
    assert others == {
        "copy", "mask", "tp", "tpm", "matmul", "matmul_half", "gemm", "mm2", "mm3", "doitgen", "trmm", "syrk", "syr2k",
        "covariance", "gemver", "equake", "minifluxdiv", "vdsr", "vgg16", "conv_layer",
        *(name for name in APPS if name.startswith(("multigrid_", "conv_bn_relu"))),
    }  # fmt: skip


def test_it_tells_what_it_did(photo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("unsharp", "--input", str(photo), "--threads", "1") == 0
    told = capsys.readouterr().out
    assert "read      photo.png, 150 x 130, RGB -> img: float32[3, 130, 150] in 0 .. 1\n" in told
    assert "code      compiled in " in told or "code      loaded from the compile cache in " in told
    assert " ms on 1 thread\n" in told
    assert f"wrote     {Path('out.png').resolve()}, 150 x 130\n" in told
    assert output().shape == (130, 150, 3)


def test_an_app_for_one_channel_runs_on_each(photo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("blur", "--input", str(photo)) == 0
    assert "3 channels one after the other" in capsys.readouterr().out
    near = scenery(130, 150)[1:-1, 1:-1].astype(int)
    assert np.abs(output() - near).mean() < 12


def test_params(photo: Path) -> None:
    run("iir_blur", "--input", str(photo), "--param", "alpha=1.0")
    same = output()
    run("iir_blur", "--input", str(photo), "--param", "alpha=0.05")
    assert np.abs(same.astype(int) - scenery(130, 150)).max() <= 1
    assert output().std() < same.std()


def test_other_formats(photo: Path) -> None:
    assert run("unsharp", "--input", str(photo), "--output", "out.jpg") == 0
    with Image.open("out.jpg") as image:
        assert image.size == (150, 130)


def test_grey_and_opacity(photo: Path) -> None:
    colours = scenery(40, 50)
    Image.fromarray(colours[..., 0]).save("grey.png")
    Image.fromarray(np.dstack([colours, colours[..., 0]])).save("opacity.png")
    assert run("unsharp", "--input", "grey.png") == 0
    assert np.ptp(output(), axis=2).max() <= 1
    assert run("unsharp", "--input", "opacity.png") == 0
    assert output().shape == (40, 50, 3)


def test_a_camera_held_upright(photo: Path) -> None:
    with Image.open(photo) as image:
        turned = image.getexif()
        turned[0x0112] = 6
        image.save("turned.jpg", exif=turned)
    assert run("unsharp", "--input", "turned.jpg") == 0
    assert output().shape == (150, 130, 3)


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    told = capsys.readouterr().out
    assert all(f"\n  {name} " in told for name in PHOTOS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["unsharpp"], "there is no app 'unsharpp' (did you mean unsharp?); a pipeline of yours is FILE.py:NAME, and "),
        (["copy"], "copy does not work on pictures; these do:\n"),
        (["unsharp"], "it needs --input PICTURE\n"),
        (["iir_blur"], "it needs --input PICTURE (and it has params: alpha=0.5)\n"),
        (["unsharp", "--input", "a.png", "--input", "b.png"], "it takes img, and b.png is one more\n"),
        (["iir_blur", "--param", "alfa=1"], "iir_blur has no param 'alfa' (did you mean alpha?); there are alpha\n"),
        (["unsharp", "--param", "alpha=1"], "unsharp has no param 'alpha'; it has none\n"),
        (["iir_blur", "--param", "alpha"], "--param alpha has no value; write it like --param alpha=1\n"),
        (["iir_blur", "--param", "alpha=high"], "--param alpha=high: 'high' is not a float32\n"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err.startswith(f"pantile run: {message}")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("none.png", "out.png", "there is no file none.png"),
        ("letter.png", "out.png", "letter.png is not a picture that Pillow can read"),
        (".", "out.png", ". is a folder, not a picture"),
        ("photo.png", "./photo.png", "photo.png is an input; it would be overwritten, so name another --output"),
        ("photo.png", "nowhere/out.png", "there is no folder nowhere to write out.png to"),
        ("photo.png", "out.txt", "out.txt has no suffix of a picture that can be written, such as .png, .jpg or .tif"),
        ("photo.png", ".", ". is a folder; name a file in it, such as out.png"),
    ],
)
def test_wrong_files(
    source: str, target: str, message: str, folder: Path, photo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(folder / "letter.png", "letter.png")
    before = photo.read_bytes()
    assert run("unsharp", "--input", source, "--output", target) == 1
    assert capsys.readouterr().err == f"pantile run: {message}\n"
    assert photo.read_bytes() == before


def test_without_pillow(photo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert run("unsharp", "--input", str(photo)) == 1
    assert capsys.readouterr().err == "pantile run: reading pictures needs Pillow: pip install 'pantile[images]'\n"
