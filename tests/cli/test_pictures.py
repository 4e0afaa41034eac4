"""Pictures keep their depth, from file to file, or are refused in a sentence."""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pantile.cli import main
from pantile.cli.reading import read
from pantile.cli.scenery import scenery
from pantile.cli.writing import check_place, type_in_file, write, write_png

BYTES, WORDS, FLOATS = np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def pixels(dtype: str, channels: int, height: int = 5, width: int = 7) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    shape = (height, width, channels)
    return rng.random(shape, "f4") if dtype == "float32" else rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_png_keeps_all_bits(dtype: str, channels: int) -> None:
    picture = pixels(dtype, channels)
    write_png(Path("a.png"), picture)
    got = read(Path("a.png")).values
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, picture)


def test_sixteen_bits_of_grey_with_opacity() -> None:
    picture = pixels("uint16", 2)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in picture)
    header = struct.pack(">II", 7, 5) + bytes([16, 4, 0, 0, 0])
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    Path("a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
    got = read(Path("a.png")).values
    np.testing.assert_array_equal(got, np.stack([picture[..., k] for k in (0, 0, 0, 1)], axis=-1))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("suffix", "dtype"),
    [("png", "uint8"), ("png", "uint16"), *((s, d) for s in ("tif", "npy") for d in ("uint8", "uint16", "float32"))],
)
def test_there_and_back(suffix: str, dtype: str, channels: int) -> None:
    if suffix == "tif" and dtype != "uint8" and channels == 3:
        pytest.importorskip("tifffile")
    picture, path = pixels(dtype, channels), Path(f"a.{suffix}")
    kind = type_in_file(path, picture.dtype, 2 if channels == 1 else 3, picture.dtype)
    write(path, picture[..., 0] if channels == 1 else picture, kind)
    got = read(path).values
    assert got.dtype == dtype
    np.testing.assert_array_equal(got.reshape(picture.shape), picture)


@pytest.mark.parametrize("kind", ["palette", "1", "LA", "CMYK", "RGBA", "one pixel"])
def test_kinds_of_pictures(kind: str) -> None:
    image = Image.fromarray(scenery(1, 1) if kind == "one pixel" else scenery(40, 50))
    path = Path("a.jpg" if kind == "CMYK" else "a.png")
    (image if kind == "one pixel" else image.convert("P" if kind == "palette" else kind)).save(path)
    picture = read(path)
    assert picture.values.dtype == np.uint8
    assert picture.values.shape[2] == {"1": 1, "LA": 4, "RGBA": 4}.get(kind, 3)
    assert picture.levels.min() >= 0 and picture.levels.max() <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_cameras_that_were_turned(orientation: int) -> None:
    image = Image.fromarray(scenery(16, 32))
    exif = image.getexif()
    exif[0x0112] = orientation
    image.save("a.png", exif=exif)
    from PIL import ImageOps

    np.testing.assert_array_equal(read(Path("a.png")).values, np.asarray(ImageOps.exif_transpose(Image.open("a.png"))))


def test_deep_netpbm_is_not_read_as_bytes() -> None:
    Path("a.ppm").write_bytes(b"P6 # deep\n2 1\n65535\n" + bytes(12))
    with pytest.raises(OSError, match=r"a\.ppm has 16 bits per channel, of which Pillow reads 8; convert it to PNG"):
        read(Path("a.ppm"))
    Path("a.pgm").write_bytes(b"P5\n2 1\n65535\n" + bytes([1, 2, 3, 4]))
    np.testing.assert_array_equal(read(Path("a.pgm")).values[0, :, 0], [0x0102, 0x0304])


def test_without_tifffile_deep_colours_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("tifffile")
    library.imwrite("a.tif", pixels("uint16", 3), photometric="rgb")
    library.imwrite("b.tif", pixels("float32", 3), photometric="rgb")
    assert read(Path("b.tif")).values.dtype == np.float32
    monkeypatch.setitem(sys.modules, "tifffile", None)
    for name in ("a.tif", "b.tif"):
        with pytest.raises(OSError, match="has pixels that Pillow cannot read; install tifffile"):
            read(Path(name))
    with pytest.raises(OSError, match=r"out\.tif holds uint8, and what is written is uint16; install tifffile"):
        type_in_file(Path("out.tif"), WORDS, 3, WORDS)


