"""All kinds of random Funcs, grouped by the focus of a test."""

from __future__ import annotations

from collections.abc import Callable

from .bins import bins
from .folded_places import folded_place
from .places import constant_table, read_at_places
from .recurrences import recurrence
from .reductions import matrix_product, narrow_product, over_image, reduction
from .stages import (
    bounded,
    iterated,
    look_up_table,
    mosaic,
    multi_valued,
    one_of_several,
    pixels,
    pointwise,
    stencil,
)
from .updates import histogram, updated
from .windows import large_window, separable_taps, separable_weights, window
from .writer import Writer

KINDS: dict[str, list[Callable[[Writer], None]]] = {
    "pure": [
        pointwise, pointwise, pixels, stencil, stencil, mosaic, look_up_table, bounded, multi_valued, one_of_several,
        constant_table, read_at_places,
    ],
    "reductions": [reduction, reduction, over_image, matrix_product, stencil, pointwise],
    "windows": [*[window] * 3, separable_weights, separable_taps, large_window, pointwise],
    "updates": [updated, updated, updated, histogram, pointwise],
    "all": [
        *[pointwise] * 3, pixels, *[stencil] * 2, mosaic, multi_valued, one_of_several, look_up_table, bounded,
        iterated,
        *[reduction] * 2, over_image, matrix_product, *[updated] * 2, histogram,
        constant_table, read_at_places, window, separable_weights, separable_taps,
    ],
}  # fmt: skip
# Kinds that are in none of the above groups, so that the cases of existing seeds do not change.
RARE_KINDS: dict[str, list[Callable[[Writer], None]]] = {
    "places": [folded_place, folded_place, stencil],
    "narrow products": [narrow_product, narrow_product, narrow_product, pointwise],
    "bins": [bins, bins, bins, pointwise, stencil],
    "recurrences": [recurrence, recurrence, recurrence, stencil, pointwise],
}
