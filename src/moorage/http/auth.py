"""Authentication strategies behind one small protocol.

A strategy reads the request's headers and answers with a `Caller`, or None when the request
must be refused with 401. What the 401 looks like is the mount's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.errors import MoorageError
from moorage.http.response import GLOBAL_REQUEST_ID
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    from http import HTTPStatus

    from moorage.http.wsgi import Environ


_ADMIN: Final = frozenset({"admin"})
_NONE: Final[frozenset[str]] = frozenset()


class SessionRefused(MoorageError):
    """A browser's session does not count for this request; says why."""

    def __init__(self, status: HTTPStatus, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Authenticate(Protocol):
    """A strategy."""

    def __call__(self, environ: Environ, request_id: str, /) -> Caller | None:
        """The caller, or None without valid credentials.

        Raises:
            Busy: whether they are valid cannot be found out now.
            SessionRefused: the credentials are a browser's cookie, and it does not count here.
        """


LONGEST_TOKEN: Final = 16 * 1024
"""Characters; an identity service takes no longer one, as its own server refuses the head."""
_TOKENS: Final = ("HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN")


def bounded(authenticate: Authenticate) -> Authenticate:
    """Refuse tokens that are too long; pass the others on to the strategy.

    A long one is not passed on: the identity service's server would call the request malformed.
    """

    def bounds(environ: Environ, request_id: str) -> Caller | None:
        if any(len(environ.get(name, "")) > LONGEST_TOKEN for name in _TOKENS):
            return None
        return authenticate(environ, request_id)

    return bounds


def noauth2(environ: Environ, request_id: str) -> Caller | None:
    """Trust the token's text: `user[:project]`. For one machine, tests and trying out.

    As the reference Placement server: the project is the user's name if none is given;
    `x-roles` replaces every role; without it the user `admin` has the role `admin` and others have
    none; `x-project-id` overrides the project; a system-scoped request has no project from its
    token. An empty token is a token.
    """
    token = environ.get("HTTP_X_AUTH_TOKEN")
    if token is None:
        return None
    user, _, project = token.partition(":")
    sent_roles = environ.get("HTTP_X_ROLES")
    if sent_roles is not None:
        roles = frozenset(role for part in sent_roles.split(",") if (role := part.strip().lower()))
    else:
        roles = _ADMIN if user == "admin" else _NONE
    in_system = bool(environ.get("HTTP_OPENSTACK_SYSTEM_SCOPE"))
    project = "" if in_system else project or user
    return Caller(
        user_id=user,
        project_id=environ.get("HTTP_X_PROJECT_ID") or project,
        roles=roles,
        request_id=request_id,
        global_request_id=environ.get(GLOBAL_REQUEST_ID),
        project_scoped=not in_system,
        believed=True,
    )
