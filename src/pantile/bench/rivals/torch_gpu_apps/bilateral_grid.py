"""The bilateral grid: pixels are added up in cells by atomic additions; blurs and reading back are compiled."""

import torch
from torch.nn.functional import pad

from ..gpu_worker import Inputs, Program, Shapes, Tensor

CELL, BINS = 8, 10
BEYOND = 2  # cells, and values of brightness, that a blur reaches
DEPTH = BINS + 2 + 2 * BEYOND


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    image, (height, width) = inputs["img"], shapes[0]
    rows, columns = (-(-n // CELL) + 1 + 2 * BEYOND for n in (height, width))
    before = BEYOND * CELL + CELL // 2
    margins = (before, columns * CELL - width - before, before, rows * CELL - height - before)
    place, blur, read = (torch.compile(f, dynamic=False, fullgraph=True) for f in (_placed, _blurred, _read_back))

    def compute() -> Tensor:
        value, cell = place(pad(image[None, None], margins, mode="replicate")[0, 0])
        sums = torch.zeros(2, rows * columns * DEPTH, device=image.device)
        sums[0].index_add_(0, cell, value)
        sums[1].index_add_(0, cell, torch.ones_like(value))
        return read(blur(sums.view(2, rows, columns, DEPTH)), image)

    return compute


def _placed(padded: Tensor) -> tuple[Tensor, Tensor]:
    """Of each pixel, its value and the number of its cell."""
    value = padded.clamp(0, 1)
    level = (value * BINS + 0.5).to(torch.int32) + BEYOND
    y, x = (torch.arange(n, device=padded.device, dtype=torch.int32) // CELL for n in padded.shape)
    columns = padded.shape[1] // CELL
    return value.flatten(), ((y[:, None] * columns + x[None, :]) * DEPTH + level).flatten()


def _blurred(grid: Tensor) -> Tensor:
    for axis in (3, 2, 1):
        n = grid.shape[axis] - 2 * BEYOND
        taps = [grid.narrow(axis, k, n) for k in range(5)]
        grid = taps[0] + taps[4] + 4 * (taps[1] + taps[3]) + 6 * taps[2]
    return grid


def _read_back(grid: Tensor, image: Tensor) -> Tensor:
    depth = image.clamp(0, 1) * BINS
    near = depth.to(torch.int32)
    above = depth - near
    y, x = (torch.arange(n, device=image.device, dtype=torch.int32) for n in image.shape)
    y, x = y[:, None], x[None, :]
    part_y, part_x = (y % CELL) / CELL, (x % CELL) / CELL

    def at(channel: int, i: int, j: int, k: int) -> Tensor:
        return grid[channel, y // CELL + i, x // CELL + j, near + k]

    def along(channel: int) -> Tensor:
        layers = []
        for k in (0, 1):
            lines = [at(channel, i, 0, k) * (1 - part_x) + at(channel, i, 1, k) * part_x for i in (0, 1)]
            layers.append(lines[0] * (1 - part_y) + lines[1] * part_y)
        return layers[0] * (1 - above) + layers[1] * above

    return along(0) / along(1)
