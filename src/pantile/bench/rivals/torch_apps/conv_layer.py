"""A convolution and ReLU."""

import torch
from torch.nn.functional import conv2d, relu_

from ..library_worker import Inputs, Outputs, Program
from ._tensors import array, images, weights


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """Channels innermost, as the app has them."""
    del outputs
    source, filter, bias = images(inputs["img"]), weights(inputs["filter"]), torch.from_numpy(inputs["bias"])
    return lambda: array(relu_(conv2d(source, filter, bias)))
