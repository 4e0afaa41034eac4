"""Apps in PyTorch on a GPU: filters as formulas for `torch.compile`, products and convolutions as calls of its
libraries, cuBLAS and cuDNN, in float32 throughout.
"""

import math
from collections.abc import Callable

import torch
from torch.nn.functional import conv2d, pad, relu_

from .gpu_worker import Inputs, Program, Shapes, Tensor

CELL, BINS = 8, 10
BEYOND = 2  # cells, and values of brightness, that a blur reaches
DEPTH = BINS + 2 + 2 * BEYOND
LEVELS = 256
RADIUS = 26  # of the disc
HEIGHTS = [sum(dx * dx + k * k < (RADIUS + 0.25) ** 2 for k in range(RADIUS + 1)) for dx in range(RADIUS + 1)]
MARGIN = max(HEIGHTS)
STAGES, REACH = 32, 2  # of the chain
SIGMA = 1.5
WEIGHTS = [math.exp(-i * i / (2 * SIGMA * SIGMA)) / (math.sqrt(2 * math.pi) * SIGMA) for i in range(4)]

torch.set_grad_enabled(False)
torch.set_float32_matmul_precision("highest")
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True


def _compiled(formula: Callable[[Tensor], Tensor], image: Tensor) -> Callable[[], Tensor]:
    """The formula of one image, for its shape alone."""
    compute = torch.compile(formula, dynamic=False, fullgraph=True)
    return lambda: compute(image)


def _luma(image: Tensor) -> Tensor:
    """Of three planes."""
    return 0.299 * image[0] + 0.587 * image[1] + 0.114 * image[2]


