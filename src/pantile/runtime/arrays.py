"""What calls ask about arrays, and the answers where all of them are NumPy's and code reads them in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from sys import modules
from typing import Any, Protocol

from .arguments import KIND_FLAGS, AnyArray, Array, NDArray
from .array_conversion import as_array
from .outputs import Shape, check_apart, given_outputs, maker, returned

# Of given outputs, if there are any, and inputs: the arrays that are filled, new ones where none are given.
New = Callable[["Sequence[AnyArray | None] | None", "Sequence[AnyArray]"], "list[AnyArray]"]


class Arrays(Protocol):
    """The arrays that a backend takes."""

    def given(self, wanted: Array, value: Any) -> AnyArray:
        """What was given, as an array; `check_array` checks it."""

    def constant(self, table: NDArray) -> AnyArray:
        """A table that a pipeline brings along."""

    def outputs(self, wanted: Sequence[Array], out: Any) -> list[AnyArray | None]:
        """`out=` as one entry per output; None stands for a new array."""

    def layouts(self, arrays: Sequence[AnyArray | None]) -> tuple[object, ...]:
        """What tells kinds of calls apart, of each array; hashable, and None for None."""

    def check_apart(
        self,
        outputs: Sequence[Array],
        given: Sequence[AnyArray | None],
        inputs: Sequence[Array],
        read: Sequence[AnyArray],
    ) -> None:
        """Refuse a given output that shares memory with an input or another output."""

    def seen(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The arrays as code will see them, of which only layouts count."""

    def aligned(self, seen: Sequence[AnyArray]) -> Sequence[int]:
        """Bytes that the address of each is a multiple of, and its strides besides those that code is specialized on,
        as far as code for such arrays cares."""

    def new(self, wanted: Sequence[Array], shapes: Sequence[Shape]) -> New:
        """What makes the arrays for outputs of one kind of call."""

    def results(self, wanted: Sequence[Array], filled: list[AnyArray], out: Any, given: Mapping[str, Any]) -> list[Any]:
        """What callers get: what they gave as `out=`, and new arrays of the kind of what they gave."""

    def on_host(self, a: AnyArray) -> NDArray:
        """The array, to be read by NumPy."""


class NumpyArrays:
    """NumPy's own, and what it views through other libraries' protocols."""

    given = staticmethod(as_array)
    outputs = staticmethod(given_outputs)
    check_apart = staticmethod(check_apart)

    @staticmethod
    def layouts(arrays: Sequence[Any]) -> tuple[object, ...]:
        return tuple([None if a is None else (a.shape, a.strides, a.dtype, a.flags.num & KIND_FLAGS) for a in arrays])

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
