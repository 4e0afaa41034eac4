"""Writes loads and stores of every kind: dense, reversed, strided, lane by lane, masked.

A store writes exactly the elements that its active lanes address. A load may read more: the elements between those of a
strided vector; elements that other loads of the statement address, if one wide load serves several; and bytes of the
same aligned word, if small elements are gathered by words.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from ..dataclass import dataclass
from ..errors import InternalError
from ..expr.congruence import ANY, Class
from ..expr.linear import Linear, linear
from ..expr.nodes import Broadcast, Cast, Const, Expr, Load, Op, Shuffle
from ..expr.runs import Run
from ..expr.types import UINT8, DType
from ..expr.visit import loaded, names
from ..ir.atomic import combined
from ..ir.nodes import Manner, Prefetch, Store
from ..target.gpu import LONGEST_ACCESS, copies_asynchronously
from .cache_operators import load_by
from .checks import check_access
from .context import Context
from .opaque_rows import hidden
from .rounding import bfloat_bits, bfloat_from_bits
from .strided_loads import STRIDES, Affine, affine, places, split_offset
from .types import integer, integer_type, mangled, memory_type, value_type
from .vectors import column, gather, gather_pairs, pick, pick_bytes, pick_integer, reverse, shuffle, spread

_NONTEMPORAL = ", !nontemporal !1"
_MANY_LANES = 32  # lanes with separate addresses
_LEAST_COPIED = 4  # minimum bytes of an asynchronous copy
_GATHERED = (4, 8)  # possible bytes per lane of a gather instruction
_WORD = 4  # the minimum of these
_INVARIANT = ", !invariant.load !0"


def buffer_pointer(buffer: str) -> str:
    """The name under which a buffer's base pointer is bound."""
    return f"*{buffer}"


# Loads


def write_load(ctx: Context, e: Load) -> str:
    """Write a load, and return the operand that holds its values."""
    mask = _live_mask(e.mask)
    check_access(ctx, "load", e.buffer, e.indices[0], mask)
    if mask is not None:
        raw = _load_masked(ctx, e, mask)
    elif e.lanes == 1:
        raw = _load_at(ctx, e.buffer, e.dtype, 1, *_scalar_address(ctx, e.buffer, e.indices[0]))
    else:
        raw = _load_vector(ctx, e)
    return from_memory(ctx, e.dtype, e.lanes, raw)


def _live_mask(mask: Expr | None) -> Expr | None:
    return None if isinstance(mask, Const) and mask.value else mask


def _load_vector(ctx: Context, e: Load) -> str:
    index = affine(e.indices[0])
    element = memory_type(e.dtype)
    stride = None if index is None else index.constant_stride
    if index is None:
        return _load_lanes(ctx, e, index)
    rest = _start(ctx, e.buffer, index.rest)
    if stride == 0:
        return spread(ctx.fn, _load_at(ctx, e.buffer, e.dtype, 1, rest, index.offset), element, e.lanes)
    if stride == 1:
        return _load_at(ctx, e.buffer, e.dtype, e.lanes, rest, index.offset)
    if stride == -1:
        low = _load_at(ctx, e.buffer, e.dtype, e.lanes, rest, index.offset - e.lanes + 1)
        return reverse(ctx.fn, low, element, e.lanes)
    if stride is not None and stride in STRIDES and e.lanes >= 4:
        return _load_strided(ctx, e, index, rest, stride)
    return _load_column(ctx, e, index) or _load_lanes(ctx, e, index)


def _load_strided(ctx: Context, e: Load, index: Affine, rest: _Start, stride: int) -> str:
    """Load a strided vector: by a wide load that is shared with the loads of the elements in between, or else by
    `stride` loads, the last of which ends at the last element.
    """
    element, lanes = memory_type(e.dtype), e.lanes
    window = ctx.groups.window(e, index, stride)
    if window is not None:
        wide = _load_at(ctx, e.buffer, e.dtype, lanes * stride, rest, window)
        order = [lane * stride + index.offset - window for lane in range(lanes)]
        return shuffle(ctx.fn, [wide], element, lanes * stride, order)
    last_start = stride * (lanes - 1) + 1 - lanes
    starts = [*range(0, (stride - 1) * lanes, lanes), last_start]
    pieces = [_load_at(ctx, e.buffer, e.dtype, lanes, rest, index.offset + s) for s in starts]
    order = []
    for position in range(0, stride * lanes, stride):
        piece = position // lanes
        order.append(piece * lanes + position - starts[piece])
    return shuffle(ctx.fn, pieces, element, lanes, order)


