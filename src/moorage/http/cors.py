"""Cross-origin resource sharing (WHATWG Fetch, "CORS protocol").

oslo.middleware gives the answers, as it does for OpenStack's own services. It stands in front of
everything; a preflight is not shown to the application.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.http.wsgi import Application, Environ, StartResponse


@dataclass(frozen=True, slots=True)
class CorsConfig:
    """Allowed origins, methods and headers. Without an allowed origin CORS is off."""

    allowed_origins: frozenset[str] = frozenset()
    """Origins as browsers send them (`https://host`); `*` for any."""
    allow_methods: frozenset[str] = frozenset(
        {"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"}
    )
    allow_headers: frozenset[str] = frozenset()
    """Request headers beyond the simple ones."""
    expose_headers: tuple[str, ...] = ()
    allow_credentials: bool = False
    """Not for `*`: no browser takes the two together."""
    max_age: int = 3600
    """Seconds a browser may remember the answer to a preflight."""


def with_cors(app: Application, config: CorsConfig) -> Application:
    """The application with CORS; the application itself without an allowed origin."""
    if not config.allowed_origins:
        return app
    # A third of a second, and WebOb, which nothing else of the service needs.
    from oslo_config import cfg  # noqa: PLC0415
    from oslo_middleware.cors import CORS  # noqa: PLC0415

    options = cfg.ConfigOpts()
    options([], default_config_files=[], default_config_dirs=[])
    made = CORS(_without_preflights(app), options)
    for origin in config.allowed_origins:
        made.add_origin(
            [origin],
            allow_credentials=config.allow_credentials and origin != "*",
            expose_headers=list(config.expose_headers),
            max_age=config.max_age,
            allow_methods=list(config.allow_methods),
            allow_headers=list(config.allow_headers),
        )
    answer: Application = made
    return answer


def _without_preflights(app: Application) -> Application:
    """Keep preflights from the application: they carry no token and would be refused."""

    def shielded(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if _is_preflight(environ):
            start_response("404 Not Found", [("content-length", "0")])  # never sent
            return []
        return app(environ, start_response)

    return shielded


def _is_preflight(environ: Environ) -> bool:
    return (
        environ["REQUEST_METHOD"] == "OPTIONS"
        and "HTTP_ORIGIN" in environ
        and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
    )
