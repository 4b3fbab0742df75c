"""`/metrics` and its access: addresses of `metrics_from`, and operators with a token.

A request that a proxy passed on comes from the proxy's client, so it always needs a token, wherever
the proxy stands.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy
from moorage.http.proxy_headers import address_of
from moorage.http.response import REQUEST_ID, busy, error_answer, unauthorized
from moorage.http.wsgi import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.http.auth import Authenticate
    from moorage.http.wsgi import Environ

PATH: Final = "/metrics"

_PASSED_ON: Final = ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_FORWARDED", "HTTP_X_REAL_IP")
"""How the names of headers begin that only proxies write."""


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """The page; `render` makes its text for callers with access."""

    render: Callable[[], bytes]
    content_type: str
    near: Sequence[str]
    """Addresses and networks that need no token."""
    proxies: Sequence[str]
    """Addresses of proxies, which say nothing about the client's."""
    authenticate: Authenticate

    def __call__(self, environ: Environ) -> Answer:
        """The metrics, or a refusal."""
        if not self._is_near(environ):
            refused = self._refused(environ)
            if refused is not None:
                return refused
        headers = (("content-type", self.content_type), ("cache-control", "no-store"))
        return Answer(HTTPStatus.OK, self.render(), headers)

    def _is_near(self, environ: Environ) -> bool:
        peer = address_of(environ)
        if peer is None or any(name.startswith(_PASSED_ON) for name in environ):
            return False

        def among(networks: Sequence[str]) -> bool:
            return any(peer in ipaddress.ip_network(one) for one in networks)

        return among(self.near) and not among(self.proxies)

    def _refused(self, environ: Environ) -> Answer | None:
        own_id = environ[REQUEST_ID]
        try:
            caller = self.authenticate(environ, own_id)
        except Busy as error:
            return busy(error, own_id)
        if caller is None:
            return unauthorized(own_id)
        if not (caller.operator and caller.project_scoped):
            return error_answer(
                HTTPStatus.FORBIDDEN,
                "http.forbidden",
                "Reading metrics takes the role admin or service, or an address of metrics_from.",
                own_id,
            )
        return None