def _load_column(ctx: Context, e: Load, index: Affine) -> str | None:
    """Load a column of a matrix whose other columns are also loaded: load its rows and transpose square blocks."""
    size = ctx.module.target.vector_bits // (8 * e.dtype.bytes)
    while size > 1 and (e.lanes % size or ctx.groups.window(e, index, size) is None):
        size //= 2
    first = ctx.groups.window(e, index, size)
    if size < 2 or first is None:
        return None
    rows = [
        _load_at(ctx, e.buffer, e.dtype, size, rest, offset - index.offset + first)
        for rest, offset in _lane_addresses(ctx, e.buffer, e.indices[0], e.lanes, index)
    ]
    return column(ctx.fn, rows, memory_type(e.dtype), size, index.offset - first)


def load_lane(ctx: Context, e: Load, run: range, lanes: int) -> str:
    """Load a scalar together with adjacent elements as a vector, and broadcast it (see `lanes`)."""
    check_access(ctx, "load", e.buffer, e.indices[0], None)
    rest, offset = _scalar_address(ctx, e.buffer, e.indices[0])
    together = _load_at(ctx, e.buffer, e.dtype, len(run), rest, run.start)
    return shuffle(ctx.fn, [together], memory_type(e.dtype), len(run), [offset - run.start] * lanes)


def _load_lanes(ctx: Context, e: Load, index: Affine | None) -> str:
    if index is None:
        return _load_runs(ctx, e)
    places = _lane_addresses(ctx, e.buffer, e.indices[0], e.lanes, index)
    return gather(ctx.fn, [_load_at(ctx, e.buffer, e.dtype, 1, *p) for p in places], memory_type(e.dtype))


def _load_runs(ctx: Context, e: Load) -> str:
    """Load one run of adjacent elements per lane, which is shared with the gathers of the other elements of the run."""
    run, offset, element = ctx.groups.run(e), places(e).constant, memory_type(e.dtype)
    if _is_gathered(ctx, e, run.width):
        return _gathered(ctx, e, run, f"splat ({integer_type(1)} true)")
    starts = [_Start(_lane_start(ctx, e, lane)) for lane in range(e.lanes)]
    if run.width > 1 and e.dtype.bytes == 1:
        words = gather_pairs(ctx.fn, [_load_pixel(ctx, e.buffer, run, start) for start in starts])
        return pick_bytes(ctx.fn, words, e.lanes, offset - run.first)
    pieces = [_load_at(ctx, e.buffer, e.dtype, run.width, start, run.first) for start in starts]
    if run.width == 1:
        return gather(ctx.fn, pieces, element)
    return column(ctx.fn, pieces, element, run.width, offset - run.first)


def _is_gathered(ctx: Context, e: Load, width: int = 1) -> bool:
    """Whether to load all lanes by one gather instruction.

    If the indices depend only on coordinates, lanes are nearly adjacent, and scalar loads are as fast or faster
    (measured: 15 % for x // 2).
    """
    is_possible = width * e.dtype.bytes in _GATHERED or width == 1 and e.dtype.bytes < _WORD
    return ctx.module.target.gathers and is_possible and bool(loaded(e.indices[0]))


