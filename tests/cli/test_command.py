"""The command `pantile`, as a user meets it."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from pantile.apps import APPS
from pantile.cli import main
from pantile.cli.scenery import scenery
from pantile.cli.writing import write_png
from pantile.runtime.cuda import driver


def read_rgb(path: Path) -> np.ndarray:  # type: ignore[type-arg]
    with Image.open(path) as image:
        return np.asarray(image)


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PANTILE_CACHE_DIR", str(tmp_path / "cache"))


def test_demo_makes_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.png"
    assert main(["demo", "--size", "61x47", "--output", str(target)]) == 0
    told = capsys.readouterr().out
    assert "local contrast of a picture made up for it, 61 x 47 RGB" in told
    assert "stages    img_edge -> gray -> blur_y -> blur_x -> boost -> out" in told
    assert "MPixel/s" in told
    assert "times as long; largest difference: " in told
    assert f"wrote     {target}" in told
    before, after = scenery(47, 61), read_rgb(target)
    assert after.shape == before.shape
    assert after.std() > before.std(), "local contrast is higher"


def test_demo_takes_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    write_png(source, scenery(40, 50))
    assert main(["demo", "--input", str(source), "--output", str(target), "--compare", "--threads", "1"]) == 0
    assert "on 1 thread," in capsys.readouterr().out
    both = read_rgb(target)
    assert both.shape == (40, 100, 3)
    assert (both[:, :50] == scenery(40, 50)).all()


def test_a_missing_picture_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--input", str(tmp_path / "none.png")]) == 1
    assert capsys.readouterr().err.startswith("pantile demo: there is no file ")


def test_without_pillow_a_picture_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    write_png(tmp_path / "in.png", scenery(20, 30))
    assert main(["demo", "--input", str(tmp_path / "in.png")]) == 1
    assert "reading pictures needs Pillow: pip install 'pantile[images]'" in capsys.readouterr().err


def test_a_wrong_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["demo", "--size", "big"])
    assert "'big' is not a size; write it like 1536x1024" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("--size", "999999999x3", "'999999999x3' is too large; a side may have at most 16384 pixels"),
        ("--size", "9" * 5000 + "x3", "--size"),
        ("--amount", "nan", "'nan' is not an amount; write a number from 0 to 2"),
        ("--amount", "inf", "'inf' is not an amount"),
        ("--amount", "-0.5", "'-0.5' is not an amount"),
        ("--amount", "much", "'much' is not an amount"),
        ("--threads", "9" * 5000, "--threads"),
        ("--threads", "-1", "'-1' is not a whole number of at least 1"),
    ],
)
def test_numbers_that_are_none(option: str, value: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", f"{option}={value}"])
    assert text in capsys.readouterr().err


def test_png_checksums(tmp_path: Path) -> None:
    write_png(tmp_path / "a.png", np.zeros((2, 3, 3), np.uint8))
    data = (tmp_path / "a.png").read_bytes()[8:]
    while data:
        (size,) = struct.unpack(">I", data[:4])
        assert struct.pack(">I", zlib.crc32(data[4 : 8 + size])) == data[8 + size : 12 + size]
        data = data[12 + size :]


@pytest.mark.parametrize("app", ["blur", "harris"])
def test_show(app: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", app]) == 0
    told = capsys.readouterr().out
    assert "pt.Schedule(" in told
    assert f"kernel {app}(" in told


def test_show_explains_a_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "blur", "--schedule", "greedy", "--machine", "i7-6700"]) == 0
    told = capsys.readouterr().out
    assert "greedy for i7-6700: 1 group" in told
    assert "kernel blur(" in told


def test_show_and_explain_for_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    of_blur = ["blur", "--schedule", "autogpu", "--machine", "RTX 2080 Ti"]
    assert main(["show", *of_blur]) == 0
    told = capsys.readouterr().out
    assert "autogpu for RTX 2080 Ti: 1 group" in told and "block for blur_y.x_o" in told
    assert main(["explain", *of_blur]) == 0
    assert re.search(r"1 kernel, [\d.]+ µs predicted on RTX 2080 Ti", capsys.readouterr().out)


@pytest.mark.parametrize("what", ["schedule", "machine"])
def test_show_names_what_there_is(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "blur", f"--{what}", "gredy"]) == 2
    assert f"pantile show: there is no {what} 'gredy'" in capsys.readouterr().err


def test_show_names_the_apps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "sharpen"]) == 2
    told = capsys.readouterr().err
    assert "there is no app 'sharpen' (did you mean unsharp?); a pipeline of yours is FILE.py:NAME, and the ap" in told


def test_show_lists_the_apps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(APPS)


def test_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["demo", "--size", "30x20", "--output", str(tmp_path / "out.png")])
    capsys.readouterr()
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'cache'}: ")
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out.startswith("removed ")
    assert main(["cache", "--info"]) == 0
    assert ": 0 entries, 0.0 MB" in capsys.readouterr().out


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    told = capsys.readouterr().out
    for command in ("demo", "run", "show", "explain", "tune", "bench", "devices", "calibrate", "cache", "version"):
        assert f"\n    {command}" in told


def test_help_is_quick_to_start() -> None:
    code = "import sys; from pantile.cli import main; main(['version']); sys.exit('pantile.bench' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_demo_writes_what_the_suffix_says(tmp_path: Path) -> None:
    assert main(["demo", "--size", "61x47", "--output", str(tmp_path / "out.jpg")]) == 0
    with Image.open(tmp_path / "out.jpg") as image:
        assert (image.format, image.size) == ("JPEG", (61, 47))


def test_explain_tells_where_the_time_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "blur", "--size", "small"]) == 0
    told = capsys.readouterr().out
    assert "measured (best of 5 calls)" in told and "predicted" in told and "bound by" in told
    assert main(["explain", "blur", "--machine", "i7-6700", "--schedule", "greedy"]) == 0
    told = capsys.readouterr().out
    assert "greedy for i7-6700" in told and "measured" not in told
    assert main(["explain", "everyday", "--size", "small"]) == 2
    assert "everyday is a group of apps; name one, such as guided_filter" in capsys.readouterr().err


def test_without_a_gpu_devices_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_driver(_: int) -> None:
        raise RuntimeError("libcuda.so.1 cannot be opened")

    monkeypatch.setattr(driver, "_imported", lambda: SimpleNamespace(cuInit=no_driver))
    monkeypatch.setattr(driver, "_found", None)
    assert main(["devices"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("pantile devices: there is no NVIDIA driver on this machine"), told


def test_an_app_as_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "page.html"
    assert main(["explain", "blur", "--size", "small", "--html", str(target)]) == 0
    assert f"wrote {target}" in capsys.readouterr().out and "<svg" in target.read_text()
    assert main(["explain", "blur", "--html", str(tmp_path / "none" / "page.html")]) == 2
    assert "page.html cannot be written: its folder does not exist, or it is itself a folder" in capsys.readouterr().err
