"""Calls of a service with microversions: retries failed reads, reports clear errors.

It is a Placement service unless `Options.service` names another.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import httpx
import msgspec

from moorage.client.certificates import trusted_at
from moorage.domain.errors import MoorageError
from moorage.domain.period import from_datetime
from moorage.domain.retry_policy import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from moorage.client.credentials import Credentials
    from moorage.domain.period import Instant

NEWEST: Final = (1, 39)
"""The newest microversion that is understood here."""
OLDEST: Final = (1, 28)
"""The oldest that can be read whole: before, consumers have no generations."""
_RETRY: Final = RetryPolicy(first_pause=0.2, longest_pause=3.0, growth=5.0, attempts=4)
_STUMBLES: Final = frozenset({429, 500, 502, 503, 504})
_SUCCESS: Final = range(200, 300)
_UNAUTHORIZED: Final = 401
_MISSING: Final = 404


class SourceFailed(MoorageError):
    """A service answers with an error, or does not answer."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        detail: str = "",
        code: str = "",
        sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail
        """What the service says, alone."""
        self.code = code
        self.sent = sent
        """False: there was no connection, so nothing was done."""


@dataclass(frozen=True, slots=True)
class Options:
    """Connection options: at most `connections` are open; `timeout` is in seconds."""

    connections: int = 8
    timeout: float = 60.0
    through: httpx.BaseTransport | None = None
    """Replaces the network: an application in this process."""
    sleep: Callable[[float], object] = time.sleep
    service: str = "placement"
    """Its name in the microversion header."""


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """Stands for a missing answer; counts as 504."""

    why: str
    status_code: int = 504
    sent: bool = True


