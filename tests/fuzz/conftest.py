"""How many cases: `ci` (the default) is the same every time; PANTILE_FUZZ=long searches anew, PANTILE_FUZZ=quick runs
the cases of `ci`, but does not shrink what fails."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}

settings.register_profile("ci", max_examples=44, derandomize=True, database=None, **_COMMON)
settings.register_profile("long", max_examples=2000, **_COMMON)
settings.register_profile("quick", settings.get_profile("ci"), phases=[Phase.generate])
settings.load_profile(os.environ.get("PANTILE_FUZZ", "ci"))
