"""Names in LLVM text: whatever a program calls its things, they stay names."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from pantile.codegen.compile import optimized
from pantile.codegen.function import readable, symbol
from pantile.errors import InternalError
from pantile.expr.build import cast
from pantile.expr.nodes import Load, var
from pantile.expr.types import INT32
from pantile.ir.nodes import Alloc, Block, Program, Store
from pantile.target import host
from pantile.target.kinds import Kind, Memory
from tests.fuzz.isolate import isolated
from tests.schedule.hostile import TEXTS

from .kernels import Kernel, argument, emitted, i64, loop

NAMES = {**{k: t for k, t in TEXTS.items() if k != "surrogate"}, "letters": "größe", "at": "a@b(c)", "slash": "\\"}


def program(name: str) -> Program:
    """Loops, buffers and the function itself called like this: out[y, x] = 10*y + x, by way of a row."""
    y, x = f"y{name}", f"x{name}"
    row = Load(INT32, 1, f"row{name}", (var(x),))
    place = var(y) * 4 + var(x)
    body = Block(
        (
            loop(x, 4, Store(f"row{name}", (var(x),), cast(INT32, var(y) * 10 + var(x)))),
            loop(x, 4, Store(f"out{name}", (place,), row)),
        )
    )
    rows = Alloc(f"row{name}", INT32, i64(4), Memory.STACK, None, body)
    return Program(
        f"f{name}", (argument(f"out{name}", "int32", writable=True),), (), loop(y, 3, rows, Kind.PARALLEL, i64(0))
    )


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_define_nothing(name: str) -> None:
    text = emitted(program(name))
    assert len(re.findall(r"^define ", text, re.MULTILINE)) == 2
    assert text.isascii()
    if "\0" in name:
        with pytest.raises(InternalError, match="NUL character is not allowed in names"):
            optimized(text, host())
        return
    module = llvm.parse_assembly(text, llvm.create_context())
    assert sum(not f.is_declaration for f in module.functions) == 2
    optimized(text, host())


@pytest.mark.parametrize("name", ["größe", "a@b(c)", 'x"\n', "x" * 10_000])
def test_code_of_such_names_runs(name: str) -> None:
    def check() -> None:
        out = np.zeros(12, np.int32)
        assert Kernel(program(name))({f"out{name}": out}) == 0
        assert out.reshape(3, 4).tolist() == [[10 * y + x for x in range(4)] for y in range(3)]

    isolated(check)


def test_symbols_are_the_bytes_of_the_name() -> None:
    assert symbol("pantile.f.y_1.0") == '@"pantile.f.y_1.0"'
    assert symbol('é"\\\n\0') == '@"\\C3\\A9\\22\\5C\\0A\\00"'
    assert symbol("\udc80") == '@"\\ED\\B2\\80"'


def test_readable_names_are_plain_and_short() -> None:
    assert readable("f.größe") == "f.gr__e."
    assert len(readable("x" * 1000)) < 100
