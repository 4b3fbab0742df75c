"""The outer WSGI application: what all dialects share.

In this order: request id, text that is UTF-8, mount by longest prefix, authentication, the client's
share of the threads, the whole body within bounds, the dialect. Then, whatever happened: one
well-formed answer with the request id, one line in the access log, no internals disclosed. A
dialect is a plain WSGI application; it finds `moorage.request_id`, `moorage.global_request_id` and
`moorage.caller` in its environ, and puts the template of the path it knew into `moorage.route`.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from http import HTTPStatus
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote_to_bytes

from moorage import logs
from moorage.domain import deadline
from moorage.domain.errors import Busy, InvalidDescription, LimitExceeded, TooManyRequests
from moorage.http import access_log, proxy_headers, request_body
from moorage.http.auth import SessionRefused
from moorage.http.concurrency_limits import ConcurrencyLimits
from moorage.http.response import (
    GLOBAL_REQUEST_ID,
    REQUEST_ID,
    Response,
    busy,
    error_answer,
    global_request_id,
    new_request_id,
    too_many_requests,
    unauthorized,
)
from moorage.http.system_routes import READING
from moorage.http.wsgi import MOUNT, status_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from moorage.http.auth import Authenticate
    from moorage.http.concurrency_limits import CountedRequest
    from moorage.http.system_routes import SystemRoutes
    from moorage.http.wsgi import Answer, Application, Environ, StartResponse
    from moorage.usecases.ports import Caller

_log = logging.getLogger(__name__)

CALLER: Final = "moorage.caller"
CLIENT_CLOSED_REQUEST: Final = 499
"""What the access log says of a client that left; nothing is sent."""


@dataclass(frozen=True)
class Mount:
    """A dialect at a path."""

    name: str
    prefix: str
    """`/placement`; the empty string for the root."""
    app: Application
    open_paths: frozenset[str] = frozenset({"", "/"})
    """Paths below the prefix whose GET and HEAD need no token, and look at none."""
    unauthorized: Callable[[str], Answer] = unauthorized
    """What a request without valid credentials gets."""
    authenticate: Authenticate | None = None
    """Who is calling, if this mount takes other credentials than the rest."""
    authenticates_itself: bool = False
    """Whether the application gets every request, without a caller; bodies must be short then."""

    def holds(self, path: str) -> bool:
        """Whether the path lies in this mount."""
        return path.startswith(self.prefix) and path[len(self.prefix) :][:1] in {"", "/"}


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of one process: body sizes, concurrent requests and time."""

    body: int = 16 * 1024 * 1024
    """Bytes of a request's body."""
    running: int = 16
    """Requests inside a dialect."""
    of_one_project: int = 12
    """Requests of one project under way, unless it is an operator's or a service's."""
    of_one_address: int | None = None
    """Requests from one address under way; None: as many as there are."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks that are not counted: they pass on the requests of others."""
    seconds: float = 60.0
    """How long a request may be worked on once its body is there; see `domain.deadline`."""


OPEN_BODY: Final = 64 * 1024
"""Bytes of a body, at most, where requests of anybody are taken."""
LARGE_BODY: Final = 128 * 1024
"""Bytes of a body from which a tenant's request is forwarded: decoding holds the interpreter."""


class RequestObserver(Protocol):
    """Observer of answered requests."""

    def __call__(self, environ: Environ, status: int, seconds: float, /) -> None:
        """Note a request's status and duration."""


def _ignore(environ: Environ, status: int, seconds: float) -> None:
    """The default observer: ignores every request."""


