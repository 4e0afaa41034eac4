"""Arrays of somebody else's classes: what counts is their memory, not what their attributes say of it.

Each array here is a small part of a larger one, so that whatever is written beside it can be seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pantile as pt
from pantile.errors import here
from pantile.expr.nodes import Load, const, coordinate
from pantile.expr.types import INDEX, dtype
from pantile.graph.nodes import Definition, Graph, InputInfo, Output, Stage

from .examples import Array, X, Y, scaled

SCHEDULES = ["plain", "auto"]
TARGETS = ["host", "cuda-sim"]


AWAY = np.zeros((50, 50), "float32")


class Boasting(np.ndarray[Any, Any]):
    """Says that it is larger than it is, in every way that there is."""

    shape = property(lambda self: (50, 50))  # type: ignore[assignment]
    strides = property(lambda self: (200, 4))  # type: ignore[assignment]
    size = property(lambda self: 2500)  # type: ignore[assignment]
    nbytes = property(lambda self: 10000)  # type: ignore[assignment]
    ctypes = property(lambda self: AWAY.ctypes)  # type: ignore[assignment]

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.zeros((50, 50), "float32")

    def __len__(self) -> int:
        return 50


class Writeable(np.ndarray[Any, Any]):
    """Says that it may be written to."""

    @property
    def flags(self) -> Any:
        return np.zeros(1).flags


class Elsewhere(np.ndarray[Any, Any]):
    """Shares no memory with anything, if one believes it."""

    def __array_function__(self, *_: Any) -> Any:
        return False


class Narrow(np.ndarray[Any, Any]):
    """Says that its elements are of another type."""

    dtype = property(lambda self: np.dtype("float32"))  # type: ignore[assignment]
    itemsize = property(lambda self: 4)  # type: ignore[assignment]


def part(kind: type, dtype: str = "float32") -> tuple[Array, Any]:
    """A large array of ones, and 2 x 2 elements of it as an array of that class."""
    room = np.ones((64, 64), dtype)
    return room, room[10:12, 10:12].view(kind)


def pipeline(schedule: str, target: str) -> pt.Pipeline:
    if target != "host" and schedule != "plain":
        pytest.skip("strategies find schedules for CPUs")
    img, f = pt.Input("img", "float32", 2), pt.Func("f")
    f[Y, X] = img[Y, X] * 2.0
    return pt.Pipeline(f, shape=img.shape, schedule=schedule, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_output_is_as_large_as_its_memory(schedule: str, target: str) -> None:
    room, out = part(Boasting)
    p = pipeline(schedule, target)
    large = np.full((50, 50), 3, "float32")
    with pytest.raises(pt.UserError, match=r"has the shape \(50, 50\), but out= is an array of shape \(2, 2\)"):
        p(img=large, out=out)
    assert (room == 1).all()
    assert p(img=large[:2, :2], out=out) is out
    assert (room[10:12, 10:12] == 6).all() and room.sum() == 64 * 64 + 4 * 5


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_input_is_as_large_as_its_memory(schedule: str, target: str) -> None:
    _, img = part(Boasting)
    found = pipeline(schedule, target)(img=img)
    assert type(found) is np.ndarray and found.shape == (2, 2) and (found == 2).all()


def test_one_that_says_otherwise_at_each_call() -> None:
    class Changing(np.ndarray[Any, Any]):
        asked = 0

        @property
        def shape(self) -> Any:  # type: ignore[override]
            Changing.asked += 1
            return (2, 2) if Changing.asked < 3 else (50, 50)

    room, out = part(Changing)
    for _ in range(4):
        scaled("float32")(img=np.ones((2, 2), "float32"), out=out)
    assert room.sum() == 64 * 64 + 4


def test_an_output_that_cannot_be_written_says_so_in_vain() -> None:
    room, out = part(Writeable)
    out.setflags(write=False)
    with pytest.raises(pt.UserError, match="cannot be written into a read-only array"):
        scaled("float32")(img=np.ones((2, 2), "float32"), out=out)
    assert (room == 1).all()


def test_an_output_that_shares_memory_denies_it_in_vain() -> None:
    room, out = part(Elsewhere)
    with pytest.raises(pt.UserError, match="would be written into memory of Input 'img'"):
        scaled("float32")(img=room[10:12, 10:12], out=out)


def test_an_output_has_the_type_of_its_memory() -> None:
    _, out = part(Narrow, "int16")
    with pytest.raises(pt.UserError, match="holds float32, but is given an array of int16"):
        scaled("float32")(img=np.ones((2, 2), "float32"), out=out)


def test_what_only_says_that_it_is_an_array_is_none() -> None:
    class Posing:
        __class__ = np.ndarray  # type: ignore[assignment]
        shape, strides, dtype = (2, 2), (8, 4), np.dtype("float32")

    with pytest.raises(pt.UserError, match="cannot be written into Posing; pass a NumPy array as out="):
        scaled("float32")(img=np.ones((2, 2), "float32"), out=Posing())
    with pytest.raises(pt.UserError, match="is given an array of object"):
        scaled("float32")(img=Posing())


def test_arrays_that_others_make_of_themselves() -> None:
    _, boasting = part(Boasting)

    class Wrapped:
        def __array__(self, *_: Any, **__: Any) -> Any:
            return boasting

    assert scaled("float32")(img=Wrapped()).shape == (2, 2)


def test_a_table_is_as_large_as_its_memory() -> None:
    _, array = part(Boasting)
    table, f = pt.table(array), pt.Func("f")
    assert table.shape == (2, 2) and type(table.array) is np.ndarray
    f[Y, X] = table[Y, X]
    with pytest.raises(pt.UserError, match=r"axis 0 has indices 0 \.\. 1"):
        pt.Pipeline(f, shape=(50, 50))()


def test_a_graph_has_no_table_of_another_class() -> None:
    x, number = coordinate("x"), dtype("float32")
    boasting = np.ones(2, "float32").view(Boasting)
    info = InputInfo("t", number, 2, here(), boasting, (50, 50))
    value = Load(number, 1, "t", (x, x))
    stage = Stage("f", ("x",), (number,), Definition((x,), (value,), (), None, here()), (), here())
    graph = Graph("f", (info,), (), (stage,), (Output("f", (const(50, INDEX),)),))
    with pytest.raises(pt.UserError, match="the table t is not a plain NumPy array"):
        pt.Pipeline.from_graph(graph)


class Count(int):
    """Is within any bounds."""

    def __ge__(self, other: object) -> bool:
        return True

    def __le__(self, other: object) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    def __index__(self) -> int:
        return 1


def test_a_number_is_what_it_is() -> None:
    n, f = pt.Param("n", "int32"), pt.Func("f")
    f[X] = n + X
    p = pt.Pipeline(f, shape=(4,))
    with pytest.raises(pt.UserError, match="but int32 holds"):
        p(n=Count(1 << 40))
    assert p(n=Count(7)).tolist() == [7, 8, 9, 10]