class PlacementWire:
    """A connection to one service. Safe for threads."""

    def __init__(
        self, endpoint: str, credentials: Credentials, options: Options = Options()
    ) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._credentials = credentials
        self._sleep = options.sleep
        self._service = options.service
        self._version = "1.0"
        parts = urlsplit(self.endpoint)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise SourceFailed(f"not the URL of a service: {endpoint}")
        local = parts.hostname in {"localhost", "::1"} or parts.hostname.startswith("127.")
        limits = httpx.Limits(
            max_connections=options.connections, max_keepalive_connections=options.connections
        )
        self._http = httpx.Client(
            timeout=httpx.Timeout(options.timeout, connect=5.0),
            limits=limits,
            transport=options.through,
            trust_env=not local,
            verify=trusted_at(self.endpoint, trust=credentials.trust),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def negotiate(self) -> str:
        """Use the newest microversion that both sides know; return it.

        Raises:
            SourceFailed: it is none, too old, or does not answer.
        """
        root = self.get("/")
        try:
            offered = max(_number(one["max_version"]) for one in root["versions"])
        except (KeyError, TypeError, ValueError) as error:
            raise SourceFailed(f"{self.endpoint} is not a Placement service") from error
        chosen = min(offered, NEWEST)
        if chosen < OLDEST:
            raise SourceFailed(
                f"{self.endpoint} speaks microversions up to {_word(offered)};"
                f" {_word(OLDEST)} or newer is needed"
            )
        self._version = _word(chosen)
        return self._version

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON is what it is
        """GET a resource.

        Raises:
            SourceFailed: an error, or no answer.
        """
        return self.call("GET", path)

    def find(self, path: str) -> Any | None:  # noqa: ANN401 - JSON is what it is
        """GET a resource, or None for 404.

        Raises:
            SourceFailed: another error, or no answer.
        """
        try:
            return self.get(path)
        except SourceFailed as error:
            if error.status == _MISSING:
                return None
            raise

    def dated(self, path: str) -> tuple[Any, Instant] | None:
        """GET a resource with its `last-modified`, 0 without one; None for 404.

        Raises:
            SourceFailed: another error, or no answer.
        """
        answer = self._answer("GET", path, None, {})
        if answer.status_code == _MISSING:
            return None
        return self._decoded("GET", path, answer), _last_modified(answer)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Any:  # noqa: ANN401 - JSON is what it is
        """Send a request. After a passing failure a read is repeated, a change is not.

        Raises:
            SourceFailed: an error, or no answer.
        """
        return self._decoded(method, path, self._answer(method, path, body, headers, version))

    def _answer(
        self,
        method: str,
        path: str,
        body: object,
        headers: Mapping[str, str],
        version: str | None = None,
    ) -> httpx.Response | _NoAnswer:
        """The answer to a request; after a passing failure a read is repeated."""
        more = {"OpenStack-API-Version": f"{self._service} {version or self._version}", **headers}
        answer = self._asked(method, path, body, more)
        if answer.status_code == _UNAUTHORIZED and self._credentials.renew():
            answer = self._asked(method, path, body, more)
        for failures in range(1, _RETRY.attempts if method == "GET" else 1):
            if answer.status_code not in _STUMBLES:
                break
            self._sleep(_RETRY.pause(failures))
            answer = self._asked(method, path, body, more)
        return answer

    def _asked(
        self, method: str, path: str, body: object, more: Mapping[str, str]
    ) -> httpx.Response | _NoAnswer:
        try:
            return self._send(method, path, body, more)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return _NoAnswer(str(error) or "no connection in time", sent=False)
        except httpx.TimeoutException:
            return _NoAnswer("no answer in time")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return _NoAnswer(str(error) or type(error).__name__)

    def _send(
        self, method: str, path: str, body: object, more: Mapping[str, str]
    ) -> httpx.Response:
        headers = {
            "X-Auth-Token": self._credentials.token(),
            "Accept": "application/json",
            **more,
        }
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(body)
        return self._http.request(
            method, f"{self.endpoint}{path}", content=content, headers=headers
        )

    def _decoded(self, method: str, path: str, answer: httpx.Response | _NoAnswer) -> Any:  # noqa: ANN401 - JSON
        if isinstance(answer, _NoAnswer):
            raise SourceFailed(f"{self.endpoint}: {method} {path}: {answer.why}", sent=answer.sent)
        if answer.status_code not in _SUCCESS:
            detail = _sentence(answer)
            raise SourceFailed(
                f"{self.endpoint}: {method} {path}: {answer.status_code} {detail}",
                status=answer.status_code,
                detail=detail,
                code=_code(answer),
            )
        if not answer.content:
            return None
        try:
            return msgspec.json.decode(answer.content)
        except msgspec.DecodeError as error:
            raise SourceFailed(f"{self.endpoint}: {method} {path}: not JSON") from error


def _last_modified(answer: httpx.Response | _NoAnswer) -> Instant:
    if isinstance(answer, _NoAnswer):
        return 0
    try:
        return from_datetime(parsedate_to_datetime(answer.headers["last-modified"]))
    except (KeyError, ValueError, TypeError):  # the last of one without a zone
        return 0


def _number(text: str) -> tuple[int, int]:
    major, _, minor = str(text).partition(".")
    return int(major), int(minor)


def _word(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _first_error(answer: httpx.Response) -> dict[str, Any]:
    """The first error of Placement's body; Blazar's is the whole body, of others its one value."""
    try:
        body = msgspec.json.decode(answer.content)
        if "error_message" in body:
            return {"detail": body["error_message"]}
        if "errors" not in body and len(body) == 1:  # Nova's and Neutron's
            (only,) = body.values()
            return {"detail": only["message"]}
        found = body["errors"][0]
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def _sentence(answer: httpx.Response) -> str:
    """The service's error message, on one line."""
    detail = str(_first_error(answer).get("detail") or answer.reason_phrase)
    return " ".join(detail.split())[:300]


def _code(answer: httpx.Response) -> str:
    return str(_first_error(answer).get("code") or "")


def within(application: Any) -> httpx.BaseTransport:  # noqa: ANN401 - any WSGI application
    """The transport to an application in this process."""
    return httpx.WSGITransport(application)