class Kernel:
    """The application."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        *,
        authenticate: Authenticate,
        system_routes: SystemRoutes,
        bounds: RequestLimits = RequestLimits(),
        watch: RequestObserver = _ignore,
        forward: Application | None = None,
    ) -> None:
        """`forward` answers tenants' requests with large bodies, or raises `Busy`."""
        self._forward = forward
        self._mounts = sorted(mounts, key=lambda mount: len(mount.prefix), reverse=True)
        self._authenticate = authenticate
        self._system_routes = system_routes
        self._watch = watch
        self._longest = bounds.body
        self._running = BoundedSemaphore(bounds.running)
        self._limits = ConcurrencyLimits(
            of_one_project=bounds.of_one_project,
            bodies_of_one_project=2 * bounds.body,
            of_one_address=bounds.of_one_address,
            proxies=bounds.proxies,
        )
        self._seconds = bounds.seconds

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        started = time.perf_counter()
        own_id = new_request_id()
        environ[REQUEST_ID] = own_id
        sent_id = global_request_id(environ)
        if sent_id is not None:
            environ[GLOBAL_REQUEST_ID] = sent_id
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        response = Response(start_response, own_id)
        counted = self._limits.request()

        ids = logs.Ids(own_id, sent_id or "")
        logs.CURRENT.set(ids)

        def finished() -> None:
            counted.release()
            logs.CURRENT.set(ids)  # what is sent in parts may have come into another thread's hands
            seconds = time.perf_counter() - started
            access_log.write(environ, path, response.status, seconds)
            self._watch(environ, response.status, seconds)
            logs.CURRENT.set(logs.NONE)

        try:
            chunks = self._respond(environ, path, response, counted)
            return response.send(chunks, finished)
        except request_body.ClientGone:
            response.status = CLIENT_CLOSED_REQUEST
            finished()
            return _give(start_response, _not_understood("the body is not complete", own_id))
        except Exception:  # noqa: BLE001 - the last line of defence, which answers and logs
            _log.exception("%s: unexpected error", own_id)
            return response.fail(_internal(own_id), finished)

    def _respond(
        self, environ: Environ, path: str, response: Response, counted: CountedRequest
    ) -> Iterable[bytes]:
        own_id = environ[REQUEST_ID]
        if not _is_text(path, environ.get("QUERY_STRING", "")):
            detail = "path and query must be UTF-8, without NUL"
            return response.give(_not_understood(detail, own_id))
        mount = self._mount_of(path)
        if mount is None:
            return response.give(self._system_routes.answer(environ, path))
        environ[MOUNT] = mount.name
        environ["SCRIPT_NAME"] = environ.get(proxy_headers.PREFIX, "") + mount.prefix
        environ["PATH_INFO"] = inner = path[len(mount.prefix) :]
        # A mount's own root discloses nothing but its versions, with whatever method.
        reads = environ["REQUEST_METHOD"] in READING or inner in {"", "/"}
        is_open = mount.authenticates_itself or (reads and inner in mount.open_paths)
        try:
            counted.count_address(environ.get("REMOTE_ADDR", ""))
            refused = None if is_open else self._take_caller(environ, mount, own_id)
            if CALLER in environ:
                counted.count_caller(environ[CALLER])
        except TooManyRequests as error:
            refused = too_many_requests(error, own_id)
        if refused is None:
            longest = OPEN_BODY if mount.authenticates_itself else self._longest
            refused = self._take_body(environ, own_id, counted, min(longest, self._longest))
        if refused is not None:
            return response.give(refused)
        limit = deadline.admitted(time.monotonic, self._seconds)
        with deadline.under(limit), self._running:
            if self._forward is not None and _is_large(environ):
                return _forwarded(self._forward, environ, response, own_id)
            return mount.app(environ, response)

    def _mount_of(self, path: str) -> Mount | None:
        for mount in self._mounts:
            if mount.holds(path):
                hidden = mount.prefix == "" and self._system_routes.system_page(path) is not None
                return None if hidden else mount
        return None

    def _take_caller(self, environ: Environ, mount: Mount, own_id: str) -> Answer | None:
        try:
            caller = (mount.authenticate or self._authenticate)(environ, own_id)
        except Busy as error:
            return busy(error, own_id)
        except SessionRefused as error:
            return error_answer(error.status, error.code, error.message, own_id)
        if caller is None:
            return mount.unauthorized(own_id)
        environ[CALLER] = caller
        return None

    def _take_body(
        self, environ: Environ, own_id: str, counted: CountedRequest, longest: int
    ) -> Answer | None:
        caller: Caller | None = environ.get(CALLER)
        try:
            body = request_body.receive(environ, longest)
            if caller is not None and not caller.operator:
                counted.count_body(caller, len(body))
                request_body.check_values(body)
        except LimitExceeded as error:
            unit = error.what.rpartition(" ")[2]
            detail = f"The body is {error.requested} {unit} or more; the limit is {error.limit}."
            return error_answer(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "http.body_too_large",
                detail,
                own_id,
            )
        except InvalidDescription as error:
            return _not_understood(error.message, own_id)
        except TooManyRequests as error:
            return too_many_requests(error, own_id)
        except Busy as error:
            return busy(error, own_id)
        return None


def _is_large(environ: Environ) -> bool:
    """Whether a tenant's request has a body that is decoded elsewhere."""
    caller: Caller | None = environ.get(CALLER)
    size = int(environ.get("CONTENT_LENGTH") or 0)
    return size >= LARGE_BODY and caller is not None and not caller.operator


def _forwarded(
    forward: Application, environ: Environ, response: Response, own_id: str
) -> Iterable[bytes]:
    try:
        return forward(environ, response)
    except TooManyRequests as error:
        return response.give(too_many_requests(error, own_id))
    except Busy as error:
        return response.give(busy(error, own_id))


def _is_text(path: str, query: str) -> bool:
    """Whether the bytes behind a WSGI path (Latin-1) and a raw query are UTF-8 without NUL.

    Not every database can even be asked for a text with NUL in it, and none keeps one.
    """
    if "\0" in path or "\0" in query:
        return False
    try:
        if not path.isascii():
            path.encode("latin-1").decode()
        if "%" in query or not query.isascii():
            return "\0" not in unquote_to_bytes(query.encode("latin-1")).decode()
    except UnicodeError:
        return False
    return True


def _not_understood(detail: str, own_id: str) -> Answer:
    return error_answer(HTTPStatus.BAD_REQUEST, "http.bad_request", detail, own_id)


def _internal(own_id: str) -> Answer:
    return error_answer(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "http.internal_error",
        "Something went wrong inside Moorage. The log says more under this request id.",
        own_id,
    )


def _give(start_response: StartResponse, answer: Answer) -> list[bytes]:
    headers = [*answer.headers, ("content-length", str(len(answer.body)))]
    start_response(status_line(answer.status), headers)
    return [answer.body]
