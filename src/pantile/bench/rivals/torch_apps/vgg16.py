"""The layers of VGG-16, one after the other."""

import torch
from torch.nn.functional import conv2d, linear, max_pool2d, relu_, softmax

from ..library_worker import Array, Inputs, Outputs, Program
from ._tensors import images, weights

CONVOLUTIONS = (2, 2, 3, 3, 3)  # in each group


def prepare(inputs: Inputs, outputs: Outputs) -> Program:
    """All weights are in order beforehand."""
    del outputs
    source = images(inputs["img"])
    names = [[f"{k}_{j}" for j in range(1, count + 1)] for k, count in enumerate(CONVOLUTIONS, 1)]
    groups = [[(weights(inputs[f"filter{n}"]), torch.from_numpy(inputs[f"bias{n}"])) for n in g] for g in names]
    dense = [inputs[f"dense{k}"] for k in (1, 2, 3)]
    matrices = [torch.from_numpy(d.reshape(-1, d.shape[-1])).T.contiguous() for d in dense]
    biases = [torch.from_numpy(inputs[f"dense_bias{k}"]) for k in (1, 2, 3)]

    def compute() -> Array:
        features = source
        for group in groups:
            for filter, bias in group:
                features = relu_(conv2d(features, filter, bias, padding=1))
            features = max_pool2d(features, 2)
        features = features.permute(0, 2, 3, 1).reshape(len(features), -1)
        for k in (0, 1):
            features = relu_(linear(features, matrices[k], biases[k]))
        result: Array = softmax(linear(features, matrices[2], biases[2]), dim=1).numpy()
        return result

    return compute
