"""The box blur: down sixteen rows with three sums of rows at hand."""

import torch
import triton
import triton.language as tl

from ..gpu_worker import Inputs, Program, Shapes, Tensor

ROWS, COLUMNS = 16, 512


@triton.jit
def _across(source, x, y, width, inside):  # type: ignore[no-untyped-def]
    at = source + y * (width + 2) + x
    first = tl.load(at, mask=inside, other=0).to(tl.int32)
    second = tl.load(at + 1, mask=inside, other=0).to(tl.int32)
    third = tl.load(at + 2, mask=inside, other=0).to(tl.int32)
    return (first + second + third) // 3


@triton.jit
def _blur(source, result, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    x = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    y = tl.program_id(1) * ROWS
    first = _across(source, x, y, width, x < width)
    second = _across(source, x, y + 1, width, x < width)
    for i in tl.static_range(ROWS):
        inside = (x < width) & (y + i < height)
        third = _across(source, x, y + i + 2, width, inside)
        tl.store(result + (y + i) * width + x, ((first + second + third) // 3).to(tl.int16), mask=inside)
        first = second
        second = third


def prepare(inputs: Inputs, shapes: Shapes) -> Program:
    """Into the same array at every call. Twelve bits fit signed integers of 16."""
    image = inputs["img"].view(torch.int16)
    height, width = shapes[0]
    result = torch.empty(shapes[0], dtype=torch.int16, device=image.device)
    grid = (triton.cdiv(width, COLUMNS), triton.cdiv(height, ROWS))

    def compute() -> Tensor:
        _blur[grid](image, result, height, width, ROWS=ROWS, COLUMNS=COLUMNS)
        return result.view(torch.uint16)

    return compute
