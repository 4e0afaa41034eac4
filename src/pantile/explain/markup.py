"""HTML and SVG from Python: plain text is escaped, and markup is a string type of its own."""

from __future__ import annotations

from html import escape


class Markup(str):
    """Text that is already markup."""


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """<name attribute="value">children</name>; `class_` is class, `font_size` is font-size; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str, between: str = "") -> Markup:
    """Concatenated pieces of markup."""
    return Markup(between.join(c if isinstance(c, Markup) else escape(c) for c in children))


def _short(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
