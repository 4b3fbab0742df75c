"""Logging in to a session: what may be sent, and the strategies `noauth2` and `token-file`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from moorage.domain.errors import InvalidDescription
from moorage.http.auth import SessionRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.usecases.ports import Caller
    from moorage.web.session_cookie import Session

TOKEN: Final = "HTTP_X_AUTH_TOKEN"  # noqa: S105 - a header's name
_ROLES: Final = ("admin", "member", "reader")
_PLAIN: Final = re.compile(r"[!-~]{1,255}")
_FORMS: Final = (
    ({"role"}, {"user", "project"}),
    ({"token"}, set[str]()),
    ({"user", "password"}, {"user_domain", "project", "project_domain"}),
    ({"application_credential"}, set[str]()),
    ({"project"}, set[str]()),
)
"""What a body must have, and what it may have beside."""


class ApplicationCredential(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An application credential of Keystone."""

    id: str
    secret: str


class LoginRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The body of a login, or of a switch to another project."""

    role: str | None = None
    user: str | None = None
    project: str | None = None
    token: str | None = None
    password: str | None = None
    user_domain: str | None = None
    project_domain: str | None = None
    application_credential: ApplicationCredential | None = None

    def __repr__(self) -> str:
        """Without a value: they are secrets."""
        return "LoginRequest()"

    @property
    def switches(self) -> bool:
        """Whether it names a project alone."""
        return self._given() == {"project"}

    def _given(self) -> set[str]:
        return {name for name in self.__struct_fields__ if getattr(self, name) is not None}

    def check(self) -> None:
        """Return if the fields go together.

        Raises:
            InvalidDescription: they do not.
        """
        given = self._given()
        if not any(must <= given <= must | may for must, may in _FORMS):
            raise InvalidDescription(
                "send a role (with project and user), a token, a user and a password (with"
                " user_domain, project and project_domain), an application_credential, or a project"
            )


_DECODER: Final = msgspec.json.Decoder(LoginRequest)


def read_request(body: bytes) -> LoginRequest:
    """The request in a body.

    Raises:
        InvalidDescription: it is none.
    """
    try:
        found = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Not the error's own words: they may quote a secret.
        raise InvalidDescription("the body is no login in JSON") from error
    found.check()
    return found


@dataclass(frozen=True, slots=True)
class Project:
    """A project that a user may work in."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a login gives."""

    headers: dict[str, str]
    """As headers in a WSGI environ."""
    user: str | None = None
    """The user's name, where it is not the id."""
    project: str | None = None
    ends: float | None = None
    """Seconds since the epoch at which the token ends, if that is known."""
    issued: bool = False
    """Whether the token was issued for this session alone."""


class Login(Protocol):
    """The way into a session under one authentication strategy."""

    @property
    def methods(self) -> Sequence[str]:
        """What it takes: `role`, `token`, `password`, `application_credential`."""

    def enter(self, asked: LoginRequest) -> Credentials:
        """Credentials that are to be checked still.

        Raises:
            SessionRefused: what is asked is wrong.
            Busy: the identity service does not answer.
        """

    def switch(self, session: Session, project: str) -> Credentials:
        """Credentials of the same user in another project.

        Raises:
            SessionRefused: the user may not.
            Busy: the identity service does not answer.
        """

    def projects(self, session: Session, caller: Caller) -> Sequence[Project]:
        """The projects a user may switch to, the present one among them.

        Raises:
            SessionRefused: the token is no longer valid.
            Busy: the identity service does not answer.
        """

    def leave(self, session: Session) -> None:
        """End what was issued for the session alone."""


def refused(message: str, status: HTTPStatus = HTTPStatus.UNAUTHORIZED) -> SessionRefused:
    """The error of a login that is wrong."""
    return SessionRefused(status, "session.refused", message)


def not_taken(methods: Sequence[str]) -> InvalidDescription:
    """The error of a kind of login that the strategy does not have."""
    return InvalidDescription(f"this service takes {' or '.join(methods)}")


class RoleLogin:
    """Logins under `noauth2`, which believes everybody."""

    methods = ("role",)

    def enter(self, asked: LoginRequest) -> Credentials:
        """See `Login`. Users and projects are called as the command line calls them."""
        if asked.role is None:
            raise not_taken(self.methods)
        if asked.role not in _ROLES:
            raise InvalidDescription(f"role must be one of {', '.join(_ROLES)}")
        project = asked.project or "admin"
        user = asked.user or (project if project == "admin" else f"{project}-user")
        if not (_PLAIN.fullmatch(user) and _PLAIN.fullmatch(project)) or ":" in user:
            raise InvalidDescription(
                "user and project are printable ASCII without spaces, and user without a colon"
            )
        return Credentials({TOKEN: f"{user}:{project}", "HTTP_X_ROLES": asked.role})

    def switch(self, session: Session, project: str) -> Credentials:
        """See `Login`."""
        user = session.headers[TOKEN].partition(":")[0]
        role = session.headers["HTTP_X_ROLES"]
        return self.enter(LoginRequest(role=role, user=user, project=project))

    def projects(self, session: Session, caller: Caller) -> Sequence[Project]:  # noqa: ARG002 - the protocol's
        """See `Login`; there is no list of them."""
        return [Project(caller.project_id, caller.project_id)]

    def leave(self, session: Session) -> None:
        """See `Login`."""


class TokenLogin:
    """Logins under `token-file`: a token that is pasted, and is of one project."""

    methods = ("token",)

    def enter(self, asked: LoginRequest) -> Credentials:
        """See `Login`."""
        if asked.token is None:
            raise not_taken(self.methods)
        return Credentials({TOKEN: asked.token.strip()})

    def switch(self, session: Session, project: str) -> Credentials:  # noqa: ARG002 - the protocol's
        """See `Login`: never."""
        raise refused("a token is of one project: log in with another", HTTPStatus.FORBIDDEN)

    def projects(self, session: Session, caller: Caller) -> Sequence[Project]:  # noqa: ARG002 - the protocol's
        """See `Login`."""
        return [Project(caller.project_id, caller.project_id)]

    def leave(self, session: Session) -> None:
        """See `Login`."""
