"""Putting the native API together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from moorage.api.native.application import application
from moorage.api.native.routes import ROUTES, simulation
from moorage.usecases.limits import Limits
from moorage.usecases.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from falcon import App

    from moorage.api.native.clock import SettableClock
    from moorage.usecases.ports import Ids, Solver, Store

OPEN_PATHS: Final = ("", "/", "/openapi.json")
"""Paths below the mount whose GET needs no token."""


def create_app(
    store: Store,
    solver: Solver,
    ids: Ids,
    limits: Limits | None = None,
    *,
    clock: SettableClock | None = None,
    stopwatch: Callable[[], float] = time.monotonic,
) -> App[Any, Any]:
    """The native API as a WSGI application, to be mounted under `/v1`.

    It expects `moorage.caller` and `moorage.request_id` in the environ. `clock` is a
    simulation's; with it the clock's routes exist.
    """
    parts = Parts(store, solver, ids, limits or Limits(), stopwatch)
    routes = ROUTES if clock is None else (*ROUTES, *simulation(clock))
    return application(parts, routes)
