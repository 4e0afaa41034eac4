"""The maximum over a disc: a table of maxima over powers of two of rows, and of 53 columns made of it, compiled."""

import math

import torch
from torch.nn.functional import pad

from ..gpu_worker import Inputs, Program, Shapes, Tensor

RADIUS = 26
HEIGHTS = [sum(dx * dx + k * k < (RADIUS + 0.25) ** 2 for k in range(RADIUS + 1)) for dx in range(RADIUS + 1)]
MARGIN = max(HEIGHTS)


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    image, (_, height, width) = inputs["img"], shapes[0]
    discs = torch.compile(_discs, dynamic=False, fullgraph=True)

    def compute() -> Tensor:
        rows = [pad(image[None], (RADIUS, RADIUS, MARGIN, MARGIN), mode="replicate")[0]]
        while 2 ** len(rows) <= 2 * MARGIN + 1:
            half = 2 ** (len(rows) - 1)
            rows.append(torch.maximum(rows[-1][:, :-half], rows[-1][:, half:]))
        return discs(rows, height, width)

    return compute


def _discs(rows: list[Tensor], height: int, width: int) -> Tensor:
    def column(dx: int, at: int) -> Tensor:
        """Of the disc at a distance, for pixels so many columns to the right."""
        reach = HEIGHTS[dx]
        k = int(math.log2(2 * reach + 1))
        table, top, low = rows[k], MARGIN - reach, MARGIN + reach + 1 - 2**k
        across = slice(RADIUS + at, RADIUS + at + width)
        return torch.maximum(table[:, top : top + height, across], table[:, low : low + height, across])

    result = column(0, 0)
    for dx in range(1, RADIUS + 1):
        result = torch.maximum(result, torch.maximum(column(dx, -dx), column(dx, dx)))
    return result
