"""How many cases: `ci` (the default) is the same every time, and shows what fails as it was drawn, since a case that
takes long to fail takes hours to shrink; `python -m tests.fuzz.reduce` makes it small. PANTILE_FUZZ=long searches anew,
and shrinks."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}

settings.register_profile("ci", max_examples=44, derandomize=True, database=None, phases=[Phase.generate], **_COMMON)
settings.register_profile("long", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("PANTILE_FUZZ", "ci"))
