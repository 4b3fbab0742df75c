"""One response, sent once, with the request id and checked headers.

OpenStack services send `X-Openstack-Request-Id: req-<uuid>` on to the services they call, so that
one id links the logs of all. The answer's header of the same name is always our own.

Errors are `{"errors": [...]}` with a code. The reference Placement server answers a
missing token from in front of its application, in another form; clients see that form here too.
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from http import HTTPStatus
from random import getrandbits
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.http.transport.body_parts import BodyParts, packed
from moorage.http.wsgi import json_answer, status_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from moorage.domain.errors import Busy, TooManyRequests
    from moorage.http.wsgi import Answer, Environ, ExcInfo, Headers, StartResponse

REQUEST_ID: Final = "moorage.request_id"
"""Key of a request's own id in its environ."""
GLOBAL_REQUEST_ID: Final = "moorage.global_request_id"
"""Key of the id that the caller's own request has, if it sent one."""

_HEADER: Final = "x-openstack-request-id"
_INBOUND: Final = ("HTTP_X_OPENSTACK_REQUEST_ID", "HTTP_X_OPENSTACK_GLOBAL_REQUEST_ID")
_FORM: Final = re.compile(
    r"req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE
)


def new_request_id() -> str:
    """A fresh id: `req-` and a random UUID (RFC 9562, version 4).

    It is no secret; each process, forked ones too, has a seed of its own.
    """
    text = f"{getrandbits(128):032x}"
    return f"req-{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def global_request_id(environ: Environ) -> str | None:
    """The id the caller sent, if it has the form; anything else is ignored, as OpenStack does."""
    for key in _INBOUND:
        sent = environ.get(key)
        if isinstance(sent, str) and _FORM.fullmatch(sent):
            return sent
    return None


Challenge: TypeAlias = tuple[tuple[str, str], ...]
"""Headers of a 401, by name and value."""

_STOCK_401: Final = (
    "This server could not verify that you are authorized to access the document you requested. "
    "Either you supplied the wrong credentials (e.g., bad password), or your browser does not "
    "understand how to supply the credentials required.<br /><br />\n\n\n"
)


def error_answer(
    status: HTTPStatus,
    code: str,
    detail: str,
    request_id: str,
    *headers: tuple[str, str],
) -> Answer:
    """An error in the API-SIG form; `code` is stable and documented."""
    error: Mapping[str, object] = {
        "status": status.value,
        "code": code,
        "title": status.phrase,
        "detail": detail,
        "request_id": request_id,
    }
    return json_answer(status, {"errors": [error]}, *headers)


def busy(error: Busy, request_id: str) -> Answer:
    """503 with Retry-After."""
    return error_answer(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "http.busy",
        error.message,
        request_id,
        ("retry-after", str(error.retry_after)),
    )


def too_many_requests(error: TooManyRequests, request_id: str) -> Answer:
    """429 with Retry-After."""
    return error_answer(
        HTTPStatus.TOO_MANY_REQUESTS,
        "http.too_many_requests",
        error.message,
        request_id,
        ("retry-after", str(error.retry_after)),
    )


def unauthorized(request_id: str, *, challenge: Challenge = ()) -> Answer:
    """401 in the API-SIG form; `challenge` names the identity service."""
    return error_answer(
        HTTPStatus.UNAUTHORIZED,
        "http.unauthorized",
        "A valid token in X-Auth-Token is needed.",
        request_id,
        *challenge,
    )


def unauthorized_bare(request_id: str) -> Answer:  # noqa: ARG001 - the signature all mounts share
    """401 as a middleware in front of an OpenStack service words it (Placement under noauth2)."""
    return json_answer(
        HTTPStatus.UNAUTHORIZED,
        {"message": _STOCK_401, "code": "401 Unauthorized", "title": "Unauthorized"},
    )


def unauthorized_by_keystone(request_id: str, *, challenge: Challenge) -> Answer:  # noqa: ARG001 - the signature all mounts share
    """401 as keystonemiddleware in front of an OpenStack service words it."""
    error = {
        "code": HTTPStatus.UNAUTHORIZED.value,
        "title": HTTPStatus.UNAUTHORIZED.phrase,
        "message": "The request you have made requires authentication.",
    }
    return json_answer(HTTPStatus.UNAUTHORIZED, {"error": error}, *challenge)


_log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", re.ASCII)
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class Response:
    """The `start_response` between a dialect and the server.

    What the dialect starts is kept until its first bytes are there, so that an error before them
    still becomes a clean 500.
    """

    def __init__(self, start_response: StartResponse, own_id: str) -> None:
        self.status = 0
        self._start_response = start_response
        self._own_id = own_id
        self._pending: tuple[str, Headers] | None = None
        self._has_id = False

    def __call__(
        self,
        status: str,
        headers: Headers,
        exc_info: ExcInfo | None = None,  # noqa: ARG002 - PEP 3333
        /,
    ) -> Callable[[bytes], object]:
        """Take status and headers from the dialect.

        Raises:
            ValueError: a header would break the response in two.
        """
        has_id = False
        for name, value in headers:
            plain = value.isascii() and value.isprintable()
            if not (_is_name(name) and (plain or _VALUE.fullmatch(value))):
                raise ValueError(f"not a header: {name!r}: {value!r}")
            if name.lower() == _HEADER:
                has_id = True
        self.status = int(status[:3])
        self._pending, self._has_id = (status, headers), has_id
        return _no_writing

    def give(self, answer: Answer) -> list[bytes]:
        """Start an answer of the kernel's own and return its body."""
        self(
            status_line(answer.status),
            [*answer.headers, ("content-length", str(len(answer.body)))],
        )
        return [answer.body]

    def send(self, chunks: Iterable[bytes], finished: Callable[[], None]) -> Iterable[bytes]:
        """Pass the body on; `finished` is called when all of it is handed over."""
        if isinstance(chunks, list | tuple | BodyParts):
            self._flush()
            finished()
            if isinstance(chunks, BodyParts) or len(chunks) <= 1:  # in one piece already
                return chunks
            return packed(chunks)
        stream = _Stream(chunks, finished, self._own_id)
        self._flush()
        return stream

    def fail(self, answer: Answer, finished: Callable[[], None]) -> list[bytes]:
        """Answer with an error instead of the response that was started."""
        body = self.give(answer)
        self._flush()
        finished()
        return body

    def _flush(self) -> None:
        if self._pending is None:
            raise RuntimeError("the application returned without calling start_response")
        status, headers = self._pending
        if not self._has_id:
            headers = [*headers, (_HEADER, self._own_id)]
        self._start_response(status, headers)


class _Stream:
    """A streamed body. The first part is taken at once, so that early errors can be answered."""

    def __init__(self, chunks: Iterable[bytes], finished: Callable[[], None], own_id: str) -> None:
        self._chunks = chunks
        self._rest = iter(chunks)
        self._finished = finished
        self._own_id = own_id
        try:
            self._first = next(self._rest, b"")
        except BaseException:
            self._close_source()
            raise

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield self._first
            yield from self._rest
        except Exception:  # too late for another status: the connection is cut, the log knows why
            _log.exception("%s: error while sending the body", self._own_id)
            raise

    def close(self) -> None:
        """Called by the server when the body is sent or the client has left."""
        try:
            self._close_source()
        finally:
            self._finished()

    def _close_source(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()


@lru_cache(maxsize=256)
def _is_name(text: str) -> bool:
    """Whether it is a valid header name; cached, for there are few different ones."""
    return _NAME.fullmatch(text) is not None


def _no_writing(data: bytes) -> object:
    raise NotImplementedError(f"return the body instead of writing it ({len(data)} bytes)")
