"""Arrays of ours as PyTorch's tensors.

PyTorch orders axes as image, channel, row, column, whatever their order in memory; ours have channels innermost.
"""

from typing import Any

import torch

from ..library_worker import Array

Tensor = Any


def images(array: Array) -> Tensor:
    """A tensor in PyTorch's order of dimensions that shares the array's memory."""
    return torch.from_numpy(array).permute(0, 3, 1, 2)


def weights(array: Array) -> Tensor:
    """[ci, ky, kx, co] in the order that convolutions are fastest with."""
    return torch.from_numpy(array).permute(3, 0, 1, 2).contiguous(memory_format=torch.channels_last)


def array(images: Tensor) -> Array:
    """Channels innermost again."""
    result: Array = images.permute(0, 2, 3, 1).numpy()
    return result
