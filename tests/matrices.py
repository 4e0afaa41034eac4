"""Products of matrices by tensor cores, in any order of their factors and of any types, and random matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import pantile as pt
from pantile.schedule.directives import StageSchedule
from pantile.target.mma import MMAS

Array = np.ndarray[Any, np.dtype[Any]]


class Product(NamedTuple):
    """out[i, j] = the sum of a[i, k]*b[k, j], with `a` and `b` stored in row-major order or the other one."""

    operand: str = "float16"
    accumulator: str = "float32"
    a_by_rows: bool = True
    b_by_rows: bool = True

    def pipeline(self, strict: bool = False, target: str = "cuda-sim") -> pt.Pipeline:
        (i, j), out = pt.vars("i j"), pt.Func("out")
        a, b = (pt.Input(name, self.operand, ndim=2) for name in "ab")
        r = pt.RDom((0, a.shape[1 if self.a_by_rows else 0]), name="r", names="k")
        left = a[i, r.k] if self.a_by_rows else a[r.k, i]
        right = b[r.k, j] if self.b_by_rows else b[j, r.k]
        t = self.accumulator
        out[i, j] = pt.sum(pt.cast(t, left) * pt.cast(t, right), over=r, dtype=t)
        shape = a.shape[0 if self.a_by_rows else 1], b.shape[1 if self.b_by_rows else 0]
        return pt.Pipeline(out, shape=shape, strict=strict, target=target)

    @property
    def terms(self) -> int:
        return MMAS[self.operand, self.accumulator].terms

    def random(self, rows: int, columns: int, terms: int) -> dict[str, Array]:
        """Small integers, whose sums are exact in every type."""
        rng, low = np.random.default_rng(rows + columns + terms), 0 if self.operand == "uint8" else -3
        a, b = (rng.integers(low, 4, shape).astype(self.operand) for shape in ((rows, terms), (terms, columns)))
        return {"a": a if self.a_by_rows else a.T.copy(), "b": b if self.b_by_rows else b.T.copy()}


def of_lanes(s: StageSchedule, i: str, j: str, *around: str) -> StageSchedule:
    """Rows and columns as the lanes of a warp have them in registers."""
    s = s.split(i, "i8", "il", 8).split(j, "j8", "jn", 8).split("jn", "jl", "j2", 2)
    return s.reorder(*around, "i8", "j8", "il", "jl", "j2").lane("il", "jl").unroll("i8").unroll("j8").unroll("j2")


def alone(product: Product, columns: int = 8) -> pt.Schedule:
    """A warp computes 16 rows and as many columns as one instruction, or two; factors come from global memory."""
    out = pt.on("out").copy_out("sums").tile("i", "j", "ib", "jb", "ii", "ji", 16, 32).split("ji", "w", "jw", 16)
    sums = of_lanes(pt.on("sums").compute_at("out", "w").store_in("register"), "i", "j").update()
    sums = (
        sums.split("i", "io", "row", 16).split("j", "jo", "column", columns).split("r.k", "ko", "term", product.terms)
    )
    return pt.Schedule(
        of_lanes(out, "ii", "jw", "ib", "jb", "w").block("ib", "jb").warp("w"),
        sums.reorder("ko", "io", "jo", "row", "column", "term").unroll("jo").tensor_core("row", "column", "term"),
    )


def staged(product: Product, columns: int = 8, padding: int = 8, ahead: int = 1, slices: int = 32) -> pt.Schedule:
    """Blocks of four warps, 32 rows by 16 columns each; slices of the factors are in shared memory."""
    out = pt.on("out").copy_out("sums").tile("i", "j", "ib", "jb", "ii", "ji", 64, 32)
    sums = _of_warps(pt.on("sums").compute_at("out", "jb").store_in("register"), "i", "j")
    update = _warps(of_lanes(sums, "iw", "jw", "wi", "wj").update(), "i", "j")
    update = update.split("iw", "io", "row", 16).split("jw", "jo", "column", columns)
    update = update.split("r.k", "slice", "ki", slices, tail="peel").split("ki", "ko", "term", product.terms)
    update = update.reorder("slice", "wi", "wj", "ko", "io", "jo", "row", "column", "term").warp("wi", "wj")
    a_dims, b_dims = "ik" if product.a_by_rows else "ki", "kj" if product.b_by_rows else "jk"
    return pt.Schedule(
        of_lanes(_of_warps(out, "ii", "ji"), "iw", "jw", "ib", "jb", "wi", "wj").block("ib", "jb"),
        update.unroll("ko").unroll("io").unroll("jo").tensor_core("row", "column", "term"),
        pt.on("a").copy_in("sums", "left", *a_dims),
        _copied("left", a_dims, padding, ahead),
        pt.on("b").copy_in("sums", "right", *b_dims),
        _copied("right", b_dims, padding, ahead),
    )


class Warpgroups(NamedTuple):
    """How a product is cut for warpgroups, which have 64 rows each and so many columns and terms at a time."""

    columns: int = 32
    terms: int = 32
    rows: int = 1  # of warpgroups in a block
    beside: int = 1  # and in each of these rows
    ahead: int = 1
    padding: int = 1

    @property
    def tile(self) -> tuple[int, int]:
        return 64 * self.rows, self.columns * self.beside


def by_warpgroups(product: Product, cut: Warpgroups) -> pt.Schedule:
    """Warpgroups multiply slices that lie in shared memory as core matrices."""

    def of_warps(s: StageSchedule, i: str, j: str) -> StageSchedule:
        return s.split(i, "wi", "iw", 16).split(j, "wj", "jw", cut.columns)

    out = pt.on("out").copy_out("sums").tile("i", "j", "ib", "jb", "ii", "ji", *cut.tile)
    sums = of_warps(pt.on("sums").compute_at("out", "jb").store_in("register"), "i", "j")
    update = of_warps(of_lanes(sums, "iw", "jw", "wj", "wi").warp("wj", "wi").update(), "i", "j")
    update = update.split("r.k", "slice", "term", cut.terms, tail="peel")
    a_dims, b_dims = "ik" if product.a_by_rows else "ki", "kj" if product.b_by_rows else "jk"
    return pt.Schedule(
        of_lanes(of_warps(out, "ii", "ji"), "iw", "jw", "ib", "jb", "wj", "wi").block("ib", "jb").warp("wj", "wi"),
        update.reorder("slice", "wj", "wi", "iw", "jw", "term").warp("wj", "wi").tensor_core("iw", "jw", "term"),
        pt.on("a").copy_in("sums", "left", *a_dims),
        _in_cores("left", a_dims, cut),
        pt.on("b").copy_in("sums", "right", *b_dims),
        _in_cores("right", b_dims, cut),
    )


def _in_cores(name: str, dims: str, cut: Warpgroups) -> StageSchedule:
    copy = pt.on(name).compute_at("sums", "slice").store_in("shared")
    copy = copy.compute_ahead(cut.ahead) if cut.ahead else copy
    copy = copy.split_storage(dims[1], "core", "of_core", 8).reorder_storage("core", dims[0], "of_core")
    copy = copy.pad_storage(dims[0], cut.padding) if cut.padding else copy
    copy = copy.split(dims[1], "parts", "part", 8, tail="guard")
    return copy.thread(dims[0], "parts").vectorize("part")


def _warps(s: StageSchedule, i: str, j: str) -> StageSchedule:
    return s.split(i, "wi", "iw", 32).split(j, "wj", "jw", 16)


def _of_warps(s: StageSchedule, i: str, j: str) -> StageSchedule:
    return _warps(s, i, j).warp("wi", "wj")


def _copied(name: str, dims: str, padding: int, ahead: int) -> StageSchedule:
    copy = pt.on(name).compute_at("sums", "slice").store_in("shared").compute_ahead(ahead)
    copy = copy.pad_storage(dims[1], padding) if padding else copy
    return copy.split(dims[1], "parts", "part", 8, tail="guard").thread(dims[0], "parts").vectorize("part")
