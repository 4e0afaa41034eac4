"""HTML and SVG from Python: plain text is escaped, and markup is a type of its own; and the style of the page."""

from __future__ import annotations

from html import escape

STYLE = """
:root {
  color-scheme: light dark;
  --bg:#fff; --fg:#1c2024; --soft:#62686f; --line:#d5d9de; --panel:#f6f7f9; --group:88%; --edge:45%;
}
@media (prefers-color-scheme: dark) {
  :root { --bg:#15181c; --fg:#e4e7ea; --soft:#99a1a9; --line:#363c43; --panel:#1d2126; --group:27%; --edge:62% }
}
* { box-sizing:border-box }
body { margin:0; background:var(--bg); color:var(--fg); font:15px/1.5 system-ui,sans-serif }
main { max-width:1120px; margin:0 auto; padding:24px }
h1 { margin:0; font-size:28px }
h2 { margin:36px 0 8px; font-size:19px }
p { margin:4px 0; color:var(--soft) }
summary { cursor:pointer; margin:14px 0 6px }
table { border-collapse:collapse }
td,th { text-align:left; vertical-align:top; padding:2px 12px 2px 0 }
th { color:var(--soft); font-weight:500; font-size:13px }
pre,.listing td { font:12.5px/1.45 ui-monospace,monospace }
pre { background:var(--panel); border:1px solid var(--line); border-radius:8px; padding:12px; overflow-x:auto }
svg { max-width:none; display:block }
svg text { font:12px ui-monospace,monospace; fill:var(--fg) }
.scroll { overflow-x:auto }

.figures { display:flex; flex-wrap:wrap; gap:12px; margin:14px 0 }
.figures div { background:var(--panel); border:1px solid var(--line); border-radius:8px; padding:8px 16px }
.figures b { display:block; font-size:22px }
.figures span { color:var(--soft); font-size:13px }

.bars { width:100%; font-size:13px }
.bars td:nth-child(1) { font-family:ui-monospace,monospace; white-space:nowrap }
.bars td:nth-child(2) { text-align:right; white-space:nowrap; font-variant-numeric:tabular-nums }
.bars td:nth-child(3) { width:99%; line-height:0 }
.bars span { margin-left:8px; color:var(--soft); line-height:20px }
.bars i { display:inline-block; height:14px; margin-top:3px; vertical-align:top }
.key span { margin-right:14px; white-space:nowrap; font-size:13px }
.key i { display:inline-block; width:11px; height:11px; margin-right:5px }
.c0 { background:#3b78c4 } .c1 { background:#5aa9a0 } .c2 { background:#8bb85a }
.c3 { background:#b08bd0 } .c4 { background:#d06fa0 } .c5 { background:#9aa1a9 }
.c6 { background:#d9822b } .c7 { background:#c9b035 } .c8 { background:#b5473c }

.graph { margin:0 auto }
.graph text { text-anchor:middle }
.graph .word { font-size:10.5px; fill:var(--soft) }
.graph rect { fill:var(--panel); stroke:var(--line) }
.graph rect.stage { fill:hsl(var(--h) 62% var(--group)); stroke:hsl(var(--h) 45% var(--edge)) }
.graph rect.inlined { stroke:var(--soft); stroke-dasharray:4 3; fill:var(--bg) }
.graph rect.input { stroke:var(--soft) }
.graph rect.output { stroke-width:2.5 }
.edge { fill:none; stroke:var(--soft); stroke-width:1.2; opacity:.55 }
.legend { list-style:none; padding:0; columns:2 380px; font-size:13px }
.legend li { break-inside:avoid; margin:2px 0 }
.legend small { color:var(--soft) }
.chip {
  display:inline-block; width:11px; height:11px; border-radius:3px; margin-right:7px;
  background:hsl(var(--h) 62% var(--group)); border:1px solid hsl(var(--h) 45% var(--edge));
}

.pictures { display:flex; flex-wrap:wrap; gap:16px }
.tiles { display:flex; gap:28px; align-items:flex-start }
figure { margin:0; padding:12px; border:1px solid var(--line); border-radius:8px; overflow-x:auto }
figcaption { font:600 13px ui-monospace,monospace; margin-bottom:8px }
.grid { stroke:var(--line) }
rect.image { fill:var(--panel); stroke:var(--soft) }
rect.tile { fill:#d9822b; fill-opacity:.75; stroke:#d9822b }
rect.window { fill:hsl(var(--h) 62% var(--group)); fill-opacity:.55; stroke:hsl(var(--h) 45% var(--edge)) }
rect.window.input { fill:none; stroke:var(--soft); stroke-dasharray:4 3 }

.listing { overflow:auto; max-height:560px; border:1px solid var(--line); border-radius:8px }
.listing td,.listing th { padding:0 18px 0 10px; white-space:pre }
.listing th { position:sticky; top:0; background:var(--panel); padding:4px 10px }
.listing td:first-child { max-width:600px; overflow:hidden; text-overflow:ellipsis }
.listing .at { color:var(--soft) }
.listing .starts td { background:hsl(var(--h) 62% var(--group)) }
.plain td { font-size:13px; min-width:70px }
.plain td:nth-child(3) { min-width:170px }
.plain td:nth-child(4) { min-width:320px }
"""


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
