"""What objects compute once: properties and the answers of methods.

`cached_property` is that of Python 3.12: without the lock of earlier versions, which all objects of a class share. A
child that was forked while another thread computed such a property would wait for that lock forever, and threads that
schedule different pipelines would wait for each other. Without it, two threads may compute the same value twice, which
is harmless.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
_UNKNOWN = object()

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A property that is computed on first use, and then is an ordinary attribute."""

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


def memoized(method: F) -> F:
    """A method whose answer for each of its arguments, which are positional, is computed once and kept in the object;
    nobody changes the answers."""
    place = f"_answers_of_{method.__name__}"

    @wraps(method)
    def answer(self: Any, *arguments: Any) -> Any:
        known = self.__dict__.get(place)
        if known is None:
            known = self.__dict__[place] = {}
        found = known.get(arguments, _UNKNOWN)
        if found is _UNKNOWN:
            found = known[arguments] = method(self, *arguments)
        return found

    return cast(F, answer)
