"""Putting the native API together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.api.native.application import application
from moorage.api.native.routes import ROUTES, simulation
from moorage.api.native.rules import by_default

if TYPE_CHECKING:
    from falcon import App

    from moorage.api.native.clock import SettableClock
    from moorage.http.access_rules import Access
    from moorage.usecases.parts import Parts

OPEN_PATHS: Final = ("", "/", "/openapi.json")
"""Paths below the mount whose GET needs no token."""


def create_app(
    parts: Parts, *, clock: SettableClock | None = None, access: Access = by_default
) -> App[Any, Any]:
    """The native API as a WSGI application, to be mounted under `/v1`.

    It expects `moorage.caller` and `moorage.request_id` in the environ. `clock` is a
    simulation's; with it the clock's routes exist. `access` says who meets which rule.
    """
    routes = ROUTES if clock is None else (*ROUTES, *simulation(clock))
    return application(parts, routes, access)
