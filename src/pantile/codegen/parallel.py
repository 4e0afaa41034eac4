"""Parallel loops: the body becomes a function of its own that the runtime calls once per iteration.

What the body uses from around it (scalars, buffers, the thread count) is put in a closure, one slot per value, as the
body asks for it while it is being written.
"""

from __future__ import annotations

from ..ir.nodes import For
from .context import Context
from .function import Function
from .names import symbol

THREADS = "#threads"
SCRATCH = "#scratch"
_SLOT = 8


class Closure:
    """The frame of a parallel body: values of the function around it."""

    def __init__(self, outer: Function) -> None:
        self.outer = outer
        self.captured: list[tuple[int, str, str]] = []  # byte, LLVM type, operand
        self.size = 0
        self.asked: list[tuple[str, str]] = []  # names of the function around it, with their types

    def place(self, name: str, type_: str) -> int:
        self.asked.append((name, type_))
        return self.add(type_, self.outer.resolve(name, type_))

    def add(self, type_: str, operand: str) -> int:
        """One more value; the byte at which it lies."""
        byte = self.size
        self.captured.append((byte, type_, operand))
        self.size += _slots(type_) * _SLOT
        return byte


def _slots(type_: str) -> int:
    """Enough room for any scalar, or for the lanes of a vector of the widest."""
    return int(type_[1:].split(" ")[0]) if type_.startswith("<") else 1


def begin_body(ctx: Context, loop: For) -> tuple[Function, Closure]:
    """The function of a parallel loop's body, with its loop variable bound."""
    closure = Closure(ctx.fn)
    name = symbol(f"{ctx.module.name}.{loop.var}.{ctx.module.bodies.new_number()}")
    head = f"define internal i32 {name}(ptr noalias %closure, i64 %index, ptr noalias %scratch) #0"
    body = Function(head, closure, "%closure")
    body.bind(SCRATCH, "%scratch")
    first = f"#first {loop.var}"
    ctx.fn.bind(first, ctx.value(loop.min))
    low = body.resolve(first, "i64") if ctx.fn.names[first] != "0" else "0"
    body.bind(loop.var, "%index" if low == "0" else body.value(f"add nsw i64 %index, {low}"))
    return body, closure


def drafted_body(ctx: Context, body: Function, closure: Closure) -> Function | None:
    """The body as it was written the first time, if the module is written again: it asks for the same names."""
    found = ctx.module.bodies.draft(body)
    if found is None:
        return None
    draft, asked = found
    for name, type_ in asked[len(closure.asked) :]:
        closure.place(name, type_)
    return draft


def write_region(ctx: Context, loop: For, body: Function, closure: Closure) -> None:
    """Fill the closure and hand the finished body to the runtime."""
    fn = ctx.fn
    fn.has_regions = True
    ctx.module.bodies.keep_draft(body, closure.asked)
    name, parameters = ctx.module.bodies.add(body, closure.size)
    for value in parameters:
        closure.add("i64", str(value))
    memory = fn.alloca(f"[{max(closure.size, _SLOT)} x i8]", "closure")
    for byte, type_, operand in closure.captured:
        slot = fn.effect_value(f"getelementptr inbounds i8, ptr {memory}, i64 {byte}")
        fn.effect(f"store {type_} {operand}, ptr {slot}, align 8")
    count = fn.value(f"call i64 @llvm.smax.i64(i64 {ctx.value(loop.extent)}, i64 0)")
    scratch = "0" if loop.scratch is None else ctx.value(loop.scratch)
    threads = fn.resolve(THREADS, "i64")
    operands = f"ptr {name}, ptr {memory}, i64 {count}, i64 {scratch}, i64 {threads}"
    code = fn.effect_value(f"call i32 @pantile_parallel_for({operands})")
    fn.forget_all_loads()
    fn.fail_if(fn.effect_value(f"icmp ne i32 {code}, 0"), code)