def test_white_may_be_zero() -> None:
    library = pytest.importorskip("tifffile")
    picture = pixels("uint16", 1)
    library.imwrite("a.tif", 65535 - picture[..., 0], photometric="miniswhite")
    np.testing.assert_array_equal(read(Path("a.tif")).values, picture)


def test_planes_of_a_tiff() -> None:
    library = pytest.importorskip("tifffile")
    picture = pixels("uint16", 3)
    library.imwrite("a.tif", np.moveaxis(picture, -1, 0), photometric="rgb", planarconfig="separate")
    np.testing.assert_array_equal(read(Path("a.tif")).values, picture)


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "webp", "gif", "npy"])
def test_files_that_end_early_or_are_damaged(suffix: str) -> None:
    """Whatever libraries raise, it is a sentence that names the file."""
    path, rng = Path(f"a.{suffix}"), np.random.default_rng(0)
    write(path, scenery(40, 50), BYTES)
    whole = path.read_bytes()
    for trial in range(40):
        broken = bytearray(whole[: rng.integers(0, len(whole))] if trial % 2 else whole)
        for place in rng.integers(0, len(broken) or 1, 10 if broken else 0):
            broken[place] = rng.integers(0, 256)
        path.write_bytes(broken)
        assert what_is_wrong(path).startswith(f"a.{suffix} ")


def what_is_wrong(path: Path) -> str:
    try:
        return f"{path} is a picture of {read(path).values.shape}"
    except OSError as error:
        return str(error)


