"""Numbers and texts in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], text_columns: int) -> Iterator[str]:
    """Columns of equal width, text to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        left = [c.ljust(w) for c, w in zip(row[:text_columns], widths, strict=False)]
        right = [c.rjust(w) for c, w in zip(row[text_columns:], widths[text_columns:], strict=True)]
        yield "  ".join(left + right).rstrip()


def two_digits(value: float | None) -> str:
    """Two digits, or an empty cell."""
    return "" if value is None else f"{value:.2f}"


def milliseconds(value: object) -> str:
    """Three digits or a bit more."""
    assert isinstance(value, float)
    return f"{value:.{3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0}f}"


def microseconds(value: object) -> str:
    """Of milliseconds, as many digits."""
    assert isinstance(value, float)
    return f"{1e3 * value:.{1 if value < 1 else 0}f}"
