"""The corner response, compiled."""

from ..gpu_worker import Inputs, Program, Shapes, Tensor
from ._compiled import compiled, luma


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    """One image to one image, three pixels smaller on every side."""
    del shapes
    return compiled(_harris, inputs["img"])


def _harris(image: Tensor) -> Tensor:
    gray = luma(image)[1:-1, 1:-1]
    height, width = gray.shape

    def g(dy: int, dx: int) -> Tensor:
        return gray[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]

    ix = (g(-1, 1) - g(-1, -1)) / 12 + (g(0, 1) - g(0, -1)) * (2 / 12) + (g(1, 1) - g(1, -1)) / 12
    iy = (g(1, -1) - g(-1, -1)) / 12 + (g(1, 0) - g(-1, 0)) * (2 / 12) + (g(1, 1) - g(-1, 1)) / 12
    sxx, syy, sxy = _window(ix * ix), _window(iy * iy), _window(ix * iy)
    trace = sxx + syy
    return sxx * syy - sxy * sxy - 0.04 * trace * trace


def _window(values: Tensor) -> Tensor:
    """Sums of three by three."""
    across = values[:, :-2] + values[:, 1:-1] + values[:, 2:]
    return across[:-2] + across[1:-1] + across[2:]
