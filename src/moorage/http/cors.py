"""Cross-origin requests (WHATWG Fetch, "CORS protocol"): who may read answers from another site.

Stands in front of everything: a preflight is answered before authentication and routing. The
words of the settings are those of OpenStack's own middleware.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moorage.http.wsgi import Application, Environ, ExcInfo, Headers, StartResponse

SIMPLE_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-language",
        "cache-control",
        "content-language",
        "content-type",
        "expires",
        "last-modified",
        "pragma",
    }
)
"""Request headers that every allowed origin may send."""


@dataclass(frozen=True, slots=True)
class CorsConfig:
    """Who may do what. Without an allowed origin nothing is different from before."""

    allowed_origins: frozenset[str] = frozenset()
    """Origins as browsers send them (`https://host`); `*` for any."""
    allow_methods: frozenset[str] = frozenset(
        {"OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"}
    )
    allow_headers: frozenset[str] = frozenset()
    """Request headers beyond the simple ones, lower case."""
    expose_headers: tuple[str, ...] = ()
    allow_credentials: bool = False
    max_age: int = 3600
    """Seconds a browser may remember the answer to a preflight."""

    def granted(self, origin: str | None) -> str | None:
        """What to answer as the allowed origin, or None."""
        if origin is None:
            return None
        if origin in self.allowed_origins:
            return origin
        return "*" if "*" in self.allowed_origins else None


def with_cors(app: Application, config: CorsConfig) -> Application:
    """The application behind the rules; the application itself if there are none."""
    if not config.allowed_origins:
        return app

    def guarded(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        origin = config.granted(environ.get("HTTP_ORIGIN"))
        if _is_preflight(environ):
            headers = [] if origin is None else _permissions(environ, origin, config)
            start_response("200 OK", [*headers, ("content-length", "0")])
            return []
        if origin is None:
            return app(environ, start_response)

        def opened(
            status: str, headers: Headers, exc_info: ExcInfo | None = None
        ) -> Callable[[bytes], object]:
            shared = [*headers, *_sharing(origin, config)]
            return start_response(status, shared, exc_info)

        return app(environ, opened)

    return guarded


def _is_preflight(environ: Environ) -> bool:
    return (
        environ["REQUEST_METHOD"] == "OPTIONS"
        and "HTTP_ORIGIN" in environ
        and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
    )


def _permissions(environ: Environ, origin: str, config: CorsConfig) -> Headers:
    """Headers that allow the request announced, or none when some part of it is not allowed."""
    method = environ["HTTP_ACCESS_CONTROL_REQUEST_METHOD"]
    announced = environ.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "").split(",")
    names = [name.strip() for name in announced if name.strip()]
    allowed = config.allow_headers | SIMPLE_HEADERS
    if method not in config.allow_methods or any(name.lower() not in allowed for name in names):
        return []
    headers = [
        *_sharing(origin, config),
        ("access-control-allow-methods", method),
        ("access-control-max-age", str(config.max_age)),
    ]
    if names:
        headers.append(("access-control-allow-headers", ",".join(names)))
    return headers


def _sharing(origin: str, config: CorsConfig) -> Headers:
    headers = [("access-control-allow-origin", origin), ("vary", "origin")]
    if config.allow_credentials and origin != "*":
        headers.append(("access-control-allow-credentials", "true"))
    if config.expose_headers:
        headers.append(("access-control-expose-headers", ",".join(config.expose_headers)))
    return headers
