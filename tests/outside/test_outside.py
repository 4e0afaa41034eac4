"""Pipelines outside the suite compute under `auto`, scheduled for large pictures, what they mean, at small ones."""

from __future__ import annotations

import numpy as np
import pytest

import pantile as pt
from pantile.apps import App
from pantile.bench.agreement import disagreement

from ..long import LONG
from .pipelines import OUTSIDE

SLOW = ("pyramid", "guided_filter", "lucas_kanade", "demosaic")  # to compile; and these run elsewhere, too


@pytest.mark.parametrize("app", [a for a in OUTSIDE if LONG or a.name not in SLOW], ids=lambda app: app.name)
def test_under_auto(app: App) -> None:
    machine = pt.machine.named("neoverse-n1")
    auto = pt.autoschedule.Auto(steps=300 if LONG else 60)
    p = app.build().with_schedule(auto, estimates=app.sizes["paper"], machine=machine)
    shapes = {name: (34, 41, *shape[2:]) for name, shape in app.sizes["small"].items()}
    inputs = app.random(shapes)
    expected = p.reference(**inputs)
    assert disagreement([p(**inputs)], [expected], p.rounding, app.tolerance, app.off_by) is None


def test_tone_mapping_keeps_the_order_of_greys() -> None:
    img = np.repeat(np.exp(np.linspace(-6, 6, 60, dtype=np.float32))[None, :, None], 40, 0).repeat(3, 2)
    out = next(a for a in OUTSIDE if a.name == "tone_mapping").build().reference(img=img)
    row = out[20, :, 0].astype(int)
    assert (np.diff(row) >= 0).all() and row[0] < 30 and row[-1] > 200
