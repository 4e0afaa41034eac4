"""Layer after layer, in double precision."""

from __future__ import annotations

import numpy as np

from pantile.apps.vgg16 import GROUPS, Groups, shapes

from ..case import Array, Case
from .conv_layer import same_size


def vgg16(img: Array, groups: Groups = GROUPS, **weights: Array) -> Array:
    """Probabilities of the classes."""
    features = img.astype(np.float64)
    for k, (_, convolutions) in enumerate(groups, 1):
        for j in range(1, convolutions + 1):
            features = np.maximum(same_size(features, weights[f"filter{k}_{j}"]) + weights[f"bias{k}_{j}"], 0)
        n, height, width, channels = features.shape
        pairs = features[:, : height // 2 * 2, : width // 2 * 2].reshape(n, height // 2, 2, width // 2, 2, channels)
        features = pairs.max(axis=(2, 4))
    for k in (1, 2, 3):
        matrix = weights[f"dense{k}"].reshape(-1, weights[f"dense{k}"].shape[-1])
        features = features.reshape(n, -1) @ matrix.astype(np.float64) + weights[f"dense_bias{k}"]
        features = np.maximum(features, 0) if k < 3 else features
    power = np.exp(features - features.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


CASES = {
    "vgg16": Case(
        vgg16,
        odd=(shapes(1, 32, 32), shapes(1, 33, 35), shapes(3, 32, 47)),
        large=shapes(2, 35, 66),
        tolerance=1e-3,
        reference=False,
        slow=True,
    ),
}
