"""Files import one way: no circle between any of them, not even one that an import inside a function hides."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pantile

ROOT = Path(pantile.__file__).parent
PARTS = ("body", "orelse", "finalbody", "handlers", "cases")  # fields of statements that hold others
# What only some commands or targets need, and what takes long to import: late, but not for the sake of a circle.
LATE = {"pantile.backends", "pantile.cli.command", "pantile.cli.picture"}


@functools.cache
def modules() -> dict[str, ast.Module]:
    files = {".".join(("pantile", *f.relative_to(ROOT).with_suffix("").parts)): f for f in ROOT.rglob("*.py")}
    return {name.removesuffix(".__init__"): ast.parse(f.read_text("utf8")) for name, f in files.items()}


@functools.cache
def packages() -> set[str]:
    return {name.rpartition(".")[0] for name in modules()}


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement in a node, however deep, with clauses such as `except`; imports are statements."""
    left = [node]
    while left:
        node = left.pop()
        parts = [part for field in PARTS if field in node._fields for part in getattr(node, field)]
        yield from parts
        left += parts


def imported(name: str) -> Iterator[str]:
    """The modules of ours that a module imports, anywhere in its text."""
    for node in statements(modules()[name]):
        if isinstance(node, ast.ImportFrom):
            around = name if name in packages() else name.rpartition(".")[0]
            base = around.rsplit(".", node.level - 1)[0] if node.level else ""
            source = ".".join(part for part in (base, node.module) if part)
            for a in node.names:
                full = f"{source}.{a.name}"
                yield full if full in modules() else source


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Names of which each leads to the one before, if there are such."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_a_circle_is_found() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_no_circles() -> None:
    graph = {name: {m for m in imported(name) if m in modules() and m != name} for name in modules()}
    assert circle(graph) == []


def test_imports_are_at_the_top() -> None:
    functions = {
        f"{name}.{f.name}": f
        for name, tree in modules().items()
        if name not in LATE
        for f in statements(tree)
        if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    inside = [
        name
        for name, f in functions.items()
        if "bench.rivals" not in name and any(isinstance(n, (ast.Import, ast.ImportFrom)) for n in statements(f))
    ]
    assert inside == []
