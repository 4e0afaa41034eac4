"""The apps in all the ways in which tests run them."""

from __future__ import annotations

import functools

import pantile as pt
from pantile.apps import APPS
from pantile.apps.app import App

from .short import app_and_case

SCHEDULES = ("plain", "expert")
EVERY = [(name, how) for name in APPS for how in SCHEDULES if APPS[name].called(how) == how]


@functools.cache
def pipeline(name: str, how: str, *, strict: bool = False, debug: bool = False) -> pt.Pipeline:
    """One app under one schedule; the same object for all tests, so that it is compiled once."""
    return _scheduled(APPS[name], how).with_options(strict=strict, debug=debug)


@functools.cache
def short_pipeline(name: str, how: str, *, debug: bool = False) -> pt.Pipeline:
    """The app with fewer stages of each kind, where it has many that are alike."""
    app, _ = app_and_case(name)
    return pipeline(name, how, debug=debug) if app is APPS[name] else _scheduled(app, how).with_options(debug=debug)


def _scheduled(app: App, how: str) -> pt.Pipeline:
    plain = app.build()
    return plain.with_schedule(app.schedule(how, plain.options.target))
