"""Headers that a proxy sets: scheme, host and path prefix of the original request.

`X-Forwarded-Proto`, `-Host` and `-Prefix` become part of the links and locations in answers, so
they are believed only from addresses that the operator names; from anybody else they are ignored.
Of a list, each proxy adding to it, the last one counts: the nearest proxy's own word. A prefix is
what the proxy takes off the path before it passes the request on.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

from moorage.http.transport.wsgi_environ import own_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.http.wsgi import Application, Environ, StartResponse

PREFIX: Final = "moorage.forwarded_prefix"
"""The environ's key for the path in front of every mount, without a slash at its end."""

_SCHEMES: Final = frozenset({"http", "https"})
_HOST: Final = re.compile(
    r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?", re.ASCII
)
_PATH: Final = re.compile(r"(/[A-Za-z0-9._~-]+)*", re.ASCII)


def with_proxies(app: Application, trusted: Sequence[str]) -> Application:
    """The application that trusts these proxies' headers; itself if there are none."""
    if not trusted:
        return app
    networks = [ipaddress.ip_network(one) for one in trusted]

    def forwarded(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        peer = address_of(environ)
        if peer is not None and any(peer in network for network in networks):
            _believe(environ)
        return app(environ, start_response)

    return forwarded


def address_of(environ: Environ) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The IP address of the peer; None where it is unknown."""
    try:
        return own_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return None


def _believe(environ: Environ) -> None:
    scheme = _last(environ, "PROTO").lower()
    if scheme in _SCHEMES:
        environ["wsgi.url_scheme"] = scheme
    host = _last(environ, "HOST")
    if _HOST.fullmatch(host):
        environ["HTTP_HOST"] = host
    prefix = _last(environ, "PREFIX").rstrip("/")
    if prefix and _PATH.fullmatch(prefix):
        environ[PREFIX] = prefix


def _last(environ: Environ, name: str) -> str:
    sent: str = environ.get(f"HTTP_X_FORWARDED_{name}", "")
    return sent.rpartition(",")[2].strip()
