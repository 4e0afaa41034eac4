"""Pipelines that users name: an app, or FILE.py:NAME, a pipeline of theirs, and the arguments of a call of it."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import pantile as pt

from ..apps import APPS, GROUPS
from .names import WrongArgument, check, meant
from .params import params

_LARGEST_EXTENT = 1 << 20
_LARGEST = 1 << 31  # elements of an array that is made up


@dataclass(frozen=True)
class Target:
    """A pipeline to call, the call, and how far results of it may lie apart."""

    name: str
    pipeline: pt.Pipeline
    arguments: Mapping[str, Any]
    tolerance: float | None = None
    off_by: int = 0


def targets(text: str, size: str, shapes: Sequence[str], given: Sequence[str]) -> list[Target]:
    """What APP, a group of them, or FILE.py:NAME means, called with such a size, or shapes and params."""
    if ".py" in text or "/" in text:
        pipeline = _of_file(text)
        return [_with_arguments(text, pipeline, shapes, given)]
    known = (*APPS, *GROUPS)
    check(text, known, "app", f"a pipeline of yours is FILE.py:NAME, and the apps are {', '.join(known)}")
    return [_of_app(name, size, shapes, given) for name in GROUPS.get(text, (text,))]


def _of_app(name: str, size: str, shapes: Sequence[str], given: Sequence[str]) -> Target:
    app = APPS[name]
    pipeline = app.build()
    if size not in app.sizes and not shapes:
        raise WrongArgument(f"{name} has no size {size!r}; there are {', '.join(app.sizes)}")
    stated = _shapes(name, pipeline, shapes) if shapes else app.sizes[size]
    arrays = app.random(_all_of(name, pipeline, stated))
    return Target(name, pipeline, arrays | params(pipeline, given), app.tolerance, app.off_by)


# ---- a pipeline of the user's


def _of_file(text: str) -> pt.Pipeline:
    file, _, name = text.rpartition(":") if ":" in text and not text.endswith(".py") else (text, "", "")
    path = Path(file)
    if not path.is_file():
        raise WrongArgument(f"there is no file {file}; write FILE.py:NAME, or the name of an app")
    module = _imported(path)
    pipelines = [n for n, value in vars(module).items() if isinstance(value, pt.Pipeline)]
    if not name and len(pipelines) == 1:
        name = pipelines[0]
    if not name:
        there = f"it has {', '.join(pipelines)}" if pipelines else "it has none at its top level"
        raise WrongArgument(f"{file}: say which pipeline, like {file}:{(pipelines or ['blur'])[0]}; {there}")
    if not hasattr(module, name):
        there = f"; its pipelines are {', '.join(pipelines)}" if pipelines else "; it has no pipelines"
        raise WrongArgument(f"{file} has no {name!r}{meant(name, pipelines)}{there}")
    value = getattr(module, name)
    if callable(value) and not isinstance(value, (pt.Pipeline, pt.Func, type)):
        value = _made(file, name, value)
    if not isinstance(value, pt.Pipeline):
        kind = type(value).__name__
        raise WrongArgument(f"{file}:{name} is a {kind}, not a pt.Pipeline or a function that makes one")
    return value


def _imported(path: Path) -> ModuleType:
    """The module; whatever goes wrong in it is told in one line."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise WrongArgument(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise WrongArgument(f"{path} cannot be imported: {_told(error, path)}") from error
    finally:
        sys.path.pop(0)
    return module


def _made(file: str, name: str, make: Any) -> Any:
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise WrongArgument(f"{file}:{name}() does not make a pipeline: {_told(error, Path(file))}") from error


def _told(error: BaseException, path: Path) -> str:
    """The error, and the line of the file that it comes from."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).name == path.name]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}: {error}{where}"


# ---- what it is called with


def _with_arguments(text: str, pipeline: pt.Pipeline, shapes: Sequence[str], given: Sequence[str]) -> Target:
    estimates = dict(pipeline.estimates or {})
    inputs = {i.name: i for i in pipeline.graph.arguments}
    stated = {n: np.shape(v) if not isinstance(v, tuple) else v for n, v in estimates.items() if n in inputs}
    stated = _all_of(text, pipeline, stated | _shapes(text, pipeline, shapes))
    numbers = {n: v for n, v in estimates.items() if n not in inputs}
    arrays = {n: _random(inputs[n].dtype.numpy, shape) for n, shape in stated.items()}
    return Target(text, pipeline, arrays | numbers | params(pipeline, given, numbers))


def _shapes(text: str, pipeline: pt.Pipeline, given: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Of --shape NAME=1080x1920, or --shape 1080x1920 where there is one input."""
    ndims = {i.name: i.ndim for i in pipeline.graph.arguments}
    found: dict[str, tuple[int, ...]] = {}
    for item in given:
        name, equals, extents = item.rpartition("=")
        if not equals:
            if len(ndims) != 1:
                raise WrongArgument(f"{text} takes {', '.join(ndims) or 'no arrays'}; write --shape NAME={item}")
            (name,) = ndims
        if name not in ndims:
            raise WrongArgument(f"{text} has no input {name!r}{meant(name, ndims)}; it takes {', '.join(ndims)}")
        parts = extents.split("x")
        if not all(p.isdecimal() and len(p) < 8 and 1 <= int(p) <= _LARGEST_EXTENT for p in parts):
            raise WrongArgument(f"--shape {item}: {extents!r} is no shape; write it in NumPy's order, like 1080x1920x3")
        if len(parts) != ndims[name]:
            raise WrongArgument(f"--shape {item}: {name} has {ndims[name]} axes, and this shape {len(parts)}")
        found[name] = tuple(map(int, parts))
        if np.prod(found[name], dtype=np.int64) > _LARGEST:
            raise WrongArgument(f"--shape {item} is too large")
    return found


def _all_of(
    text: str, pipeline: pt.Pipeline, stated: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The shapes, if there is one for every input."""
    missing = [i for i in pipeline.graph.arguments if i.name not in stated]
    if missing:
        wanted = " ".join(f"--shape {i.name}={'x'.join(('1080', '1920', '3', '4')[: i.ndim])}" for i in missing)
        raise WrongArgument(f"{text}: how large are its arrays? Write {wanted}, or as large as yours are")
    return dict(stated)


def _random(dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Numbers that most pipelines can work with: from 0 to 1, or from 0 to 127."""
    rng = np.random.default_rng(0)
    if dtype.kind == "f":
        return rng.random(shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 128, shape).astype(dtype)
