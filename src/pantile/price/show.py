"""A price as text: the seconds, what they are made of, and the stages that take most of them."""

from __future__ import annotations

from .pricing import Causes, Price

MOST_STAGES = 12


def show(p: Price) -> str:
    lines = [f"{p.name}: {time(p.seconds)} predicted", *_causes(p.causes)]
    moved = [f"{n / 1e6:.1f} MB from {level}" for n, level in zip(p.bytes, levels(p), strict=True) if n >= 5e4]
    if moved:
        lines.append(f"  moved      {', '.join(moved)}")
    lines.append(f"  code       about {p.instructions:,} instructions, {p.compile_seconds:.2g} s to compile")
    stages = sorted(p.stages, key=lambda s: -s.seconds)
    width = max((len(s.name) for s in stages), default=0)
    for s in stages[:MOST_STAGES]:
        again = f", {100 * s.redundant:.0f}% of it computed again" if s.redundant >= 0.005 else ""
        largest = sorted(named(s.causes), key=lambda c: -c[1])[:3]
        why = ", ".join(name for name, seconds in largest if seconds > 0.15 * s.causes.seconds)
        lines.append(f"  {s.name:<{width}}  {time(s.seconds):>9}  {why}{again}")
    if len(stages) > MOST_STAGES:
        rest = sum(s.seconds for s in stages[MOST_STAGES:])
        lines.append(f"  and {len(stages) - MOST_STAGES} stages of {time(rest)} together")
    return "\n".join(lines)


def levels(p: Price) -> list[str]:
    """Where bytes come from: each cache but the first, and memory last."""
    return [*(f"L{k}" for k in range(2, len(p.bytes) + 1)), "memory"]


def _causes(causes: Causes) -> list[str]:
    total = max(causes.seconds, 1e-12)
    return [f"  {name:<10} {100 * s / total:5.1f} %" for name, s in named(causes) if s >= 0.005 * total]


def named(causes: Causes) -> list[tuple[str, float]]:
    """Causes by name."""
    return list(causes._asdict().items())


def time(seconds: float) -> str:
    """Readable: 12.3 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
