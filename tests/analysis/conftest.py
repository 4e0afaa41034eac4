"""The same random expressions in every run; PANTILE_FUZZ=long searches anew."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