def _gathered(ctx: Context, e: Load, run: Run, mask: str) -> str:
    """Gather all lanes at once, each an element or a run of adjacent elements as one word. Inactive lanes are zero."""
    lanes, size, element = e.lanes, e.dtype.bytes, memory_type(e.dtype)
    pointer, by = _apart(ctx, e, run)
    if size < _WORD and run.width == 1:
        return _gathered_words(ctx, e, pointer, by, mask)
    word = element if run.width == 1 else integer_type(8 * run.width * size)
    addresses = f"getelementptr {element}, ptr {pointer}, <{lanes} x {ctx.module.index}> {by}"
    words = _gather(ctx, e, word, size, addresses, mask)
    if run.width == 1:
        return words
    apart = ctx.fn.value(f"bitcast <{lanes} x {word}> {words} to <{lanes * run.width} x {element}>")
    order = range(places(e).constant - run.first, lanes * run.width, run.width)
    return shuffle(ctx.fn, [apart], element, lanes * run.width, order)


def _gathered_words(ctx: Context, e: Load, pointer: str, by: str, mask: str) -> str:
    """Gather small elements by loading the aligned words around them, which never cross a page, and shifting these."""
    fn, lanes, index, size = ctx.fn, e.lanes, ctx.module.index, e.dtype.bytes
    word, words, part = integer_type(8 * _WORD), integer_type(8 * _WORD, lanes), integer_type(8 * size, lanes)
    indices = f"<{lanes} x {index}>"
    first = fn.value(f"call ptr @llvm.ptrmask.p0.{index}(ptr {pointer}, {index} {-_WORD})")
    offset = fn.value(f"and {index} {fn.value(f'ptrtoint ptr {pointer} to {index}')}, {_WORD - 1}")
    at = fn.value(f"mul {indices} {by}, splat ({index} {size})") if size > 1 else by
    at = fn.value(f"add {indices} {at}, {spread(fn, offset, index, lanes)}")
    numbers = fn.value(f"ashr {indices} {at}, splat ({index} {_WORD.bit_length() - 1})")
    gathered = _gather(ctx, e, word, _WORD, f"getelementptr {word}, ptr {first}, {indices} {numbers}", mask)
    bits = fn.value(f"trunc {indices} {fn.value(f'shl {indices} {at}, splat ({index} 3)')} to {words}")
    bits = fn.value(f"and {words} {bits}, splat ({word} {8 * _WORD - 1})")
    parts = fn.value(f"trunc {words} {fn.value(f'lshr {words} {gathered}, {bits}')} to {part}")
    vector = memory_type(e.dtype, lanes)
    return parts if vector == part else fn.value(f"bitcast {part} {parts} to {vector}")


def _gather(ctx: Context, e: Load, word: str, align: int, addresses: str, mask: str) -> str:
    """Write the gather instruction."""
    vector, where = f"<{e.lanes} x {word}>", f"<{e.lanes} x ptr> align {align} {ctx.fn.value(addresses)}"
    operands = f"{where}, {integer_type(1, e.lanes)} {mask}, {vector} zeroinitializer"
    call = f"call {vector} @llvm.masked.gather.{mangled(vector)}.v{e.lanes}p0({operands})"
    return ctx.fn.load(e.buffer, call, _load_note(ctx, e.buffer))


def _apart(ctx: Context, e: Load, run: Run) -> tuple[str, str]:
    """A pointer that all lanes share, and a vector with each lane's offset from it, in elements."""
    fn, lanes, index = ctx.fn, e.lanes, ctx.module.index
    form = places(e)
    shared, steps, moved = Linear(0), [0] * lanes, f"<{lanes} x {index}>"
    total: str | None = None
    for atom, n in form.terms.values():
        known = _in_line(atom)
        if known is None:
            value = ctx.value(atom)
            value = value if n == 1 else fn.value(f"mul {moved} {value}, splat ({index} {n})")
            total = value if total is None else fn.value(f"add {moved} {total}, {value}")
        else:  # the common part goes into the address, so that offsets are small
            shared = shared if known[0] is None else shared.plus(linear(known[0]), n)
            steps = [s + n * by for s, by in zip(steps, known[1], strict=True)]
    if any(steps):
        numbers = f"<{', '.join(f'{index} {s}' for s in steps)}>"
        total = numbers if total is None else fn.value(f"add {moved} {total}, {numbers}")
    start = _start(ctx, e.buffer, Linear(0, shared.terms).expr() if shared.terms else None)
    pointer = _pointer(ctx, e.buffer, e.dtype, start, run.first + shared.constant)
    return pointer, total or "zeroinitializer"


