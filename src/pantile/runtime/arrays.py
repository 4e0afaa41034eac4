"""What calls ask about arrays, and the answers where all of them are NumPy's and code reads them in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .arguments import AnyArray, Array, NDArray, as_array, layout_of
from .outputs import Shape, check_apart, given_outputs, new_array, returned


class Arrays(Protocol):
    """The arrays that a backend takes."""

    def given(self, wanted: Array, value: Any) -> AnyArray:
        """What was given, as an array; `check_array` checks it."""

    def constant(self, table: NDArray) -> AnyArray:
        """A table that a pipeline brings along."""

    def outputs(self, wanted: Sequence[Array], out: Any) -> list[AnyArray | None]:
        """`out=` as one entry per output; None stands for a new array."""

    def layouts(self, inputs: Sequence[AnyArray], outputs: Sequence[AnyArray | None]) -> list[object]:
        """What tells kinds of calls apart, of each array; hashable, and None for None."""

    def check_apart(
        self, outputs: Sequence[Array], given: Sequence[AnyArray | None], inputs: Sequence[Array],
        read: Sequence[AnyArray],
    ) -> None:  # fmt: skip
        """Refuse a given output that shares memory with an input or another output."""

    def seen(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """As code will see them, of which only layouts count."""

    def aligned(self, seen: Sequence[AnyArray]) -> Sequence[int]:
        """Bytes that the address of each is a multiple of, and its strides besides those that code is specialized on,
        as far as code for such arrays cares."""

    def filled(
        self, wanted: Sequence[Array], shapes: Sequence[Shape], given: Sequence[AnyArray | None],
        inputs: Sequence[AnyArray],
    ) -> list[AnyArray]:  # fmt: skip
        """New arrays in the place of None."""

    def results(self, wanted: Sequence[Array], filled: list[AnyArray], out: Any) -> list[Any]:
        """What callers get: what they gave as `out=`, and new arrays."""

    def on_host(self, a: AnyArray) -> NDArray:
        """To be read by NumPy."""


class NumpyArrays:
    """NumPy's own, and what it views through other libraries' protocols."""

    given = staticmethod(as_array)
    outputs = staticmethod(given_outputs)
    check_apart = staticmethod(check_apart)

    @staticmethod
    def layouts(inputs: Sequence[Any], outputs: Sequence[Any]) -> list[object]:
        return [layout_of(a) for a in inputs] + [None if a is None else layout_of(a) for a in outputs]

    @staticmethod
    def constant(table: NDArray) -> NDArray:
        return table

    @staticmethod
    def seen(arrays: Sequence[Any]) -> Sequence[Any]:
        return arrays

    @staticmethod
    def aligned(seen: Sequence[Any]) -> Sequence[int]:
        return ()

    @staticmethod
    def filled(
        wanted: Sequence[Array], shapes: Sequence[Shape], given: Sequence[Any], inputs: Sequence[Any]
    ) -> list[Any]:
        return [
            new_array(shape, a.dtype.numpy) if o is None else o
            for a, shape, o in zip(wanted, shapes, given, strict=True)
        ]

    @staticmethod
    def results(wanted: Sequence[Array], filled: list[Any], out: Any) -> list[Any]:
        return filled if out is None else returned(wanted, filled, out)

    @staticmethod
    def on_host(a: Any) -> NDArray:
        array: NDArray = a
        return array