def bilateral_grid(inputs: Inputs, shapes: Shapes) -> Program:
    """The bilateral grid: pixels are added up in cells by atomic additions; blurs and reading back are compiled."""
    image, (height, width) = inputs["img"], shapes[0]
    rows, columns = (-(-n // CELL) + 1 + 2 * BEYOND for n in (height, width))
    before = BEYOND * CELL + CELL // 2
    margins = (before, columns * CELL - width - before, before, rows * CELL - height - before)
    place, blur, read = (torch.compile(f, dynamic=False, fullgraph=True) for f in (_placed, _blurred, _read_back))

    def compute() -> Tensor:
        value, cell = place(pad(image[None, None], margins, mode="replicate")[0, 0])
        sums = torch.zeros(2, rows * columns * DEPTH, device=image.device)
        sums[0].index_add_(0, cell, value)
        sums[1].index_add_(0, cell, torch.ones_like(value))
        return read(blur(sums.view(2, rows, columns, DEPTH)), image)

    return compute


def _placed(padded: Tensor) -> tuple[Tensor, Tensor]:
    """Of each pixel, its value and the number of its cell."""
    value = padded.clamp(0, 1)
    level = (value * BINS + 0.5).to(torch.int32) + BEYOND
    y, x = (torch.arange(n, device=padded.device, dtype=torch.int32) // CELL for n in padded.shape)
    columns = padded.shape[1] // CELL
    return value.flatten(), ((y[:, None] * columns + x[None, :]) * DEPTH + level).flatten()


def _blurred(grid: Tensor) -> Tensor:
    for axis in (3, 2, 1):
        n = grid.shape[axis] - 2 * BEYOND
        taps = [grid.narrow(axis, k, n) for k in range(5)]
        grid = taps[0] + taps[4] + 4 * (taps[1] + taps[3]) + 6 * taps[2]
    return grid


def _read_back(grid: Tensor, image: Tensor) -> Tensor:
    depth = image.clamp(0, 1) * BINS
    near = depth.to(torch.int32)
    above = depth - near
    y, x = (torch.arange(n, device=image.device, dtype=torch.int32) for n in image.shape)
    y, x = y[:, None], x[None, :]
    part_y, part_x = (y % CELL) / CELL, (x % CELL) / CELL

    def at(channel: int, i: int, j: int, k: int) -> Tensor:
        return grid[channel, y // CELL + i, x // CELL + j, near + k]

    def along(channel: int) -> Tensor:
        layers = []
        for k in (0, 1):
            lines = [at(channel, i, 0, k) * (1 - part_x) + at(channel, i, 1, k) * part_x for i in (0, 1)]
            layers.append(lines[0] * (1 - part_y) + lines[1] * part_y)
        return layers[0] * (1 - above) + layers[1] * above

    return along(0) / along(1)


def blur(inputs: Inputs, shapes: Shapes) -> Program:
    """Two passes, compiled. PyTorch computes little with uint16; twelve bits fit signed integers as well."""
    del shapes
    compute = _compiled(_blur, inputs["img"].view(torch.int16))
    return lambda: compute().view(torch.uint16)


def _blur(image: Tensor) -> Tensor:
    pixels = image.to(torch.int32)
    across = (pixels[:, :-2] + pixels[:, 1:-1] + pixels[:, 2:]) // 3
    return ((across[:-2] + across[1:-1] + across[2:]) // 3).to(torch.int16)


def conv_layer(inputs: Inputs, shapes: Shapes) -> Program:
    """cuDNN, channels innermost as the app has them; weights are brought into the order PyTorch wants beforehand."""
    del shapes
    source, bias = inputs["img"].permute(0, 3, 1, 2), inputs["bias"]
    weights = inputs["filter"].permute(3, 0, 1, 2).contiguous(memory_format=torch.channels_last)
    return lambda: relu_(conv2d(source, weights, bias)).permute(0, 2, 3, 1)


def harris(inputs: Inputs, shapes: Shapes) -> Program:
    """The corner response, compiled. One image to one image, three pixels smaller on every side."""
    del shapes
    return _compiled(_harris, inputs["img"])


def _harris(image: Tensor) -> Tensor:
    gray = _luma(image)[1:-1, 1:-1]
    height, width = gray.shape

    def g(dy: int, dx: int) -> Tensor:
        return gray[1 + dy : height - 1 + dy, 1 + dx : width - 1 + dx]

    ix = (g(-1, 1) - g(-1, -1)) / 12 + (g(0, 1) - g(0, -1)) * (2 / 12) + (g(1, 1) - g(1, -1)) / 12
    iy = (g(1, -1) - g(-1, -1)) / 12 + (g(1, 0) - g(-1, 0)) * (2 / 12) + (g(1, 1) - g(-1, 1)) / 12
    sxx, syy, sxy = _window(ix * ix), _window(iy * iy), _window(ix * iy)
    trace = sxx + syy
    return sxx * syy - sxy * sxy - 0.04 * trace * trace


def _window(values: Tensor) -> Tensor:
    """Sums of three by three."""
    across = values[:, :-2] + values[:, 1:-1] + values[:, 2:]
    return across[:-2] + across[1:-1] + across[2:]


def hist_eq(inputs: Inputs, shapes: Shapes) -> Program:
    """Histogram equalization: PyTorch's own histogram between two compiled formulas."""
    del shapes
    image = inputs["img"]
    level = torch.compile(_level, dynamic=False, fullgraph=True)
    equalize = torch.compile(_equalized, dynamic=False, fullgraph=True)

    def compute() -> Tensor:
        counts = torch.histc(level(image), LEVELS, 0, LEVELS)
        return equalize(image, counts)

    return compute


def _level(image: Tensor) -> Tensor:
    return _luma(image.to(torch.float32)).clamp(0, LEVELS - 1).floor()


def _equalized(image: Tensor, counts: Tensor) -> Tensor:
    pixels = image.to(torch.float32)
    gray = _luma(pixels)
    share = (LEVELS - 1) / (image.shape[1] * image.shape[2])
    equal = (counts.cumsum(0) * share).clamp(0, LEVELS - 1)
    even = equal[gray.clamp(0, LEVELS - 1).to(torch.int32)]
    more_red, more_blue = (pixels[0] - gray) * 0.713, (pixels[2] - gray) * 0.564
    red = even + 1.4 * more_red
    green = even - 0.343 * more_blue - 0.711 * more_red
    blue = even + 1.765 * more_blue
    return torch.stack((red, green, blue)).clamp(0, LEVELS - 1).to(torch.uint8)


def matmul(inputs: Inputs, shapes: Shapes) -> Program:
    """The matrix product: cuBLAS, in float32 without TF32."""
    a, b = inputs["a"], inputs["b"]
    result = torch.empty(shapes[0], device=a.device)
    return lambda: torch.mm(a, b, out=result)


def max_filter(inputs: Inputs, shapes: Shapes) -> Program:
    """The maximum over a disc: a table of maxima over powers of two of rows, and of 53 columns made of it, compiled."""
    image, (_, height, width) = inputs["img"], shapes[0]
    discs = torch.compile(_discs, dynamic=False, fullgraph=True)

    def compute() -> Tensor:
        rows = [pad(image[None], (RADIUS, RADIUS, MARGIN, MARGIN), mode="replicate")[0]]
        while 2 ** len(rows) <= 2 * MARGIN + 1:
            half = 2 ** (len(rows) - 1)
            rows.append(torch.maximum(rows[-1][:, :-half], rows[-1][:, half:]))
        return discs(rows, height, width)

    return compute


def _discs(rows: list[Tensor], height: int, width: int) -> Tensor:
    def column(dx: int, at: int) -> Tensor:
        """Of the disc at a distance, for pixels so many columns to the right."""
        reach = HEIGHTS[dx]
        k = int(math.log2(2 * reach + 1))
        table, top, low = rows[k], MARGIN - reach, MARGIN + reach + 1 - 2**k
        across = slice(RADIUS + at, RADIUS + at + width)
        return torch.maximum(table[:, top : top + height, across], table[:, low : low + height, across])

    result = column(0, 0)
    for dx in range(1, RADIUS + 1):
        result = torch.maximum(result, torch.maximum(column(dx, -dx), column(dx, dx)))
    return result


def stencil_chain(inputs: Inputs, shapes: Shapes) -> Program:
    """Each stage compiled for any size, as each is smaller than the one before.

    Sums wrap in signed integers as in unsigned ones, with which PyTorch computes little.
    """
    image, margin = inputs["img"].view(torch.int16), REACH * STAGES
    rows, columns = (torch.arange(-margin, n + margin, device=image.device).clamp(0, n - 1) for n in shapes[0])
    pad, stage = torch.compile(_padded, dynamic=False), torch.compile(_stencil, dynamic=True)

    def compute() -> Tensor:
        values = pad(image, rows, columns)
        for _ in range(STAGES):
            values = stage(values)
        return values.view(torch.uint16)

    return compute


def _padded(image: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return image[rows[:, None], columns[None, :]]


def _stencil(before: Tensor) -> Tensor:
    height, width = (n - 2 * REACH for n in before.shape)
    across = [before[:, k : k + width] * (k + 1) for k in range(5)]
    along = across[0] + across[1] + across[2] + across[3] + across[4]
    down = [along[k : k + height] * (k + 1) for k in range(5)]
    return down[0] + down[1] + down[2] + down[3] + down[4]


def unsharp(inputs: Inputs, shapes: Shapes) -> Program:
    """Unsharp masking: compiled in two steps, as one alone would weigh all 49 pixels around each."""
    del shapes
    image = inputs["img"]
    down, sharpen = (torch.compile(f, dynamic=False, fullgraph=True) for f in (_down, _sharpened))
    return lambda: sharpen(image, down(image))


def _down(image: Tensor) -> Tensor:
    """Blurred along columns."""
    gray, height = _luma(image), image.shape[1]
    padded = pad(gray[None, None], (0, 0, 3, 3), mode="replicate")[0, 0]
    return _gaussian([padded[k : k + height] for k in range(7)])


def _sharpened(image: Tensor, down: Tensor) -> Tensor:
    gray, width = _luma(image), image.shape[2]
    padded = pad(down[None, None], (3, 3, 0, 0), mode="replicate")[0, 0]
    across = _gaussian([padded[:, k : k + width] for k in range(7)])
    return (2 * gray - across) / gray * image


def _gaussian(taps: list[Tensor]) -> Tensor:
    total = WEIGHTS[0] * taps[3]
    for k in (1, 2, 3):
        total = total + WEIGHTS[k] * (taps[3 - k] + taps[3 + k])
    return total