def _in_line(e: Expr) -> tuple[Expr | None, list[int]] | None:
    """The common part of an index vector, and the offset of each lane from it; None if offsets are not constant."""
    if isinstance(e, Shuffle) and len(e.vectors) == 1:
        inner = _in_line(e.vectors[0])
        return inner and (inner[0], [inner[1][lane] for lane in e.order])
    line = affine(e)
    stride = None if line is None else line.constant_stride
    if line is None or stride is None:
        return None
    return line.rest, [line.offset + lane * stride for lane in range(e.lanes)]


def _load_pixel(ctx: Context, buffer: str, run: Run, start: _Start) -> str:
    """Load three or four adjacent bytes as the low bytes of an i64."""
    pointer = _pointer(ctx, buffer, UINT8, start, run.first)
    if run.width == 4:
        return ctx.fn.value(f"zext i32 {_load(ctx, buffer, 'i32', 4, pointer, 1)} to i64")
    low = ctx.fn.value(f"zext i16 {_load(ctx, buffer, 'i16', 2, pointer, 1)} to i64")
    third = _load_at(ctx, buffer, UINT8, 1, start, run.first + 2)
    high = ctx.fn.value(f"shl i64 {ctx.fn.value(f'zext i8 {third} to i64')}, 16")
    return ctx.fn.value(f"or i64 {low}, {high}")


def _lane_start(ctx: Context, e: Load, lane: int) -> str | None:
    """One lane of an index without its constant. Terms that are equal in all lanes come first, so that lanes share
    their sum."""
    terms = sorted(places(e).terms.values(), key=lambda term: not isinstance(term[0], Broadcast))
    total: str | None = None
    for atom, factor in terms:
        value = lane_value(ctx, atom, lane)
        value = value if factor == 1 else ctx.fn.value(f"mul {ctx.module.index} {value}, {factor}")
        total = value if total is None else ctx.fn.value(f"add {ctx.module.index} {total}, {value}")
    return total


def _load_at(ctx: Context, buffer: str, t: DType, lanes: int, start: _Start, offset: int) -> str:
    """Load consecutive elements in their representation in memory."""
    pointer, align = _pointer(ctx, buffer, t, start, offset), _alignment(ctx, buffer, t, start, offset)
    return _load(ctx, buffer, memory_type(t, lanes), lanes * t.bytes, pointer, align)


def _load(ctx: Context, buffer: str, type_: str, size: int, pointer: str, align: int) -> str:
    """Load a value with this number of bytes, or return the name of an equal load."""
    operator = ctx.operators.get(buffer)
    if operator is None:
        return ctx.fn.load(buffer, f"load {type_}, ptr {pointer}, align {align}", _load_note(ctx, buffer))
    key = (operator, type_, pointer, align)
    return ctx.fn.once(key, lambda: load_by(ctx.fn, operator, type_, size, pointer, align))


def _load_note(ctx: Context, buffer: str) -> str:
    return ctx.module.alias[buffer] + (_INVARIANT if buffer in ctx.places.constant else "")


def _load_masked(ctx: Context, e: Load, mask: Expr) -> str:
    """Load under a mask; inactive lanes are zero.

    On CPUs, dense vectors are loaded by one masked load, and others by a gather if the target has one. All others are
    loaded lane by lane, each behind a branch. So are dense vectors on GPUs, which have no masked loads: LLVM (22)
    expands masked loads itself only for non-constant masks; with constant masks, it leaves inactive lanes undefined.
    """
    index = affine(e.indices[0]) if e.lanes > 1 else None
    if index is not None and index.constant_stride == 1 and not ctx.module.target.has_blocks:
        return _load_masked_dense(ctx, e, index, ctx.value(mask))
    if index is None and e.lanes > 1 and _is_gathered(ctx, e):
        return _gathered(ctx, e, Run(places(e).constant, 1), ctx.value(mask))
    chosen, result = ctx.value(mask), "zeroinitializer"
    for lane, place in enumerate(_lane_addresses(ctx, e.buffer, e.indices[0], e.lanes, index)):
        condition = pick(ctx.fn, chosen, "i1", e.lanes, lane)
        result = _load_lane_if(ctx, e, condition, _pointer(ctx, e.buffer, e.dtype, *place), lane, result)
    return result


