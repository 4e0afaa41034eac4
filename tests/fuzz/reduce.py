"""A failing program of a campaign, made as small as it can be while it still fails in the same way:

    python -m tests.fuzz.reduce failures/7001234-default-mismatch.py

Statements, arguments and directives are left out, and expressions replaced by parts of them, one after the other.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pantile.errors import UserError

from .guarded import guarded
from .isolate import ended, forked

_SECONDS = 20
_TOLERANCE = 1e-2  # of floats in pipelines that are not strict


def reduced(text: str) -> str:
    """The smallest program found that fails as this one does."""
    wanted = outcome(text)
    if wanted in ("right", "invalid"):
        return text
    tree = ast.parse(text)
    shrinking = True
    while shrinking:
        shrinking = False
        at = 0
        while at < len(_places(tree)):
            smaller = next((t for t in _smaller(tree, at) if outcome(ast.unparse(t)) == wanted), None)
            if smaller is None:
                at += 1
            else:
                tree, shrinking = smaller, True
    return f"# {wanted}\n{ast.unparse(tree)}\n"


def outcome(text: str) -> str:
    """The outcome of a program in a process of its own: right, invalid, mismatch, an exception, or how it died."""

    def work(pipe: BinaryIO) -> None:
        pipe.write(_outcome(text).encode())

    child, reader = forked(work, _SECONDS)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    end, death = ended(child)
    return said if end == "normal" else str(death)


def _outcome(text: str) -> str:
    names: dict[str, Any] = {}
    *setup, call, _ = ast.parse(text).body
    try:
        exec(compile(ast.Module(setup, []), "<program>", "exec"), names)
        assert isinstance(call, ast.Assign) and isinstance(call.value, ast.Call)
        given = {k.arg: eval(ast.unparse(k.value), names) for k in call.value.keywords}
        threads = given.pop("num_threads")
        pipeline = names["pipeline"]
        expected = pipeline.reference(**given)
        expected = list(expected) if isinstance(expected, tuple) else [expected]
    except Exception:
        return "invalid"
    for at_end in (True, False):
        try:
            arrays = {n: guarded(a, at_end) if isinstance(a, np.ndarray) else a for n, a in given.items()}
            found = pipeline(**arrays, num_threads=threads, out=[guarded(np.zeros_like(a), at_end) for a in expected])
        except UserError:
            return "invalid"
        except Exception as error:
            return type(error).__name__
        found = list(found) if isinstance(found, tuple) else [found]
        if not all(_agree(a, b, pipeline.options.strict) for a, b in zip(expected, found, strict=True)):
            return "mismatch"
    return "right"


def _agree(expected: np.ndarray, found: np.ndarray, strict: bool) -> bool:
    if expected.dtype.kind != "f" or strict:
        return np.array_equal(expected, found, equal_nan=expected.dtype.kind == "f")
    return np.allclose(expected, found, _TOLERANCE, _TOLERANCE, equal_nan=True)


Place = tuple[ast.AST, str, int | None]  # a node, its field, and an index if that is a list


def _places(tree: ast.Module) -> list[Place]:
    """The places at which something could be removed or replaced, except the call and the reference at the end."""
    found: list[Place] = [(tree, "body", k) for k in range(len(tree.body) - 2)]
    for statement in tree.body[:-2]:
        for node in ast.walk(statement):
            for name, value in ast.iter_fields(node):
                if isinstance(value, list):
                    found += [(node, name, k) for k, v in enumerate(value) if isinstance(v, (ast.expr, ast.stmt))]
                elif isinstance(value, ast.expr):
                    found.append((node, name, None))
    return found


def _smaller(tree: ast.Module, at: int) -> Iterator[ast.Module]:
    """Versions of the program with less at a place: nothing, a part of what is there, or a number."""
    node, name, k = _places(tree)[at]
    now = getattr(node, name) if k is None else getattr(node, name)[k]
    if k is not None:
        yield _changed(tree, at, None)
    if isinstance(now, ast.expr):
        parts = [child for child in ast.iter_child_nodes(now) if isinstance(child, ast.expr)]
        if isinstance(now, ast.Call) and isinstance(now.func, ast.Attribute):
            parts.append(now.func.value)  # the chain of directives before this one
        for part in parts:
            yield _changed(tree, at, part)
        if not isinstance(now, (ast.Constant, ast.Name, ast.Attribute)):
            for number in (0, 1, 2):
                yield _changed(tree, at, ast.Constant(number))
        if isinstance(now, ast.Constant) and type(now.value) is int and now.value > 3:
            for number in (1, 2, 3, now.value // 2):
                yield _changed(tree, at, ast.Constant(number))


def _changed(tree: ast.Module, at: int, new: ast.expr | None) -> ast.Module:
    """A copy of the program with `new` at a place, or with the place removed if `new` is None."""
    copy = deepcopy(tree)
    node, name, k = _places(copy)[at]
    if k is None:
        setattr(node, name, new)
    elif new is None:
        del getattr(node, name)[k]
    else:
        getattr(node, name)[k] = new
    return ast.fix_missing_locations(copy)


if __name__ == "__main__":
    os.environ["PANTILE_CACHE_DIR"] = os.devnull
    for path in sys.argv[1:]:
        print(reduced(Path(path).read_text("utf-8")))
