"""A convolution and ReLU, channels innermost."""

from collections.abc import Callable, Mapping

import torch
from torch.nn.functional import conv2d, relu_

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """PyTorch orders axes as image, channel, row, column, whatever their order in memory."""
    del outputs
    images = torch.from_numpy(inputs["img"]).permute(0, 3, 1, 2)
    weights = torch.from_numpy(inputs["filter"]).permute(3, 0, 1, 2).contiguous(memory_format=torch.channels_last)
    bias = torch.from_numpy(inputs["bias"])
    return lambda: relu_(conv2d(images, weights, bias)).permute(0, 2, 3, 1).numpy()
