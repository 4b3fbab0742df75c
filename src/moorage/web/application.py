"""The WSGI application of the page: its files, and its session.

Every path that is no file and no session is the page itself: its screens have paths of their own.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.period import SECOND, format_instant
from moorage.http.auth import SessionRefused
from moorage.http.proxy_headers import PREFIX
from moorage.http.response import REQUEST_ID, busy, error_answer
from moorage.http.system_routes import READING
from moorage.http.wsgi import ROUTE, Answer, json_answer, status_line
from moorage.web.login import read_request, refused
from moorage.web.session_auth import require_own_origin
from moorage.web.session_cookie import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from moorage.domain.period import Duration
    from moorage.http.wsgi import Environ, StartResponse
    from moorage.usecases.ports import Caller
    from moorage.web.login import Credentials, Login, LoginRequest
    from moorage.web.session_auth import SessionAuthentication
    from moorage.web.session_cookie import SessionCookies
    from moorage.web.static_files import StaticFile, StaticFiles

_SESSION: Final = "/session"
_FILES: Final = "/files/"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors "
)
_SAFE: Final = (("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"))
_KEPT: Final = "public, max-age=31536000, immutable"
_NO_STORE: Final = ("cache-control", "no-store")


@dataclass(frozen=True, slots=True)
class PageSettings:
    """What the page is given, and who may show it in a frame."""

    api: str
    """The path of the native API."""
    auth: str
    version: str
    simulation: bool
    lifetime: Duration
    """The longest session."""
    embed_origins: Sequence[str] = ()


class WebApplication:
    """The application; it authenticates by its own cookie."""

    def __init__(
        self,
        settings: PageSettings,
        files: StaticFiles,
        login: Login,
        cookies: SessionCookies,
        sessions: SessionAuthentication,
        rules: Callable[[Caller], Mapping[str, bool]],
    ) -> None:
        """`rules` tells which access rules a caller meets."""
        self._settings = settings
        self._files = files
        self._login = login
        self._cookies = cookies
        self._sessions = sessions
        self._rules = rules
        self._verbs = {
            "DELETE": self._leave,
            "GET": self._present,
            "HEAD": self._present,
            "POST": self._enter,
        }
        self._index = lru_cache(maxsize=64)(self._made_index)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Sequence[bytes]:
        """Serve one request."""
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if path == _SESSION:
            environ[ROUTE] = _SESSION
            answer = self._session(environ)
        elif method not in READING:
            environ[ROUTE] = "/"
            answer = _wrong_verb(environ, "GET, HEAD")
        elif path.startswith(_FILES):
            environ[ROUTE] = "/files"
            answer = self._file(environ, path.removeprefix(_FILES))
        else:
            environ[ROUTE] = "/"
            answer = self._page(environ)
        headers = [*answer.headers, *_SAFE]
        if answer.status is not HTTPStatus.NOT_MODIFIED:
            headers.append(("content-length", str(len(answer.body))))
        start_response(status_line(answer.status), headers)
        return [] if method == "HEAD" else [answer.body]

    # --- files

    def _file(self, environ: Environ, path: str) -> Answer:
        digest, _, name = path.partition("/")
        found = self._files.files.get(name) if digest == self._files.digest else None
        if found is None:
            return _error(environ, HTTPStatus.NOT_FOUND, "http.not_found", "There is no such file.")
        policy = ("content-security-policy", _POLICY + "'none'")
        return _sent(environ, found, ("cache-control", _KEPT), policy)

    def _page(self, environ: Environ) -> Answer:
        origins = self._settings.embed_origins
        query = parse_qs(environ.get("QUERY_STRING", ""))
        embedded = bool(origins) and query.get("embed") == ["1"]
        found = self._index(environ.get(PREFIX, ""), environ["SCRIPT_NAME"], embedded)
        policy = (
            "content-security-policy",
            _POLICY + (" ".join(origins) if embedded else "'none'"),
        )
        framing = () if embedded else (("x-frame-options", "DENY"),)
        return _sent(environ, found, ("cache-control", "no-cache"), policy, *framing)

    def _made_index(self, before: str, own: str, embedded: bool) -> StaticFile:  # noqa: FBT001 - a key of the cache
        values = {
            "api": before + self._settings.api,
            "ui": own,
            "files": f"{own}{_FILES}{self._files.digest}",
            "version": self._settings.version,
        }
        return self._files.index(values, embedded=embedded)

    # --- session

    def _session(self, environ: Environ) -> Answer:
        try:
            verb = self._verbs.get(environ["REQUEST_METHOD"])
            if verb is None:
                return _wrong_verb(environ, ", ".join(sorted(self._verbs)))
            return verb(environ)
        except SessionRefused as error:
            return _error(environ, HTTPStatus(error.status), error.code, error.message)
        except InvalidDescription as error:
            return _error(environ, HTTPStatus.BAD_REQUEST, "http.bad_request", error.message)
        except Busy as error:
            return busy(error, environ[REQUEST_ID])

    def _present(self, environ: Environ) -> Answer:
        if environ.get("HTTP_SEC_FETCH_SITE") != "none":  # that is the address bar
            require_own_origin(environ)
        session = self._cookies.open(environ)
        caller = None if session is None else self._caller(session, environ)
        if session is None or caller is None:
            return self._reported(None)
        try:
            return self._reported(self._view(session, caller))
        except SessionRefused:  # its token has ended since this worker has asked
            return self._reported(None)

    def _enter(self, environ: Environ) -> Answer:
        require_own_origin(environ)
        asked = read_request(environ["wsgi.input"].read())
        if asked.switches:
            session = self._switched(environ, asked)
        else:
            session = self._sealed(self._login.enter(asked), self._latest())
        caller = self._caller(session, environ)
        if caller is None:
            raise refused("The credentials are not valid.")
        cookie = self._cookies.seal(environ, session)
        return self._reported(self._view(session, caller), ("set-cookie", cookie))

    def _switched(self, environ: Environ, asked: LoginRequest) -> Session:
        session = self._cookies.open(environ)
        if session is None or self._caller(session, environ) is None:
            raise refused("There is no session that could change its project.")
        assert asked.project is not None
        return self._sealed(self._login.switch(session, asked.project), session.ends)

    def _leave(self, environ: Environ) -> Answer:
        require_own_origin(environ)
        session = self._cookies.open(environ)
        if session is not None:
            self._login.leave(session)
        cookie = self._cookies.clear(environ)
        return Answer(HTTPStatus.NO_CONTENT, b"", (("set-cookie", cookie), _NO_STORE))

    def _latest(self) -> int:
        return int(time.time()) + self._settings.lifetime // SECOND

    def _sealed(self, found: Credentials, latest: int) -> Session:
        """A session that begins now."""
        return Session(
            id=secrets.token_urlsafe(18),
            auth=self._settings.auth,
            headers=found.headers,
            ends=latest if found.ends is None else min(latest, int(found.ends)),
            user=found.user,
            project=found.project,
            issued=found.issued,
        )

    def _caller(self, session: Session, environ: Environ) -> Caller | None:
        return self._sessions.caller_of(session, environ, environ[REQUEST_ID])

    def _view(self, session: Session, caller: Caller) -> Mapping[str, object]:
        user, project = caller.user_id, caller.project_id
        return {
            "id": session.id,
            "user": {"id": user, "name": session.user or user},
            "project": {"id": project, "name": session.project or project},
            "projects": [asdict(one) for one in self._login.projects(session, caller)],
            "roles": sorted(caller.roles),
            "operator": caller.operator and caller.project_scoped,
            "expires_at": format_instant(session.ends * SECOND),
            "rules": self._rules(caller),
        }

    def _reported(self, session: Mapping[str, object] | None, *headers: tuple[str, str]) -> Answer:
        body: dict[str, Any] = {
            "session": session,
            "login": {"auth": self._settings.auth, "methods": list(self._login.methods)},
            "simulation": self._settings.simulation,
            "version": self._settings.version,
        }
        return json_answer(HTTPStatus.OK, body, _NO_STORE, *headers)


def _sent(environ: Environ, file: StaticFile, *headers: tuple[str, str]) -> Answer:
    """A file, in gzip if the browser takes that; 304 if it has it."""
    zipped = _takes_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
    body = file.packed if zipped else file.plain
    zipped = zipped and body is not file.plain
    etag = f'"{file.etag}{"-gzip" if zipped else ""}"'
    own = (("etag", etag), ("vary", "accept-encoding"), *headers)
    if _has(environ.get("HTTP_IF_NONE_MATCH", ""), etag):
        return Answer(HTTPStatus.NOT_MODIFIED, b"", own)
    encoding = (("content-encoding", "gzip"),) if zipped else ()
    return Answer(HTTPStatus.OK, body, (("content-type", file.content_type), *encoding, *own))


def _takes_gzip(accept: str) -> bool:
    for part in accept.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() in {"gzip", "*"}:
            return parameters.replace(" ", "").rstrip("0.") != "q="
    return False


def _has(sent: str, etag: str) -> bool:
    return any(one.strip().removeprefix("W/") in {etag, "*"} for one in sent.split(","))


def _wrong_verb(environ: Environ, allowed: str) -> Answer:
    method = environ["REQUEST_METHOD"]
    detail = f"{method} is not possible here."
    return _error(
        environ,
        HTTPStatus.METHOD_NOT_ALLOWED,
        "http.method_not_allowed",
        detail,
        ("allow", allowed),
    )


def _error(
    environ: Environ, status: HTTPStatus, code: str, detail: str, *headers: tuple[str, str]
) -> Answer:
    return error_answer(status, code, detail, environ[REQUEST_ID], _NO_STORE, *headers)
