"""Pipelines that users name: an app, or FILE.py:NAME, a pipeline of theirs, and the arguments of a call of it."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import pantile as pt

from . import APPS, GROUPS
from .app import App
from .names import WrongArgument, check, params, suggestion

_LARGEST_EXTENT = 1 << 20
_LARGEST = 1 << 31  # elements of an array that is made up
_SIZES = ("small", "paper", "gpu")  # names for the one size that a pipeline of the user's is called with


def apps_named(text: str, size: str, shapes: Sequence[str], given: Sequence[str]) -> list[App]:
    """What APP, a group of them, or FILE.py:NAME means, called with such a size, or shapes and params."""
    if is_in_file(text):
        return [app_in_file(text, shapes, given)]
    known = (*APPS, *GROUPS)
    check(text, known, "app", f"a pipeline of yours is FILE.py:NAME, and the apps are {', '.join(known)}")
    return [_sized(APPS[name], size, shapes, given) for name in GROUPS.get(text, (text,))]


def _sized(app: App, size: str, shapes: Sequence[str], given: Sequence[str]) -> App:
    pipeline = app.build()
    if size not in app.sizes and not shapes:
        raise WrongArgument(f"{app.name} has no size {size!r}; there are {', '.join(app.sizes)}")
    stated = {**app.sizes.get(size, {}), **_shapes(app.name, pipeline, shapes)}
    values = params(pipeline, given)
    return replace(app, sizes={size: _all_of(app.name, pipeline, stated)}, params=values)


# ---- a pipeline of the user's


def is_in_file(text: str) -> bool:
    """Whether it names a pipeline in a file, and no app."""
    return ".py" in text or "/" in text


def in_file(text: str) -> pt.Pipeline:
    """The pipeline FILE.py:NAME: a Pipeline, a Func, or what a function returns. FILE.py will do if it has just one."""
    file, _, name = text.rpartition(":") if ":" in text and not text.endswith(".py") else (text, "", "")
    path = Path(file)
    if not path.is_file():
        raise WrongArgument(f"there is no file {file}; write FILE.py:NAME, or the name of an app")
    module = _imported(path)
    pipelines = [n for n, value in vars(module).items() if isinstance(value, pt.Pipeline)]
    if not name and len(pipelines) == 1:
        name = pipelines[0]
    there = _pipeline_names(module)
    if not name:
        example = next(iter([name for names in there.values() for name in names]), "blur")
        raise WrongArgument(f"{file}: say which pipeline, like {file}:{example}; {_listed_names(there)}")
    if not hasattr(module, name):
        close = suggestion(name, [n for names in there.values() for n in names])
        raise WrongArgument(f"{file} has no {name!r}{close}; {_listed_names(there)}")
    value = getattr(module, name)
    if callable(value) and not isinstance(value, (pt.Pipeline, pt.Func, type)):
        value = _call(file, name, value)
    if isinstance(value, pt.Func):
        return pt.Pipeline(value)
    if not isinstance(value, pt.Pipeline):
        kind = type(value).__name__
        raise WrongArgument(
            f"{file}:{name} is of type {kind}, not a pt.Pipeline, a pt.Func or a function that returns one; "
            f"{_listed_names(there)}"
        )
    return value


def _pipeline_names(module: ModuleType) -> dict[str, list[str]]:
    """What may be named in a file, by kind."""

    def makes(value: object) -> bool:
        """Whether it is a function of this file that can be called without arguments."""
        if not inspect.isfunction(value) or value.__module__ != module.__name__:
            return False
        optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        wanted = inspect.signature(value).parameters.values()
        return all(p.default is not p.empty or p.kind in optional for p in wanted)

    items = vars(module).items()
    return {
        "pipeline": [n for n, value in items if isinstance(value, pt.Pipeline)],
        "Func": [n for n, value in items if isinstance(value, pt.Func)],
        "function": [n for n, value in items if makes(value)],
    }


def _listed_names(there: Mapping[str, list[str]]) -> str:
    kinds = [f"the {kind}{'s' if len(names) > 1 else ''} {', '.join(names)}" for kind, names in there.items() if names]
    return f"it has {'; '.join(kinds)}" if kinds else "it has no pipelines, Funcs or functions at its top level"


def _imported(path: Path) -> ModuleType:
    """The module; whatever goes wrong in it is told in one line."""
    name = f"pantile_file_{path.stem}"  # a file may be called as a module of Python's own is
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise WrongArgument(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise WrongArgument(f"{path} cannot be imported: {_error_text(error, path)}") from error
    finally:
        sys.path.pop(0)
    return module


def _call(file: str, name: str, make: Any) -> Any:
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise WrongArgument(f"{file}:{name}() does not make a pipeline: {_error_text(error, Path(file))}") from error


def _error_text(error: BaseException, path: Path) -> str:
    """The error, and the line of the file that it comes from."""
    if isinstance(error, pt.UserError):
        return str(error)  # which says the line
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == path.name]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"


# ---- what it is called with


def app_in_file(text: str, shapes: Sequence[str], given: Sequence[str], usual: bool = False) -> App:
    """The pipeline as an app that is called with such shapes and params, or with those that the file states.

    What its author wrote, if anything, is its schedule by hand. `usual`: shapes that nobody states are those of usual
    pictures; otherwise they are asked for.
    """
    pipeline = in_file(text)
    inputs = {i.name: i for i in pipeline.graph.arguments}
    numbers = {n: v for n, v in (pipeline.estimates or {}).items() if n not in inputs}
    stated = _stated(pipeline) | _shapes(text, pipeline, shapes)
    sizes = {n: _usual(i) for n, i in inputs.items()} | stated if usual else _all_of(text, pipeline, stated)
    by_default = pipeline.strategy is not None and pipeline.strategy.name == "auto"
    return App(
        text,
        f"{pipeline!r} of {text}",
        lambda: pipeline,
        None if by_default else lambda target, cores: pipeline.strategy or pipeline.schedule,
        dict.fromkeys(_SIZES, sizes),
        lambda name, shape, rng: _random(inputs[name].dtype.numpy, shape, rng),
        on_gpu=None if by_default else lambda: pipeline.strategy or pipeline.schedule,
        params=numbers | params(pipeline, given, numbers),
    )


def _stated(pipeline: pt.Pipeline) -> dict[str, tuple[int, ...]]:
    """Shapes that Inputs declare in full, and those that the pipeline is said to be called with."""
    inputs = {i.name: i for i in pipeline.graph.arguments}
    declared = {n: tuple(e for e in i.known if e is not None) for n, i in inputs.items()}
    declared = {n: shape for n, shape in declared.items() if len(shape) == inputs[n].ndim}
    estimates = {n: v for n, v in (pipeline.estimates or {}).items() if n in inputs}
    return declared | {n: v if isinstance(v, tuple) else np.shape(v) for n, v in estimates.items()}


def _shapes(text: str, pipeline: pt.Pipeline, given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Of --shape NAME=1080x1920, or --shape 1080x1920 where there is one input."""
    ndims = {i.name: i.ndim for i in pipeline.graph.arguments}
    shapes: dict[str, tuple[int, ...]] = {}
    for item in given:
        name, equals, extents = item.rpartition("=")
        if not equals:
            if len(ndims) != 1:
                raise WrongArgument(f"{text} takes {', '.join(ndims) or 'no arrays'}; write --shape NAME={item}")
            (name,) = ndims
        if name not in ndims:
            raise WrongArgument(f"{text} has no input {name!r}{suggestion(name, ndims)}; it takes {', '.join(ndims)}")
        parts = extents.split("x")
        if not all(p.isdecimal() and len(p) < 8 and 1 <= int(p) <= _LARGEST_EXTENT for p in parts):
            raise WrongArgument(f"--shape {item}: {extents!r} is no shape; write it in NumPy's order, like 1080x1920x3")
        if len(parts) != ndims[name]:
            raise WrongArgument(f"--shape {item}: {name} has {ndims[name]} axes, and this shape {len(parts)}")
        shapes[name] = tuple(map(int, parts))
        if np.prod(shapes[name], dtype=np.int64) > _LARGEST:
            raise WrongArgument(f"--shape {item} is too large")
    return shapes


def _all_of(text: str, pipeline: pt.Pipeline, stated: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The shapes, if there is one for every input."""
    missing = [i for i in pipeline.graph.arguments if i.name not in stated]
    if missing:
        wanted = " ".join(f"--shape {i.name}={'x'.join(map(str, _usual(i)))}" for i in missing)
        raise WrongArgument(f"{text}: how large are its arrays? Write {wanted}, or as large as yours are")
    return dict(stated)


def _usual(given: Any) -> tuple[int, ...]:
    """A shape of pictures with the extents that an input declares."""
    usual = iter((1080, 1920, 3, *(4,) * given.ndim))
    return tuple([next(usual) if n is None else n for n in given.known or (None,) * given.ndim])


def _random(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Numbers that most pipelines can work with: from 0 to 1, or from 0 to 127."""
    if dtype.kind == "f":
        return rng.random(shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 128, shape).astype(dtype)
