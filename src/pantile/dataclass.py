"""A `dataclass` like Python's that is faster to define, since each import of Pantile defines hundreds of them.

Python's `dataclass` generates and compiles the source of six methods per class. Here, `__init__`, `__eq__` and
`__hash__` are generated on first use, which for most classes is never, and the other methods are shared by all classes.
The class is a dataclass to `replace`, `fields`, `asdict` and type checkers. A frozen dataclass must not derive from
another one, and a field that is not a parameter of `__init__` must have a default.

`cached_property` is that of Python 3.12, which has no lock. In earlier versions, all objects of a class share a lock: a
child process that was forked while another thread computed such a property would wait for that lock forever, and
threads that schedule different pipelines would wait for each other. Without it, two threads may compute the same value
twice, which is harmless.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial, wraps
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

    from typing_extensions import dataclass_transform

    @dataclass_transform(frozen_default=True)
    def value(*, eq: bool = True) -> Callable[[type[T]], type[T]]:
        """A frozen dataclass for objects that are created often."""
else:

    def dataclass(cls=None, /, *, init=True, repr=True, eq=True, frozen=False, slots=False):
        """Add the methods to a class that Python's `dataclass` would add."""

        def defined(cls: type) -> type:
            return _define(cls, init, repr, eq, frozen, slots)

        return defined if cls is None else defined(cls)

    def value(*, eq=True):
        # Only the type checker treats it as frozen: enforcement at run time makes construction three to seven times as
        # slow.
        return partial(_define, init=True, repr=True, eq=eq, frozen=True, slots=False, enforced=False)


Fields = Sequence[dataclasses.Field[Any]]
C = TypeVar("C", bound=type)
T = TypeVar("T")
Source = tuple[str, dict[str, Any]]  # the text of a method, and its globals
F = TypeVar("F", bound=Callable[..., Any])
_UNKNOWN = object()


def _define(cls: type, init: bool, repr: bool, eq: bool, frozen: bool, slots: bool, enforced: bool = True) -> type:
    cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)  # finds fields only
    methods: dict[str, Any] = {}
    if init:
        methods["__init__"] = _LazyMethod(cls, "__init__", lambda fields: _init(cls, fields, frozen and enforced))
    if repr:
        methods["__repr__"] = _repr
    if eq:
        methods["__eq__"] = _LazyMethod(cls, "__eq__", _eq)
        methods["__hash__"] = _LazyMethod(cls, "__hash__", _hash) if frozen else None
    if frozen and enforced:
        methods["__setattr__"], methods["__delattr__"] = _refuse_to_set, _refuse_to_delete
        cls.__dataclass_params__.frozen = True  # type: ignore[attr-defined]  # which Python checks in subclasses
    for name, method in methods.items():
        if name not in cls.__dict__ or name == "__hash__" and cls.__dict__[name] is None:
            setattr(cls, name, method)
    return cls


class _LazyMethod:
    """A placeholder for a method of `cls`. On first use, the method is generated and replaces it."""

    def __init__(self, cls: type, name: str, source: Callable[[Fields], Source]) -> None:
        self._cls, self._name, self._source = cls, name, source

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        fields = dataclasses.fields(self._cls)
        text, known = self._source(fields)
        known["__name__"] = self._cls.__module__
        exec(text, known)
        method = known[self._name]
        if self._name == "__init__":  # compiling the annotations would take a quarter of the time
            method.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
        method.__qualname__ = f"{self._cls.__qualname__}.{self._name}"
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def hashed_once(cls: C) -> C:
    """Cache the hash in each value of a frozen dataclass, for large values that are often looked up. Pickles omit it,
    because another process hashes text differently."""
    compared = attrgetter(*(f.name for f in dataclasses.fields(cls) if f.compare))

    def hash_once(self: Any) -> int:
        try:
            known: int = self._hash
        except AttributeError:
            known = hash(compared(self))
            object.__setattr__(self, "_hash", known)
        return known

    cls.__hash__ = hash_once  # type: ignore[method-assign,assignment]
    cls.__getstate__ = _without_hash  # type: ignore[attr-defined]
    return cls


def _without_hash(self: Any) -> dict[str, Any]:
    return {name: value for name, value in self.__dict__.items() if name != "_hash"}


def _init(cls: type, fields: Fields, frozen: bool) -> Source:
    known: dict[str, Any] = {"__set": object.__setattr__, "__missing": dataclasses.MISSING}
    parameters, keywords, body = ["self"], ["*"], list[str]()
    for f in fields:
        value = f.name
        if f.init:
            (keywords if f.kw_only else parameters).append(_parameter(f, known))
        elif f.default is not dataclasses.MISSING:
            value = _default(f, known)
        if f.default_factory is not dataclasses.MISSING:
            value = f"__make_{f.name}() if {f.name} is __missing else {f.name}"
        body.append(f"__set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    if len(keywords) > 1:
        parameters += keywords
    return f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), known


def _parameter(f: dataclasses.Field[Any], known: dict[str, Any]) -> str:
    """The parameter of a field in the text of `__init__`, such as `hi=__default_hi`."""
    if f.default_factory is not dataclasses.MISSING:
        known[f"__make_{f.name}"] = f.default_factory
        return f"{f.name}=__missing"
    return f.name if f.default is dataclasses.MISSING else f"{f.name}={_default(f, known)}"


def _default(f: dataclasses.Field[Any], known: dict[str, Any]) -> str:
    if f.default is None:
        return "None"
    known[f"__default_{f.name}"] = f.default
    return f"__default_{f.name}"


def _eq(fields: Fields) -> Source:
    text = f"""def __eq__(self, other):
 if other.__class__ is self.__class__:
  return {_compared("self", fields)} == {_compared("other", fields)}
 return NotImplemented"""
    return text, {}


def _hash(fields: Fields) -> Source:
    return f"def __hash__(self):\n return hash({_compared('self', fields)})", {}


def _compared(value: str, fields: Fields) -> str:
    """The tuple of compared fields: `(self.lo,self.hi,)`."""
    return f"({''.join(f'{value}.{f.name},' for f in fields if f.compare)})"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A property that is computed on first use and becomes an ordinary attribute."""

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
    """Memoize a method in each object, by its positional arguments. Callers must not modify its results."""
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
