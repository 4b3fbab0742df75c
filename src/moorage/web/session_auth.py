"""Authentication by a browser's session, where no token is sent.

A cookie is sent by the browser whoever asks for it, so two things must be true beside it: the page
names the session it means (`X-Moorage-Session`), or it has been replaced by another login; and the
request comes from the page's own origin.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from moorage.http.auth import SessionRefused
from moorage.http.system_routes import READING

if TYPE_CHECKING:
    from moorage.http.auth import Authenticate
    from moorage.http.wsgi import Environ
    from moorage.usecases.ports import Caller
    from moorage.web.session_cookie import Session, SessionCookies

_TOKEN: Final = "HTTP_X_AUTH_TOKEN"  # noqa: S105 - a header's name
_CREDENTIALS: Final = (
    _TOKEN,
    "HTTP_X_SERVICE_TOKEN",
    "HTTP_X_ROLES",
    "HTTP_X_PROJECT_ID",
    "HTTP_OPENSTACK_SYSTEM_SCOPE",
)
"""What a request may say of its caller; beside a session, only the session says it."""
_SAME: Final = "same-origin"


class SessionAuthentication:
    """The strategy: a token in the request, as everywhere, or else the session's."""

    def __init__(self, authenticate: Authenticate, cookies: SessionCookies) -> None:
        self._authenticate = authenticate
        self._cookies = cookies

    def __call__(self, environ: Environ, request_id: str) -> Caller | None:
        """See `Authenticate`.

        Raises:
            SessionRefused: the session does not count for this request.
        """
        session = None if _TOKEN in environ else self._cookies.open(environ)
        if session is None:
            return self._authenticate(environ, request_id)
        require_own_origin(environ)
        meant = environ.get("HTTP_X_MOORAGE_SESSION", "").encode("latin-1", "replace")
        if not hmac.compare_digest(meant, session.id.encode()):
            raise SessionRefused(
                HTTPStatus.UNAUTHORIZED,
                "session.changed",
                "Another login has begun in this browser. X-Moorage-Session must name the session.",
            )
        return self.caller_of(session, environ, request_id)

    def caller_of(self, session: Session, environ: Environ, request_id: str) -> Caller | None:
        """Whom the session's credentials stand for; None if they are valid no longer.

        Raises:
            Busy: this cannot be found out now.
        """
        request = {name: value for name, value in environ.items() if name not in _CREDENTIALS}
        return self._authenticate({**request, **session.headers}, request_id)


def require_own_origin(environ: Environ) -> None:
    """Return if a request comes from a page of this origin, as far as its browser says.

    A reading request without a word of its origin passes: no page of others could read the answer.

    Raises:
        SessionRefused: it does not.
    """
    site = environ.get("HTTP_SEC_FETCH_SITE")
    if site is not None:
        own = site == _SAME
    elif environ["REQUEST_METHOD"] in READING:
        own = True
    else:
        host = environ.get("HTTP_HOST", "")
        origin = f"{environ['wsgi.url_scheme']}://{host}"
        own = bool(host) and environ.get("HTTP_ORIGIN", "").lower() == origin.lower()
    if not own:
        raise SessionRefused(
            HTTPStatus.FORBIDDEN,
            "session.cross_site",
            "A session counts only for requests of its own page. Behind a proxy, name it in the"
            " setting trusted_proxies.",
        )
