"""A convolution and ReLU."""

from collections.abc import Callable, Mapping

import torch
from torch.nn.functional import conv2d, relu_

from ..library_worker import Array
from ._tensors import array, images, weights


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """Channels innermost, as the app has them."""
    del outputs
    source, filter, bias = images(inputs["img"]), weights(inputs["filter"]), torch.from_numpy(inputs["bias"])
    return lambda: array(relu_(conv2d(source, filter, bias)))