def header_only(width: int, height: int) -> bytes:
    """A PNG that says to be so large."""
    header = struct.pack(">II", width, height) + bytes([8, 2, 0, 0, 0])
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1000))), (b"IEND", b"")]
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bomb.png", header_only(60000, 60000), "bomb.png is too large: Image size (3600000000 pixels) exceeds limit"),
        ("letter.png", b"Dear reader", "letter.png is not a picture that Pillow can read"),
        ("empty.png", b"", "empty.png is not a picture that Pillow can read"),
        ("empty.npy", b"", "empty.npy cannot be read as an array of NumPy: No data left in file"),
        ("letter.npy", b"Dear reader", "letter.npy cannot be read as an array of NumPy: "),
        ("early.png", header_only(100, 100), "early.png cannot be read: image file is truncated"),
    ],
)
@pytest.mark.parametrize("command", ["demo", "run"])
def test_broken_files(
    command: str, name: str, content: bytes, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(content)
    arguments = ["demo"] if command == "demo" else ["run", "unsharp"]
    assert main([*arguments, "--input", name]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"pantile {command}: {message}") and told.count("\n") == 1, told


def test_arrays_that_are_no_pictures() -> None:
    np.save("names.npy", np.array(["a", "b"]))
    np.save("long.npy", np.zeros((2, 3, 4, 5), np.float32))
    with pytest.raises(OSError, match=r"names\.npy does not hold an array of numbers"):
        read(Path("names.npy"))
    with pytest.raises(OSError, match=r"long.npy holds float32\[2, 3, 4, 5\], which is not a picture"):
        _ = read(Path("long.npy")).levels
    np.save("none.npy", np.zeros((0, 3), np.float32))
    with pytest.raises(OSError, match=r"none\.npy has no pixels"):
        read(Path("none.npy"))


@pytest.mark.parametrize(
    ("target", "dtype", "ndim", "deepest", "message"),
    [
        ("a.jpg", "uint16", 2, WORDS, "a.jpg holds uint8, and what is written is uint16; name a .png, .tif or .npy"),
        ("a.jpg", "float32", 2, WORDS, "a.jpg holds uint8, and the pictures that are read are uint16; name a .png"),
        ("a.png", "float32", 2, FLOATS, "a.png holds uint8 or uint16, and what is written is float32; name a .tif or"),
        ("a.png", "int32", 2, BYTES, "a.png holds uint8 or uint16, and what is written is int32; cast it, such as by"),
        ("a.png", "uint8", 1, BYTES, "a.png cannot hold an array of 1 axis; write it to a .npy file, such as a.npy"),
    ],
)
def test_what_a_file_cannot_hold(target: str, dtype: str, ndim: int, deepest: np.dtype[Any], message: str) -> None:
    with pytest.raises(OSError) as raised:
        type_in_file(Path(target), np.dtype(dtype), ndim, deepest)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((6, 5, 2), "a.png cannot hold an array of shape (6, 5, 2): a picture has 1, 3 or 4 channels"),
        ((4, 0), "a.png is not written: the result has no pixels (its shape is (4, 0))"),
    ],
)
def test_shapes_that_are_no_pictures(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(OSError) as raised:
        write(Path("a.png"), np.zeros(shape, np.uint8), BYTES)
    assert str(raised.value).startswith(message)


def test_floats_become_as_many_bits_as_there_were() -> None:
    levels = np.array([[-0.5, 0, 0.25, 1, 1.5, np.nan]], np.float32)
    told = write(Path("a.png"), levels, WORDS)
    assert told[1:] == ["some values are not numbers (NaN), and are written as 0"]
    np.testing.assert_array_equal(read(Path("a.png")).values[0, :, 0], [0, 0, 16384, 65535, 65535, 0])
    assert "values from 0 to 255 are cut off at 0 and 1" in write(Path("b.png"), levels[:, 1:3] * 1020, BYTES)[1]


def test_a_place_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(OSError, match=r"out\.png cannot be written: permission denied"):
        check_place(Path("out.png"), [])


def test_opacity_in_a_jpeg() -> None:
    with pytest.raises(OSError, match=r"a\.jpg cannot be written: cannot write mode RGBA as JPEG"):
        write(Path("a.jpg"), pixels("uint8", 4), BYTES)


@pytest.mark.parametrize(
    ("app", "picture", "target", "expected"),
    [
        ("unsharp", "uint16", "out.png", WORDS),
        ("unsharp", "uint8", "out.png", BYTES),
        ("unsharp", "float32", "out.npy", FLOATS),
        ("local_laplacian", "uint16", "out.png", WORDS),
        ("local_laplacian", "uint8", "out.png", BYTES),
    ],
)
def test_apps_keep_the_depth(app: str, picture: str, target: str, expected: np.dtype[Any]) -> None:
    colours = pixels(picture, 3, 130, 150)
    source = Path("in.npy" if picture == "float32" else "in.png")
    write(source, colours, colours.dtype)
    assert main(["run", app, "--input", str(source), "--output", target, "--schedule", "plain"]) == 0
    values = read(Path(target)).values
    assert (values.dtype, values.shape) == (expected, (130, 150, 3))
    assert len(np.unique(values)) > 256 or expected == BYTES, "none of the bits was lost on the way"


@pytest.mark.parametrize(
    ("app", "dtype", "message"),
    [
        ("median", "uint16", "in.npy holds uint16, and median takes uint8, which would lose precision; convert"),
        ("blur", "uint16", "in.npy holds uint16, and blur takes uint16 from 0 to 4095, which would lose precision"),
        ("median", "float32", "in.npy holds float32, and median takes uint8, which would lose precision"),
        ("unsharp", "float64", "in.npy holds float64, and unsharp takes float32, which would lose precision; save ar"),
        ("demo", "uint16", "in.npy holds uint16, and the demo takes uint8, which would lose precision"),
    ],
)
def test_apps_refuse_what_they_cannot_hold(
    app: str, dtype: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save("in.npy", np.ones((40, 50, 3), dtype) * np.dtype(dtype).type(5000 if dtype == "uint16" else 0.5))
    arguments = ["demo"] if app == "demo" else ["run", app, "--output", "out.npy"]
    assert main([*arguments, "--input", "in.npy"]) == 1
    assert capsys.readouterr().err.startswith(f"pantile {arguments[0]}: {message}")
