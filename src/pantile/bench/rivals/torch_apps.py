"""Apps as calls of PyTorch, in the layout it is fastest on; weights are brought into it beforehand.

PyTorch orders axes as image, channel, row, column, whatever their order in memory; ours have channels innermost.
"""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import conv2d, linear, max_pool2d, relu_, softmax

from .library_worker import Array, Inputs, Outputs, Program

Tensor = Any
EPSILON = 1e-5
CONVOLUTIONS = (2, 2, 3, 3, 3)  # in each group


def set_threads(threads: int) -> None:
    """How many it runs on."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


def _images(array: Array) -> Tensor:
    """A tensor in PyTorch's order of dimensions that shares the array's memory."""
    return torch.from_numpy(array).permute(0, 3, 1, 2)


def _weights(array: Array) -> Tensor:
    """[ci, ky, kx, co] in the order that convolutions are fastest with."""
    return torch.from_numpy(array).permute(3, 0, 1, 2).contiguous(memory_format=torch.channels_last)


def _array(images: Tensor) -> Array:
    """Channels innermost again."""
    result: Array = images.permute(0, 2, 3, 1).numpy()
    return result


def conv_bn_relu(inputs: Inputs, outputs: Outputs) -> Program:
    """Of any window and stride. The normalization goes into weights and bias beforehand, as one does for inference."""
    source, filter = _images(inputs["img"]), inputs["filter"]
    scale = inputs["gamma"] / np.sqrt(inputs["variance"] + np.float32(EPSILON))
    folded, bias = _weights(filter * scale), torch.from_numpy(inputs["beta"] - inputs["mean"] * scale)
    stride = -(-inputs["img"].shape[1] // outputs[0].shape[1])
    margin = filter.shape[1] // 2
    return lambda: _array(relu_(conv2d(source, folded, bias, stride, margin)))


conv_bn_relu_1x1 = conv_bn_relu
conv_bn_relu_1x1_stride2 = conv_bn_relu
conv_bn_relu_7x7 = conv_bn_relu
conv_bn_relu_stride2 = conv_bn_relu


def conv_layer(inputs: Inputs, outputs: Outputs) -> Program:
    """A convolution and ReLU. Channels innermost, as the app has them."""
    del outputs
    source, filter, bias = _images(inputs["img"]), _weights(inputs["filter"]), torch.from_numpy(inputs["bias"])
    return lambda: _array(relu_(conv2d(source, filter, bias)))


def matmul(inputs: Inputs, outputs: Outputs) -> Program:
    """The matrix product."""
    a, b = torch.from_numpy(inputs["a"]), torch.from_numpy(inputs["b"])
    (out,) = outputs
    result = torch.from_numpy(out)

    def compute() -> None:
        torch.mm(a, b, out=result)

    return compute


def vdsr(inputs: Inputs, outputs: Outputs) -> Program:
    """The layers of VDSR, one after the other."""
    del outputs
    source = _images(inputs["img"])
    filters = [_weights(inputs["first"]), *(_weights(filter) for filter in inputs["filters"])]
    biases = [torch.from_numpy(bias) for bias in inputs["biases"]]
    last, last_bias = _weights(inputs["last"]), torch.from_numpy(inputs["last_bias"])

    def compute() -> Array:
        features = source
        for filter, bias in zip(filters, biases, strict=True):
            features = relu_(conv2d(features, filter, bias, padding=1))
        return _array(source + conv2d(features, last, last_bias, padding=1))

    return compute


def vgg16(inputs: Inputs, outputs: Outputs) -> Program:
    """The layers of VGG-16, one after the other."""
    del outputs
    source = _images(inputs["img"])
    names = [[f"{k}_{j}" for j in range(1, count + 1)] for k, count in enumerate(CONVOLUTIONS, 1)]
    groups = [[(_weights(inputs[f"filter{n}"]), torch.from_numpy(inputs[f"bias{n}"])) for n in g] for g in names]
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