def _load_lane_if(ctx: Context, e: Load, condition: str, pointer: str, lane: int, result: str) -> str:
    """Load one more lane of `result` behind a branch."""
    fn, element, vector = ctx.fn, memory_type(e.dtype), memory_type(e.dtype, e.lanes)
    before, load, join = fn.label, fn.new_label("load"), fn.new_label("join")
    fn.branch_if(condition, load, join)
    fn.start(load)
    operator, size = ctx.operators.get(e.buffer), e.dtype.bytes
    if operator is None:
        value = fn.effect_value(f"load {element}, ptr {pointer}, align {size}{_load_note(ctx, e.buffer)}")
    else:
        value = load_by(fn, operator, element, size, pointer, size)
    if e.lanes > 1:
        value = fn.effect_value(f"insertelement {vector} {result}, {element} {value}, i64 {lane}")
    fn.branch(join)
    fn.start(join)
    return fn.effect_value(f"phi {vector} [ {value}, %{load} ], [ {result}, %{before} ]")


def _load_masked_dense(ctx: Context, e: Load, index: Affine, mask: str) -> str:
    vector = memory_type(e.dtype, e.lanes)
    pointer = _pointer(ctx, e.buffer, e.dtype, _start(ctx, e.buffer, index.rest), index.offset)
    operands = f"ptr align {e.dtype.bytes} {pointer}, {integer_type(1, e.lanes)} {mask}, {vector} zeroinitializer"
    call = f"call {vector} @llvm.masked.load.{mangled(vector)}.p0({operands})"
    return ctx.fn.load(e.buffer, call, _load_note(ctx, e.buffer))


# Stores


def write_store(ctx: Context, s: Store) -> None:
    """Write a store of the lanes of a value. If two lanes have the same index, the later one wins."""
    if s.manner is Manner.ATOMIC:
        _combine(ctx, s)
        return
    if s.manner is Manner.ASYNCHRONOUS and isinstance(s.value, Load) and _copy(ctx, s, s.value):
        return
    mask = _live_mask(s.mask)
    t, lanes = s.value.dtype, s.value.lanes
    raw = to_memory(ctx, t, lanes, ctx.value(s.value))
    check_access(ctx, "store", s.buffer, s.indices[0], mask)
    index = affine(s.indices[0]) if lanes > 1 else None
    stride = None if index is None else index.constant_stride
    if mask is not None:
        _store_masked(ctx, s, raw, index, mask)
    elif lanes == 1:
        _store_at(ctx, s, t, 1, raw, *_scalar_address(ctx, s.buffer, s.indices[0]))
    elif index is not None and stride == 1:
        _store_at(ctx, s, t, lanes, raw, _start(ctx, s.buffer, index.rest), index.offset)
    elif index is not None and stride == -1:
        reversed_lanes = reverse(ctx.fn, raw, memory_type(t), lanes)
        _store_at(ctx, s, t, lanes, reversed_lanes, _start(ctx, s.buffer, index.rest), index.offset - lanes + 1)
    else:
        for lane, place in enumerate(_lane_addresses(ctx, s.buffer, s.indices[0], lanes, index)):
            _store_at(ctx, s, t, 1, pick(ctx.fn, raw, memory_type(t), lanes, lane), *place)
    ctx.fn.forget_loads(s.buffer)


