"""Pantile: describe an image pipeline as functions of pixel coordinates, and run it as fast as an expert's code.

    import pantile as pt

    y, x = pt.vars("y x")
    img = pt.Input("img", "uint16", ndim=2)
    blur = pt.Func("blur")
    blur[y, x] = (img[y, x] + img[y, x + 1] + img[y, x + 2]) // 3
    pipeline = pt.Pipeline(blur, shape=(img.shape[0], img.shape[1] - 2))
    result = pipeline(img=picture)

Indices are in NumPy's order: the last one is contiguous. Some names are those of Python's built-ins (`pt.sum`,
`pt.min`, `pt.abs`, ...), as in NumPy, so import the package under a name, not its contents.
"""

import sys

if sys.platform != "linux":  # threads use Linux system calls; elsewhere, modules would fail with obscure errors
    raise ImportError(
        f"Pantile runs on Linux, and this is {sys.platform}; on Windows use WSL, elsewhere a container or a virtual "
        "machine"
    )

from . import autoschedule, machine
from .analysis.rounding import Rounding
from .entry_points import entries
from .errors import DefinitionWarning, InternalError, PantileError, RunError, UserError, UserTypeError
from .expr.nodes import Expr
from .lang.boundary import constant, edge, mirror, reflect, wrap
from .lang.func import Func, funcs
from .lang.indexing import pixel
from .lang.inputs import Input, table
from .lang.iterate import iterate
from .lang.math import (
    abs,
    absd,
    acos,
    asin,
    atan,
    atan2,
    bits,
    case,
    cast,
    cbrt,
    ceil,
    clamp,
    clip,
    cos,
    erf,
    exp,
    floor,
    halving_add,
    lerp,
    log,
    maximum,
    minimum,
    mul_shift,
    popcount,
    pow,
    round,
    rounding_cast,
    rounding_halving_add,
    rounding_mul_shift,
    rsqrt,
    saturating_add,
    saturating_cast,
    saturating_sub,
    select,
    sin,
    sqrt,
    tan,
    tanh,
    trunc,
    where,
    within,
)
from .lang.rdom import RDom
from .lang.reductions import all, any, argmax, argmin, max, mean, min, prod, sum
from .lang.sample import sample
from .lang.variables import Param, Var, vars
from .pipeline import Pipeline
from .runtime import cache
from .runtime.threads import get_num_threads, set_num_threads
from .schedule.directives import StageSchedule, on
from .schedule.schedule import Schedule

__version__ = "0.2.0"

__all__ = [
    # the parts of a pipeline
    "Expr", "Func", "Input", "Param", "RDom", "Var", "funcs", "iterate", "table", "vars",
    # boundary conditions, and positions between pixels
    "constant", "edge", "mirror", "reflect", "sample", "wrap",
    # conversions
    "bits", "cast", "rounding_cast", "saturating_cast",
    # choices and ranges
    "case", "clamp", "clip", "lerp", "maximum", "minimum", "pixel", "select", "where", "within",
    # math
    "abs", "acos", "asin", "atan", "atan2", "cbrt", "ceil", "cos", "erf", "exp", "floor", "log", "popcount",
    "pow", "round", "rsqrt", "sin", "sqrt", "tan", "tanh", "trunc",
    # fixed point
    "absd", "halving_add", "mul_shift", "rounding_halving_add", "rounding_mul_shift", "saturating_add",
    "saturating_sub",
    # reductions
    "all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "sum",
    # scheduling and running
    "Pipeline", "Rounding", "Schedule", "StageSchedule", "autoschedule", "cache", "get_num_threads", "machine",
    "on", "set_num_threads",
    # errors
    "DefinitionWarning", "InternalError", "PantileError", "RunError", "UserError", "UserTypeError",
]  # fmt: skip

globals().update(entries(__all__, globals()))
