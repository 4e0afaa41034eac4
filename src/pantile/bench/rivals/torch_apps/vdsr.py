"""The layers of VDSR, one after the other."""

import torch
from torch.nn.functional import conv2d, relu_

from ..library_worker import Array, Inputs, Outputs, Program
from ._tensors import array, images, weights


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """All weights are in order beforehand."""
    del outputs
    source = images(inputs["img"])
    filters = [weights(inputs["first"]), *(weights(filter) for filter in inputs["filters"])]
    biases = [torch.from_numpy(bias) for bias in inputs["biases"]]
    last, last_bias = weights(inputs["last"]), torch.from_numpy(inputs["last_bias"])

    def compute() -> Array:
        features = source
        for filter, bias in zip(filters, biases, strict=True):
            features = relu_(conv2d(features, filter, bias, padding=1))
        return array(source + conv2d(features, last, last_bias, padding=1))

    return compute
