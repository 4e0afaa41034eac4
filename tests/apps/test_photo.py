"""Pictures to arrays and back."""

from __future__ import annotations

import numpy as np
import pytest

from pantile.apps import Layout
from pantile.cli.scenery import scenery

COLOURS = scenery(6, 8).astype(np.float32) / 255
GREY, CLEAR = COLOURS[..., :1], np.dstack([COLOURS, COLOURS[..., 0]])


def shown(layout: Layout) -> np.ndarray:  # type: ignore[type-arg]
    """The colours there and back, as bytes."""
    return np.rint(255 * layout.levels(layout.arrays(COLOURS))).astype(np.uint8)


@pytest.mark.parametrize("picture", [COLOURS, GREY, CLEAR])
@pytest.mark.parametrize(
    ("channels", "shape"),
    [
        ("rgb", (3, 6, 8)),
        ("rgba", (4, 6, 8)),
        ("grey", (6, 8)),
        ("plane", (1, 6, 8)),
        ("grbg", (6, 8)),
        ("rggb", (6, 8)),
    ],
)
def test_shapes_and_types(channels: str, shape: tuple[int, ...], picture: np.ndarray) -> None:  # type: ignore[type-arg]
    (array,) = Layout(channels, "uint16", white=1023).arrays(picture)
    assert (array.shape, array.dtype) == (shape, np.uint16)
    assert array.flags.c_contiguous and 500 < array.max() <= 1023


@pytest.mark.parametrize(("dtype", "white"), [("float32", 1.0), ("uint8", 255), ("uint16", 65535), ("uint16", 1023)])
@pytest.mark.parametrize("channels", ["rgb", "each"])
def test_there_and_back(channels: str, dtype: str, white: float) -> None:
    layout = Layout(channels, dtype, white)
    np.testing.assert_array_equal(shown(layout), scenery(6, 8))


def test_exponents_are_undone() -> None:
    layout = Layout("rgb", "float32", white=1023, black=25, exponent=0.5)
    (counts,) = layout.arrays(np.full((2, 2, 3), 0.5, np.float32))
    assert counts[0, 0, 0] == pytest.approx(25 + 998 / 4)
    np.testing.assert_array_equal(shown(layout), scenery(6, 8))


def test_interleaved_channels_there_and_back() -> None:
    layout = Layout("rgb", "uint8", 255, interleaved=True)
    np.testing.assert_array_equal(layout.arrays(COLOURS)[0], scenery(6, 8))
    np.testing.assert_array_equal(shown(layout), scenery(6, 8))


def test_the_other_order_of_a_mosaic() -> None:
    red, green, blue = (np.full((4, 4), v, np.float32) for v in (0.1, 0.2, 0.3))
    (raw,) = Layout("rggb", "uint16", white=1000).arrays(np.dstack([red, green, blue]))
    np.testing.assert_array_equal(raw[:2], [[100, 200, 100, 200], [200, 300, 200, 300]])


def test_vectors_are_red_and_green() -> None:
    flow = np.zeros((2, 2, 2), np.float32)
    flow[0, 0] = 4, -4
    levels = Layout("rgb", "float32", white=4, black=-4, interleaved=True).levels([flow])
    np.testing.assert_array_equal(levels[0], [[1, 0, 0.5], [0.5, 0.5, 0.5]])


def test_a_mosaic_has_one_colour_per_pixel() -> None:
    red, green, blue = (np.full((4, 4), v, np.float32) for v in (0.1, 0.2, 0.3))
    (raw,) = Layout("grbg", "uint16", white=1000).arrays(np.dstack([red, green, blue]))
    np.testing.assert_array_equal(raw[:2], [[200, 100, 200, 100], [300, 200, 300, 200]])


def test_what_a_sensor_wrote_is_taken_as_it_is() -> None:
    sensor = np.array([[17, 1023], [512, 0]], np.uint16)
    (raw,) = Layout("grbg", "uint16", white=1023).arrays(sensor[..., None].astype(np.float32) / 65535)
    np.testing.assert_array_equal(raw, sensor)


def test_values_without_a_scale() -> None:
    response = np.linspace(-1e-6, 1e-6, 1000, dtype=np.float32).reshape(10, 100)
    levels = Layout("grey", "float32", white=None).levels([response])
    assert levels.shape == (10, 100, 1)
    assert levels.min() < 0 and levels.max() == pytest.approx(1, abs=0.01)
