"""One call of the API: sends a request, returns the answer or raises a typed error."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

import httpx
import msgspec

from moorage.client.certificates import trusted_at
from moorage.client.errors import NoAnswer, NotMoorage, Unreachable, error_for

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from moorage.client.discovery import Access

PLACEMENT_VERSION: Final = "placement latest"
NATIVE_VERSION: Final = "ensemble latest"
_HEADERS: Final = MappingProxyType(
    {
        "OpenStack-API-Version": f"{NATIVE_VERSION}, {PLACEMENT_VERSION}",
        "Accept": "application/json",
    }
)
_SUCCESS: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer. `body` is None if it is empty."""

    status: int
    body: Any
    request_id: str
    etag: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A request to send: `path` is below the service, such as `/v1/ensembles`."""

    method: str
    path: str
    content: bytes | None
    params: Mapping[str, str | int]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """An answer as it came, from the URL of its `source`; `headers` ignore case."""

    source: str
    status: int
    reason: str
    content: bytes
    headers: Mapping[str, str]


class Transport:
    """Calls one service as one caller. A subclass carries the bytes."""

    explain_within: int | None = None
    """Seconds to wait for changes that help if a request is refused; None: for all of them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, if they are its own."""

    def send(self, request: Request) -> RawAnswer:
        """Carry a request to the service.

        Raises:
            Unreachable, NoEndpoint, LoginRefused: as `call` says.
        """
        raise NotImplementedError

    def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str | int] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request and return the answer.

        Raises:
            ApiError: the service refused; its subclass says why.
            Unreachable: there was no answer; `NoAnswer`: not in time.
            NotMoorage: the answer is not JSON.
            NoEndpoint, LoginRefused: of a session, which looks for the endpoint and logs in only
                now.
        """
        content = None if body is None else msgspec.json.encode(body)
        sent = {**_HEADERS, **(headers or {})}
        if self.explain_within is not None:
            sent["Prefer"] = f"wait={self.explain_within}"
        if content is not None:
            sent["Content-Type"] = "application/json"
        answer = self.send(Request(method, path, content, params or {}, sent))
        decoded = _decoded(answer)
        if answer.status not in _SUCCESS:
            raise error_for(answer.status, decoded)
        request_id = answer.headers.get("X-Openstack-Request-Id", "")
        return Reply(answer.status, decoded, request_id, answer.headers.get("ETag"))


class HttpTransport(Transport):
    """Calls over kept-alive connections of its own."""

    def __init__(
        self,
        access: Access,
        *,
        timeout: float = 120.0,
        through: httpx.BaseTransport | None = None,
    ) -> None:
        """Connects later; `through` replaces the network (a WSGI application, in tests)."""
        headers = {"X-Auth-Token": access.token}
        if access.roles is not None:
            headers["X-Roles"] = ",".join(access.roles)
        self._endpoint = access.endpoint
        self._http = httpx.Client(
            base_url=access.endpoint,
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=5.0),
            transport=through,
            trust_env=not _is_local(access.endpoint),
            verify=trusted_at(access.endpoint, trust=access.trust),
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, request: Request) -> RawAnswer:
        """See `Transport`.

        Raises:
            Unreachable: there was no answer; `NoAnswer`: not in time.
        """
        try:
            answer = self._http.request(
                request.method,
                request.path,
                content=request.content,
                params=request.params,
                headers=request.headers,
            )
        except httpx.ReadTimeout as error:
            raise NoAnswer(self._endpoint, "no answer in time") from error
        except httpx.TimeoutException as error:
            raise Unreachable(self._endpoint, "no answer in time") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unreachable(self._endpoint, plain_reason(error)) from error
        return RawAnswer(
            self._endpoint,
            answer.status_code,
            answer.reason_phrase,
            answer.content,
            answer.headers,
        )


def _decoded(answer: RawAnswer) -> Any:  # noqa: ANN401 - JSON is what it is
    if not answer.content:
        return None
    try:
        return msgspec.json.decode(answer.content)
    except msgspec.DecodeError as error:
        if answer.status not in _SUCCESS:
            raise error_for(answer.status, {"title": answer.reason}) from error
        raise NotMoorage(f"{answer.source} did not answer in JSON") from error


def _is_local(endpoint: str) -> bool:
    """Whether the service is on this machine, for which no proxy is used."""
    host = urlsplit(endpoint).hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def plain_reason(error: Exception) -> str:
    """Why there was no answer, in a few words."""
    text = str(error) or type(error).__name__
    if "Connection refused" in text or "[Errno 111]" in text:
        return "connection refused (is it running?)"
    return text
