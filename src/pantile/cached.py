"""`cached_property`, as Python 3.12 has it: without the lock of earlier ones, one for all objects of a class.

A child that was forked while another thread computed such a property would wait for that lock for ever, and until then
threads that schedule different pipelines would wait for each other. Two threads at once may compute the same value
twice; that is all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A property that is computed when it is first used, and then is an attribute like any other."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = self._compute(instance)
            object.__setattr__(instance, self._name, value)
            return value
