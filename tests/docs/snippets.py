"""The code blocks of a Markdown file, and what they show as output.

```python                   runs; all such blocks of one file share a namespace
```python skip: <reason>    does not
```output                   exactly what the python block before it printed
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is that of its first line of text."""

    info: str
    text: str
    line: int
    span: tuple[int, int]  # of its text in the file


def blocks(markdown: str) -> Iterator[Block]:
    for m in _FENCE.finditer(markdown):
        line = markdown.count("\n", 0, m.start("text")) + 1
        yield Block(m["info"].strip(), m["text"], line, m.span("text"))


def run(file: Path) -> str:
    """The file's text with its output blocks as running its python blocks writes them. Raises what they raise."""
    markdown = file.read_text()
    namespace: dict[str, object] = {"__name__": file.stem}
    printed, pieces, done = "", [], 0
    for block in blocks(markdown):
        if block.info == "python":
            printed = _execute(block, str(file.relative_to(ROOT)), namespace)
        elif block.info == "output":
            pieces += [markdown[done : block.span[0]], printed]
            done = block.span[1]
    return "".join([*pieces, markdown[done:]])


def _execute(block: Block, name: str, namespace: dict[str, object]) -> str:
    """Run a block as if it stood at its own line of the Markdown file; what it printed."""
    code = compile("\n" * (block.line - 1) + block.text, name, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        exec(code, namespace)
    return stream.getvalue()
