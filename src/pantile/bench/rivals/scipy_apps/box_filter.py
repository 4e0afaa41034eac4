"""SciPy's uniform filter."""

from collections.abc import Callable, Mapping

import numpy as np
from scipy import ndimage

from ..library_worker import Array


def prepare(inputs: Mapping[str, Array], outputs: tuple[Array, ...]) -> Callable[[], Array]:
    """What bytes become on the way is float32, and rounded at the end."""
    img, (out,) = inputs["img"], outputs

    def compute() -> Array:
        found = ndimage.uniform_filter(img, (5, 5, 1), output=np.float32, mode="nearest")
        np.rint(found, out=found)
        out[...] = found
        return out

    return compute
