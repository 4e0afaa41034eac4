"""Kernels and launches on CPUs. A kernel is a function that the runtime calls once per iteration, with a closure that
holds the captured values. A launch fills a closure and passes both to the runtime.

In addition to the captures in the loop IR, a closure may hold the number of threads and, in a debug build, the limits
of buffers and the address of the report.
"""

from __future__ import annotations

from ..expr.nodes import Var
from ..ir.nodes import Kernel, Launch
from .checks import REPORT, high_limit, low_limit
from .context import Context, Module
from .function import SLOT, Closure, Function, symbol
from .memory import buffer_pointer

THREADS = "#threads"
SCRATCH = "#scratch"
_OF_BUFFERS = (buffer_pointer, low_limit, high_limit)


def begin_kernel(module: Module, kernel: Kernel) -> Function:
    """Begin the function of a kernel, with its variable bound; the caller writes its body."""
    buffers = [name(b.name) for b in kernel.buffers for name in _OF_BUFFERS]
    captures = [*(v.name for v in kernel.scalars), *buffers, THREADS, REPORT]
    closure = module.closures[kernel.name] = Closure(kernel.name, captures)
    takes = "ptr noalias %closure, i64 %index, ptr noalias %scratch"
    fn = Function(f"define internal i32 {_symbol(module, kernel.name)}({takes}) #0", closure, "%closure")
    fn.bind(SCRATCH, "%scratch")
    index = "%index"
    if isinstance(kernel.min, Var):
        index = fn.value(f"add nsw i64 %index, {fn.resolve(kernel.min.name, 'i64')}")
    fn.bind(kernel.var, index)
    return fn


def _symbol(module: Module, kernel: str) -> str:
    return symbol(f"{module.name}.{kernel}")


def write_launch(ctx: Context, s: Launch) -> None:
    """Fill a closure and pass it to the runtime with the kernel."""
    fn, kernel, closure = ctx.fn, ctx.module.kernels[s.kernel], ctx.module.closures[s.kernel]
    scalars = dict(zip([v.name for v in kernel.scalars], s.scalars, strict=True))
    pairs = list(zip(kernel.buffers, s.buffers, strict=True))
    others = {name(b.name): name(given) for b, given in pairs for name in _OF_BUFFERS}
    values = [
        ctx.value(scalars[x.name]) if x.name in scalars else fn.resolve(others.get(x.name, x.name), x.type_)
        for x in closure.slots
    ]
    memory = fn.alloca(f"[{max(closure.size, SLOT)} x i8]", "closure")
    for slot, value in zip(closure.slots, values, strict=True):
        place = fn.effect_value(f"getelementptr inbounds i8, ptr {memory}, i64 {slot.byte}")
        fn.effect(f"store {slot.type_} {value}, ptr {place}, align 8")
    count = fn.value(f"call i64 @llvm.smax.i64(i64 {ctx.value(s.extent)}, i64 0)")
    scratch = "0" if s.scratch is None else ctx.value(s.scratch)
    threads = fn.resolve(THREADS, "i64")
    operands = f"ptr {_symbol(ctx.module, s.kernel)}, ptr {memory}, i64 {count}, i64 {scratch}, i64 {threads}"
    code = fn.effect_value(f"call i32 @pantile_parallel_for({operands})")
    fn.forget_all_loads()
    fn.fail_if(fn.effect_value(f"icmp ne i32 {code}, 0"), code)
