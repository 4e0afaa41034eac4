"""How many channels stages have."""

from __future__ import annotations

from typing import Any

import pantile as pt
from pantile.analysis.channels import channels

Y, X, C = pt.vars("y x c")
RGB = pt.Input("img", "uint8", shape=(None, None, 3))


def found(out: pt.Func, shape: Any = None) -> dict[str, int]:
    return channels(pt.Pipeline(out, shape).graph)


def test_channels_go_from_consumers_to_producers() -> None:
    one, two = pt.Func("one"), pt.Func("two")
    one[Y, X, C] = RGB[Y, X, C] + 1
    two[Y, X, C] = one[Y + 1, X, C]
    assert found(two, (10, 10, 3)) == {"one": 3, "two": 3}
    assert found(two, (10, 10, 5)) == {}
    assert found(two, (10, RGB.shape[0], RGB.shape[1])) == {}


def test_clamped_and_chosen_channels() -> None:
    one, gray = pt.Func("one"), pt.Func("gray")
    one[Y, X, C] = RGB[Y, X, C] + 1
    gray[Y, X] = pt.edge(RGB)[Y, X, 1] + one[Y, X, 0] + one[Y, X, 2]
    assert found(gray, (10, 10)) == {"img_edge": 1, "one": 3}


def test_reductions_over_channels() -> None:
    one, total = pt.Func("one"), pt.Func("total")
    k = pt.RDom((0, 2), name="k")
    one[Y, X, C] = RGB[Y, X, C] + 1
    total[Y, X] = pt.sum(one[Y, X, k[0] + 1], over=k)
    assert found(total, (10, 10)) == {"one": 2}


def test_updates_and_data_count() -> None:
    one, out = pt.Func("one"), pt.Func("out")
    one[Y, X, C] = RGB[Y, X, C]
    one[Y, X, 3] = one[Y, X, 0]
    out[Y, X, C] = one[Y, X, C]
    assert found(out, (10, 10, 3)) == {"one": 4, "out": 3}
    far = pt.Func("far")
    far[Y, X, C] = one[Y, X, RGB[Y, X, 0]]
    assert found(far, (10, 10, 3)) == {"far": 3}


def test_what_has_fewer_axes_has_no_channels() -> None:
    f = pt.Func("f")
    f[Y, X] = RGB[Y, X, 0]
    assert found(f, (10, 3)) == {}
