"""Whether tests may take as long as they like."""

from __future__ import annotations

import os

LONG = os.environ.get("PANTILE_FUZZ") == "long"
