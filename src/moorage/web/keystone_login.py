"""Logging in at Keystone: by password, application credential or a token, and changing the project.

Keystone's own client library speaks; nothing is logged of what is sent. A login holds a thread for
as long as Keystone takes, so only some are tried at a time. Strangers may try to log in, so a
further one is refused at once instead of waiting in one more thread; who has a session waits.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1.identity import v3
from keystoneauth1.session import Session as HttpSession

from moorage.domain.errors import Busy
from moorage.web.login import TOKEN, Credentials, Project, not_taken, refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.http.config import IdentityAddress
    from moorage.usecases.ports import Caller
    from moorage.web.login import LoginRequest
    from moorage.web.session_cookie import Session

_SECONDS: Final = 5.0
"""For which Keystone is waited, to connect and to answer."""
_AT_A_TIME: Final = 4
_RETRY_SECONDS: Final = 5
_DEFAULT_DOMAIN: Final = "default"
"""The id of the domain that every Keystone has; its name is written `Default`."""
_REFUSING: Final = frozenset(
    {HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
)


class KeystoneLogin:
    """See `Login`."""

    methods = ("token", "password", "application_credential")

    def __init__(self, address: IdentityAddress, seconds: float = _SECONDS) -> None:
        """`seconds`: for which Keystone is waited."""
        self._seconds = seconds
        url = address.url.rstrip("/")
        self._url = url if url.endswith("/v3") else f"{url}/v3"
        self._http: Any = HttpSession(
            verify=address.verify, cert=address.certificate, timeout=seconds
        )
        self._logins = threading.BoundedSemaphore(_AT_A_TIME)
        self._turns = threading.BoundedSemaphore(_AT_A_TIME)

    def enter(self, asked: LoginRequest) -> Credentials:
        """See `Login`. Without a project it is the user's own default, or the first by name."""
        with self._turn("the credentials are not valid", stranger=True):
            if asked.token is not None:
                return self._pasted(asked.token.strip())
            if asked.application_credential is not None:
                key = asked.application_credential
                found = self._issued(
                    v3.ApplicationCredential(
                        self._url,
                        application_credential_id=key.id,
                        application_credential_secret=key.secret,
                        include_catalog=False,
                    )
                )
            elif asked.user is not None and asked.password is not None:
                found = self._issued(self._password(asked))
            else:
                raise not_taken(self.methods)
            return found if found.project is not None else self._in_first_project(found)

    def switch(self, session: Session, project: str) -> Credentials:
        """See `Login`."""
        with self._turn(
            "Keystone gives no token for this project: not every kind of login can change it",
            HTTPStatus.FORBIDDEN,
        ):
            return self._scoped(session.headers[TOKEN], project)

    def projects(self, session: Session, caller: Caller) -> Sequence[Project]:
        """See `Login`."""
        with self._turn("the token is not valid"):
            found = self._projects(session.headers[TOKEN])
        if caller.project_id and all(one.id != caller.project_id for one in found):
            found.insert(0, Project(caller.project_id, session.project or caller.project_id))
        return found

    def leave(self, session: Session) -> None:
        """See `Login`; a token that was pasted stays valid, for its user has other uses for it."""
        if not session.issued:
            return
        token = session.headers[TOKEN]
        try:
            self._ask("delete", "/auth/tokens", token, {"X-Subject-Token": token})
        except keystone_errors.ClientException:
            return  # it ends by itself

    def _password(self, asked: LoginRequest) -> Any:  # noqa: ANN401 - of a library without types
        where: dict[str, Any] = _domain("user_domain", asked.user_domain)
        if asked.project is not None:
            domain = asked.project_domain or asked.user_domain
            where |= {"project_name": asked.project, **_domain("project_domain", domain)}
        where |= {"username": asked.user, "password": asked.password, "include_catalog": False}
        return v3.Password(self._url, **where)

    def _issued(self, login: Any) -> Credentials:  # noqa: ANN401 - as above
        found = login.get_access(self._http)
        return Credentials(
            {TOKEN: found.auth_token},
            user=found.username,
            project=found.project_name,
            ends=found.expires.timestamp(),
            issued=True,
        )

    def _scoped(self, token: str, project: str) -> Credentials:
        return self._issued(v3.Token(self._url, token, project_id=project, include_catalog=False))

    def _in_first_project(self, found: Credentials) -> Credentials:
        token = found.headers[TOKEN]
        projects = self._projects(token)
        if not projects:
            raise refused("this user has no role in any project", HTTPStatus.FORBIDDEN)
        return self._scoped(token, projects[0].id)

    def _pasted(self, token: str) -> Credentials:
        """A token that exists already, with the names of its user and project."""
        if not (token.isascii() and token.isprintable()):
            raise refused("this is no token")
        token_body = self._ask("get", "/auth/tokens?nocatalog", token, {"X-Subject-Token": token})[
            "token"
        ]
        found = Credentials(
            {TOKEN: token},
            user=token_body["user"]["name"],
            project=token_body.get("project", {}).get("name"),
        )
        return found if found.project is not None else self._in_first_project(found)

    def _projects(self, token: str) -> list[Project]:
        listed = self._ask("get", "/auth/projects", token)["projects"]
        found = [Project(one["id"], one["name"]) for one in listed if one.get("enabled", True)]
        return sorted(found, key=lambda one: (one.name, one.id))

    def _ask(
        self, method: str, path: str, token: str, more: Mapping[str, str] | None = None
    ) -> Any:  # noqa: ANN401 - JSON
        answer = self._http.request(
            f"{self._url}{path}",
            method.upper(),
            headers={"X-Auth-Token": token, "Accept": "application/json", **(more or {})},
            authenticated=False,
            log=False,
        )
        return answer.json() if answer.content else None

    @contextmanager
    def _turn(
        self, wrong: str, status: HTTPStatus = HTTPStatus.UNAUTHORIZED, *, stranger: bool = False
    ) -> Iterator[None]:
        """Ask Keystone meanwhile; its refusals and its absence become ours.

        Raises:
            SessionRefused: Keystone refuses, for the reason `wrong`.
            Busy: it cannot be asked now.
        """
        turns = self._logins if stranger else self._turns
        if not turns.acquire(timeout=0 if stranger else self._seconds):
            raise Busy("too many logins are tried at once")
        try:
            yield
        except keystone_errors.MissingAuthMethods:
            raise refused("this user logs in with several factors: paste a token") from None
        except keystone_errors.HttpError as error:
            if error.http_status in _REFUSING:
                raise refused(f"{wrong}.", status) from None  # the cause may quote what was sent
            raise _unavailable() from None
        except (keystone_errors.ClientException, ValueError, KeyError) as error:
            raise _unavailable() from error
        finally:
            turns.release()


def _domain(name: str, given: str | None) -> dict[str, Any]:
    """A domain by its name; the default one by its id, too."""
    if given is None or given == _DEFAULT_DOMAIN:
        return {f"{name}_id": _DEFAULT_DOMAIN}
    return {f"{name}_name": given}


def _unavailable() -> Busy:
    return Busy("the identity service cannot be asked now", retry_after=_RETRY_SECONDS)
