"""The chain of stencils: each stage compiled, for any size, as each is smaller than the one before."""

import torch

from ..gpu_worker import Inputs, Program, Shapes, Tensor

STAGES, RADIUS = 32, 2


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    """Sums wrap in signed integers as in unsigned ones, with which PyTorch computes little."""
    image, margin = inputs["img"].view(torch.int16), RADIUS * STAGES
    rows, columns = (torch.arange(-margin, n + margin, device=image.device).clamp(0, n - 1) for n in shapes[0])
    pad, stage = torch.compile(_padded, dynamic=False), torch.compile(_stencil, dynamic=True)

    def compute() -> Tensor:
        values = pad(image, rows, columns)
        for _ in range(STAGES):
            values = stage(values)
        return values.view(torch.uint16)

    return compute


def _padded(image: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return image[rows[:, None], columns[None, :]]


def _stencil(before: Tensor) -> Tensor:
    height, width = (n - 2 * RADIUS for n in before.shape)
    across = [before[:, k : k + width] * (k + 1) for k in range(5)]
    along = across[0] + across[1] + across[2] + across[3] + across[4]
    down = [along[k : k + height] * (k + 1) for k in range(5)]
    return down[0] + down[1] + down[2] + down[3] + down[4]
