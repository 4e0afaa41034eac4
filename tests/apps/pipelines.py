"""The apps in all the ways in which tests run them."""

from __future__ import annotations

import functools

import pantile as pt
from pantile.apps import APPS

SCHEDULES = ("plain", "expert")
EVERY = [(name, how) for name in APPS for how in SCHEDULES if APPS[name].called(how) == how]


@functools.cache
def pipeline(name: str, how: str, *, strict: bool = False, debug: bool = False) -> pt.Pipeline:
    """One app under one schedule; the same object for all tests, so that it is compiled once."""
    plain = APPS[name].build()
    scheduled = plain.with_schedule(APPS[name].schedule(how, plain.options.target))
    return scheduled.with_options(strict=strict, debug=debug)