def _copy(ctx: Context, s: Store, e: Load) -> bool:
    """Write an asynchronous copy, as wide as the alignment allows. Return False if the target has none that is narrow
    enough."""
    if not copies_asynchronously(ctx.module.target.cpu):
        return False
    t, lanes = e.dtype, e.lanes
    ends = ((s.buffer, s.indices[0]), (e.buffer, e.indices[0]))
    ramps = [affine(i) if lanes > 1 else None for _, i in ends]
    dense = [
        (_start(ctx, b, a.rest), a.offset)
        for (b, _), a in zip(ends, ramps, strict=True)
        if a is not None and a.constant_stride == 1
    ]
    run = lanes if len(dense) == len(ends) else 1  # adjacent elements
    each = [_lane_addresses(ctx, b, i, lanes, a) for (b, i), a in zip(ends, ramps, strict=True)] if run == 1 else []
    places = [tuple(dense)] if run > 1 else list(zip(*each, strict=True))
    known = [_alignment(ctx, b, t, *p) for pair in places for (b, _), p in zip(ends, pair, strict=True)]
    size = gcd(LONGEST_ACCESS, run * t.bytes, *known)
    if size < _LEAST_COPIED:
        return False
    for (to, there), (from_, here) in places:
        for k in range(0, run, size // t.bytes):
            shared = _in_space(ctx, _pointer(ctx, s.buffer, t, to, there + k), 3)
            source = _in_space(ctx, _pointer(ctx, e.buffer, t, from_, here + k), 1)
            # Copies of the largest size can bypass the L1 cache.
            by = "cg" if size == LONGEST_ACCESS else "ca"
            ctx.fn.effect(f"call void @llvm.nvvm.cp.async.{by}.shared.global.{size}({shared}, {source})")
    ctx.fn.forget_loads(s.buffer)
    return True


def shared_address(ctx: Context, e: Load) -> str:
    """The address in shared memory of a load of adjacent elements, which must be aligned to 16 bytes."""
    index = affine(e.indices[0])
    if index is None or index.constant_stride != 1 or _live_mask(e.mask) is not None:
        raise InternalError(f"{e} is no row")
    start = _start(ctx, e.buffer, index.rest)
    if _alignment(ctx, e.buffer, e.dtype, start, index.offset) < LONGEST_ACCESS:
        raise InternalError(f"{e} is not known to begin at a multiple of {LONGEST_ACCESS} bytes")
    return _in_space(ctx, _pointer(ctx, e.buffer, e.dtype, start, index.offset), 3)


def _in_space(ctx: Context, pointer: str, space: int) -> str:
    kind = f"ptr addrspace({space})"
    return f"{kind} {ctx.fn.value(f'addrspacecast ptr {pointer} to {kind}')}"


def _combine(ctx: Context, s: Store) -> None:
    """Write an atomic read-modify-write of one element, whose old value is not used."""
    name, term = combined(s)
    t, value = term.dtype, ctx.value(term)
    start, offset = _scalar_address(ctx, s.buffer, s.indices[0])
    pointer = _pointer(ctx, s.buffer, t, start, offset)
    kind = "f" if t.is_float else "u" if name in ("min", "max") and t.kind == "uint" else ""
    operand = f'{memory_type(t)} {to_memory(ctx, t, 1, value)} syncscope("device") monotonic, align {t.bytes}'
    ctx.fn.effect(f"atomicrmw {kind}{name} ptr {pointer}, {operand}{ctx.module.alias[s.buffer]}")
    ctx.fn.forget_loads(s.buffer)


def _store_at(ctx: Context, s: Store, t: DType, lanes: int, raw: str, start: _Start, offset: int) -> None:
    pointer, align = _pointer(ctx, s.buffer, t, start, offset), _alignment(ctx, s.buffer, t, start, offset)
    note = ctx.module.alias[s.buffer] + (_NONTEMPORAL if s.manner is Manner.NONTEMPORAL else "")
    ctx.fn.effect(f"store {memory_type(t, lanes)} {raw}, ptr {pointer}, align {align}{note}")


def _store_masked(ctx: Context, s: Store, raw: str, index: Affine | None, mask: Expr) -> None:
    fn, t, lanes = ctx.fn, s.value.dtype, s.value.lanes
    chosen, note = ctx.value(mask), ctx.module.alias[s.buffer]
    if index is not None and index.constant_stride == 1:
        vector = memory_type(t, lanes)
        pointer = _pointer(ctx, s.buffer, t, _start(ctx, s.buffer, index.rest), index.offset)
        chosen = _opaque_mask(ctx, t, lanes, chosen)
        operands = f"{vector} {raw}, ptr align {t.bytes} {pointer}, {integer_type(1, lanes)} {chosen}"
        fn.effect(f"call void @llvm.masked.store.{mangled(vector)}.p0({operands}){note}")
        return
    for lane, place in enumerate(_lane_addresses(ctx, s.buffer, s.indices[0], lanes, index)):
        value = pick(fn, raw, memory_type(t), lanes, lane)
        condition = pick(fn, chosen, "i1", lanes, lane)
        pointer = _pointer(ctx, s.buffer, t, *place)
        store, join = fn.new_label("store"), fn.new_label("join")
        fn.branch_if(condition, store, join)
        fn.start(store)
        fn.effect(f"store {memory_type(t)} {value}, ptr {pointer}, align {t.bytes}{note}")
        fn.branch(join)
        fn.start(join)


def _opaque_mask(ctx: Context, t: DType, lanes: int, mask: str) -> str:
    """Hide from LLVM that a mask is constant if it would then store too many bytes.

    If a constant mask has a single lane, LLVM (22) with AVX-512 stores it in the type that the value had before it was
    narrowed, and so beyond the lane. An opaque mask costs nothing in a loop, since the instruction is hoisted.
    """
    if ctx.module.target.architecture != "x86" or not memory_type(t).startswith("i") or t.bytes == 8:
        return mask
    true = hidden(ctx.fn, "1", "i8")
    every = spread(ctx.fn, ctx.fn.value(f"trunc i8 {true} to i1"), "i1", lanes)
    return ctx.fn.value(f"and {integer_type(1, lanes)} {every}, {mask}")


def write_prefetch(ctx: Context, s: Prefetch) -> None:
    """Prefetch the cache line of the first element addressed, for reading, into all cache levels."""
    index = s.indices[0]
    ramp = affine(index) if index.lanes > 1 else None
    place = _lane_addresses(ctx, s.buffer, index, index.lanes, ramp)[0]
    pointer = _pointer(ctx, s.buffer, ctx.module.dtypes[s.buffer], *place)
    ctx.fn.effect(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")


# Addresses: (start, constant offset), counted in elements


@dataclass(frozen=True)
class _Start:
    """An operand, or None for zero, that is added to a pointer, which is the buffer's by default."""

    rest: str | None
    pointer: str | None = None
    known: Class = ANY  # congruence class of the index relative to the buffer's pointer


_Place = tuple[_Start, int]


def _alignment(ctx: Context, buffer: str, t: DType, start: _Start, offset: int) -> int:
    """The known alignment of an element's address, in bytes."""
    modulus, r = start.known
    return ctx.places.alignment(buffer, (modulus, r + offset), t.bytes)


def _pointer(ctx: Context, buffer: str, t: DType, start: _Start, offset: int) -> str:
    """A pointer to an element. A constant offset is added last, so that accesses to nearby elements share the rest and
    the offset fits an addressing mode.

    The sum without the offset may lie outside the buffer, so the steps are not marked inbounds.
    """
    pointer = start.pointer or ctx.fn.resolve(buffer_pointer(buffer), "ptr")
    element, index = memory_type(t), ctx.module.index
    if start.rest is not None:
        pointer = ctx.fn.value(f"getelementptr {element}, ptr {pointer}, {index} {start.rest}")
    if offset:
        pointer = ctx.fn.value(f"getelementptr {element}, ptr {pointer}, {index} {offset}")
    return pointer


def _start(ctx: Context, buffer: str | None, rest: Expr | None) -> _Start:
    """The start of an index. It is relative to the beginning of a row if the enclosing loop has hoisted that."""
    if rest is None:
        return _Start(None, None, (0, 0))
    row = None if buffer is None else ctx.rows.row(buffer, rest)
    if row is None:
        return _Start(ctx.value(ctx.keep(rest)), None, ctx.places.of(buffer, rest))
    return _Start(ctx.value(ctx.keep(row.rest)), row.pointer)


def _scalar_address(ctx: Context, buffer: str | None, index: Expr) -> _Place:
    if not ctx.threads or loaded(index):
        return _new_scalar_address(ctx, buffer, index)
    # Unrolled iterations share many indices: the same nodes, with the same values of their names.
    named = tuple([ctx.fn.names.get(n) for n in names(index)])
    place, _ = ctx.fn.once((buffer, id(index), named), lambda: (_new_scalar_address(ctx, buffer, index), index))
    return place


def _new_scalar_address(ctx: Context, buffer: str | None, index: Expr) -> _Place:
    rest, offset = split_offset(index)
    return _start(ctx, buffer, rest), offset


def _lane_addresses(ctx: Context, buffer: str | None, index: Expr, lanes: int, known: Affine | None) -> list[_Place]:
    if lanes == 1:
        return [_scalar_address(ctx, buffer, index)]
    if known is None:
        return [(_Start(lane_value(ctx, index, lane)), 0) for lane in range(lanes)]
    start, stride = _start(ctx, buffer, known.rest), known.constant_stride
    if stride is not None:
        return [(start, known.offset + lane * stride) for lane in range(lanes)]
    step = ctx.value(known.stride)
    rests = [_advanced(ctx, start.rest, step, lane) for lane in range(lanes)]
    if lanes >= _MANY_LANES and not ctx.threads:
        # Otherwise, LLVM's strength reduction would try many ways to compute them from each other.
        rests = [None if r is None else hidden(ctx.fn, r, ctx.module.index) for r in rests]
    return [(replace(start, rest=rest, known=ANY), known.offset) for rest in rests]


def _advanced(ctx: Context, rest: str | None, step: str, lane: int) -> str | None:
    if lane == 0:
        return rest
    index = ctx.module.index
    distance = step if lane == 1 else ctx.fn.value(f"mul nsw {index} {step}, {lane}")
    return distance if rest is None else ctx.fn.value(f"add nsw {index} {rest}, {distance}")


def lane_value(ctx: Context, index: Expr, lane: int) -> str:
    """One lane of an index. Sums and extensions are computed on the scalar, so that narrow vectors stay narrow."""
    ramp, t = affine(index), ctx.module.index
    if ramp is not None:
        (start, offset) = _lane_addresses(ctx, None, index, index.lanes, ramp)[lane]
        if start.rest is None:
            return str(offset)
        return ctx.fn.value(f"add nsw {t} {start.rest}, {offset}") if offset else start.rest
    if isinstance(index, Shuffle):
        return _shuffled_lane(ctx, index, lane)
    if isinstance(index, Op) and index.op in ("add", "sub", "mul") and value_type(index.dtype) == t:
        a, b = (lane_value(ctx, x, lane) for x in index.args)
        return ctx.fn.value(f"{index.op} {t} {a}, {b}")
    if isinstance(index, Cast) and index.value.dtype.is_int and index.value.dtype.bits < 64 and t == "i64":
        small = index.value.dtype
        return pick_integer(ctx.fn, ctx.value(index.value), small.bits, index.lanes, lane, small.is_signed)
    return pick(ctx.fn, ctx.value(index), t, index.lanes, lane)


def _shuffled_lane(ctx: Context, index: Shuffle, lane: int) -> str:
    chosen = index.order[lane]
    for vector in index.vectors:
        if chosen < vector.lanes:
            return ctx.value(vector) if vector.lanes == 1 else lane_value(ctx, vector, chosen)
        chosen -= vector.lanes
    raise InternalError(f"{index} has no lane {index.order[lane]}")


# Between memory and registers


def from_memory(ctx: Context, t: DType, lanes: int, raw: str) -> str:
    if t.is_bool:
        return ctx.fn.value(f"icmp ne {memory_type(t, lanes)} {raw}, {integer(0, 8, lanes)}")
    return bfloat_from_bits(ctx.fn, raw, lanes) if t.kind == "bfloat" else raw


def to_memory(ctx: Context, t: DType, lanes: int, value: str) -> str:
    if t.is_bool:
        return ctx.fn.value(f"zext {value_type(t, lanes)} {value} to {memory_type(t, lanes)}")
    return bfloat_bits(ctx.fn, value, lanes) if t.kind == "bfloat" else value
