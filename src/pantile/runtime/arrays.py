"""The operations on arrays that a call needs, and their implementation for NumPy arrays, which code uses in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from sys import modules
from typing import Any, Protocol

from .arguments import KIND_FLAGS, AnyArray, Array, NDArray
from .array_conversion import as_array
from .outputs import Shape, check_apart, given_outputs, maker, returned

# (given outputs, if any; inputs) -> the arrays to fill: the given ones, and new ones for outputs that are not given.
New = Callable[["Sequence[AnyArray | None] | None", "Sequence[AnyArray]"], "list[AnyArray]"]


class Arrays(Protocol):
    """The arrays that a backend takes."""

    def converted(self, wanted: Array, value: Any) -> AnyArray:
        """The value as an array; `check_array` checks it."""

    def constant(self, table: NDArray) -> AnyArray:
        """A constant table of a pipeline."""

    def outputs(self, wanted: Sequence[Array], out: Any) -> list[AnyArray | None]:
        """Split `out=` into one entry per output; None stands for a new array."""

    def layouts(self, arrays: Sequence[AnyArray | None]) -> tuple[object, ...]:
        """The layout of each array, by which kinds of calls are distinguished; hashable, and None for None."""

    def check_apart(
        self,
        outputs: Sequence[Array],
        given: Sequence[AnyArray | None],
        inputs: Sequence[Array],
        read: Sequence[AnyArray],
    ) -> None:
        """Raise an error if an `out=` array shares memory with an input or another output."""

    def in_code(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """Arrays with the layouts that code will see; their elements do not matter."""

    def aligned(self, seen: Sequence[AnyArray]) -> Sequence[int]:
        """The alignment in bytes of addresses and non-constant strides of arrays, as far as it affects code."""

    def new(self, wanted: Sequence[Array], shapes: Sequence[Shape]) -> New:
        """A function that makes the output arrays for one kind of call."""

    def results(self, wanted: Sequence[Array], filled: list[AnyArray], out: Any, given: Mapping[str, Any]) -> list[Any]:
        """The return value of a call: the arrays of `out=`, and new arrays of the caller's kind."""

    def on_host(self, a: AnyArray) -> NDArray:
        """The array in a form that NumPy can read."""


class NumpyArrays:
    """NumPy arrays, and those that NumPy views through protocols of other libraries."""

    converted = staticmethod(as_array)
    outputs = staticmethod(given_outputs)
    check_apart = staticmethod(check_apart)

    @staticmethod
    def layouts(arrays: Sequence[Any]) -> tuple[object, ...]:
        return tuple([None if a is None else (a.shape, a.strides, a.dtype, a.flags.num & KIND_FLAGS) for a in arrays])

    @staticmethod
    def constant(table: NDArray) -> NDArray:
        return table

    @staticmethod
    def in_code(arrays: Sequence[Any]) -> Sequence[Any]:
        return arrays

    @staticmethod
    def aligned(seen: Sequence[Any]) -> Sequence[int]:
        return ()

    @staticmethod
    def new(wanted: Sequence[Array], shapes: Sequence[Shape]) -> New:
        makers = [maker(shape, a.dtype.numpy) for a, shape in zip(wanted, shapes, strict=True)]
        first, *others = makers

        def filled(given: Sequence[Any] | None, inputs: Sequence[Any]) -> list[Any]:
            if given is None:
                return [first(), *[make() for make in others]] if others else [first()]
            return [make() if a is None else a for make, a in zip(makers, given, strict=True)]

        return filled

    @staticmethod
    def results(wanted: Sequence[Array], filled: list[Any], out: Any, given: Mapping[str, Any]) -> list[Any]:
        if (out is None and "torch" not in modules) or out is filled[0]:
            return filled
        return returned(wanted, filled, out, given)

    @staticmethod
    def on_host(a: Any) -> NDArray:
        array: NDArray = a
        return array
