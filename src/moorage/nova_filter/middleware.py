"""The WSGI filter: the place that a request names is claimed before nova-api sees the request."""

from __future__ import annotations

import json
import logging
import re
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from moorage.nova_filter.hints import (
    FAULTS,
    GROUP,
    HINT,
    METADATA,
    STACK,
    Refusal,
    named_places,
    named_reservation,
    names_ensemble,
    with_claim,
    with_claim_alone,
    without_place,
)
from moorage.nova_filter.native_api import NativeApi, Unanswered
from moorage.nova_filter.places import claimed_place
from moorage.nova_filter.server_groups import DoorClosed, GroupDoor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from moorage.nova_filter.hints import Place

    Environ = dict[str, Any]
    StartResponse = Callable[..., Any]
    Application = Callable[[Environ, StartResponse], Iterable[bytes]]

GLOBAL_ID: Final = "openstack.global_request_id"
"""Where oslo.context reads the global request id of a request."""
LONGEST: Final = 8 * 1024 * 1024
"""Bytes of a body that is read; nova-api refuses longer ones itself."""
_ACTION: Final = re.compile(r"/servers/([0-9a-fA-F-]{36})/action(\.json)?/?\Z")
_GROUPS: Final = "/os-server-groups"
_NO_CONTENT: Final = 204
_MOVES: Final = {"os-migrateLive", "migrate", "evacuate", "unshelve"}
"""Actions that may name the host to which they move a server."""
_CREATE: Final = re.compile(r"/(servers|os-volumes_boot)(\.json)?/?\Z")
_OVERRULED: Final = {METADATA, STACK}
"""What names a place only for requests that do not present a claim already."""
_UNANSWERED: Final = (Unanswered, LookupError, TypeError)
"""What says that Moorage did not answer, or in another form."""
_log = logging.getLogger("moorage.nova_filter")


def filter_factory(_global: Mapping[str, str], **local: str) -> Callable[[Application], HintFilter]:
    """Paste's factory of the filter; see the module for its options.

    Raises:
        ValueError: an option is missing, unknown or malformed.
    """
    endpoint, mode = local.pop("endpoint", ""), local.pop("failure_mode", "refuse")
    groups = local.pop("server_groups", "")
    timeout = float(local.pop("timeout", "10"))
    if not endpoint.startswith(("http://", "https://")):
        raise ValueError("filter:moorage needs endpoint, the URL of Moorage's native API")
    if groups and not groups.startswith(("http://", "https://")):
        raise ValueError("filter:moorage: server_groups must be the URL of Moorage's compute API")
    if mode not in {"refuse", "ordinary"}:
        raise ValueError(f"filter:moorage: failure_mode must be refuse or ordinary, not {mode!r}")
    if local:
        raise ValueError(f"filter:moorage: unknown options: {', '.join(sorted(local))}")
    return lambda application: HintFilter(
        application, endpoint.rstrip("/"), timeout, groups.rstrip("/"), refuse=mode == "refuse"
    )


class HintFilter:
    """The filter before one application."""

    def __init__(
        self,
        application: Application,
        endpoint: str,
        timeout: float,
        groups: str = "",
        *,
        refuse: bool,
    ) -> None:
        self._application = application
        self._endpoint = endpoint
        self._timeout = timeout
        self._refuse = refuse
        self._groups = GroupDoor(application, groups, timeout) if groups else None

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        if self._groups is not None and _GROUPS in environ.get("PATH_INFO", ""):
            return self._grouped(self._groups, environ, start_response)
        return self._served(environ, start_response)

    def _grouped(
        self, groups: GroupDoor, environ: Environ, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Serve a request for server groups, at both sides."""
        try:
            answer = groups.answer(environ, _buffered(environ), refuse=self._refuse)
        except DoorClosed as error:
            _log.warning("Moorage does not answer: %s", error)
            text = "Moorage, whose server groups these are, does not answer; try again in a minute"
            return _fault(Refusal(503, text), start_response)
        if answer is None:
            return self._application(environ, start_response)
        length = [] if answer.status == _NO_CONTENT else [("Content-Length", str(len(answer.body)))]
        phrase = HTTPStatus(answer.status).phrase
        start_response(f"{answer.status} {phrase}", [*answer.headers, *length])
        return [answer.body]

    def _served(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        calls = NativeApi(self._endpoint, self._timeout, _caller(environ))
        server = _present_server(environ)
        if server is not None and (refusal := self._move_refusal(environ, calls, server)):
            return _fault(refusal, start_response)
        request = _creation(environ)
        if request is None:
            return self._application(environ, start_response)
        try:
            claim = self._claimed(environ, request, calls)
            reservation = None if claim else self._reservation(request, calls)
        except Refusal as refusal:
            return _fault(refusal, start_response)
        presented = claim or reservation
        if presented is not None:
            environ[GLOBAL_ID] = f"req-{presented}"
        if claim is None:
            own = _presented_id(environ)
            if own is not None and names_ensemble(request):
                _put_body(environ, with_claim_alone(request, own))
            return self._application(environ, start_response)
        return self._watched(environ, start_response, calls, claim)

    @staticmethod
    def _move_refusal(environ: Environ, calls: NativeApi, server: str) -> Refusal | None:
        """Why an action must not move a server to the host that it names.

        Nova's own words for that would be "No valid host was found", or none at all.
        """
        host = _named_host(environ)
        reason = None if host is None else calls.move_refusal(host, server)
        return None if reason is None else Refusal(HTTPStatus.CONFLICT, reason)

    def _claimed(
        self, environ: Environ, request: Mapping[str, Any], calls: NativeApi
    ) -> str | None:
        """The id of a claim of the place that a request names; None: it has none.

        Raises:
            Refusal: the place cannot be had.
        """
        for place in named_places(request):
            if place.named_by in _OVERRULED and _presents(environ):
                continue
            claim = self._claim_of(environ, request, calls, place)
            if claim is not None:
                return claim
        return None

    def _claim_of(
        self, environ: Environ, request: Mapping[str, Any], calls: NativeApi, place: Place
    ) -> str | None:
        claim = None
        calls.waits = insists = place.named_by in {HINT, STACK}
        try:
            claim = claimed_place(calls, place, request["server"])
        except Refusal:
            if place.named_by != METADATA:
                raise
        except _UNANSWERED as error:
            self._without_an_answer(error, insists=insists)
        if claim is not None and place.named_by in {GROUP, HINT}:
            _put_body(environ, with_claim(request, claim))
        elif claim is not None:
            _put_body(environ, with_claim_alone(request, claim))
        elif place.named_by == HINT:
            _put_body(environ, without_place(request))
        return claim

    def _reservation(self, request: Mapping[str, Any], calls: NativeApi) -> str | None:
        """The id of the reservation that a request names; None: none.

        Raises:
            Refusal: it is not the caller's, or its lease is not active.
        """
        named = named_reservation(request)
        if named is None:
            return None
        calls.waits = True
        try:
            calls.check_reservation(named)
        except _UNANSWERED as error:
            self._without_an_answer(error, insists=True)
            return None
        return named

    def _without_an_answer(self, error: Exception, *, insists: bool) -> None:
        """Go on without a place, as far as the failure mode allows.

        Raises:
            Refusal: it does not.
        """
        _log.warning("Moorage does not answer: %s", error)
        if insists and self._refuse:
            text = (
                "Moorage, which holds the server's place, does not answer; create the server again "
                "in a minute, or without its hint on a host that Nova finds"
            )
            raise Refusal(503, text) from error

    def _watched(
        self, environ: Environ, start_response: StartResponse, calls: NativeApi, claim: str
    ) -> Iterable[bytes]:
        """Pass the request on; give the claim back unless nova-api accepts the server."""
        statuses: list[str] = []

        def noted(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:  # noqa: ANN401 - as PEP 3333
            statuses.append(status)
            return start_response(status, headers, *more)

        def over() -> None:
            if not (statuses and statuses[-1].startswith("202")):
                calls.give_back(claim)

        try:
            parts = self._application(environ, noted)
        except BaseException:
            over()
            raise
        return _Watched(parts, over)


class _Watched:
    """An answer's parts; WSGI servers close it however its delivery ends, even before it begins."""

    def __init__(self, parts: Iterable[bytes], over: Callable[[], None]) -> None:
        self._parts = parts
        self._over = over

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)

    def close(self) -> None:
        """End the answer."""
        try:
            if hasattr(self._parts, "close"):
                self._parts.close()
        finally:
            self._over()


def _creation(environ: Environ) -> Any:  # noqa: ANN401 - any JSON value
    """The body of a request that creates a server; None: it does not, or has none."""
    creates = _CREATE.search(environ.get("PATH_INFO", ""))
    if environ.get("REQUEST_METHOD") != "POST" or not creates:
        return None
    try:
        return json.loads(_buffered(environ))
    except (ValueError, RecursionError):
        return None  # nova-api says what is wrong


def _present_server(environ: Environ) -> str | None:
    """Present the server of an action: a member moves only to hosts that keep its policies.

    A request id of the caller's own stays. Returns the server; None: it is no action.
    """
    acted = _ACTION.search(environ.get("PATH_INFO", ""))
    if environ.get("REQUEST_METHOD") != "POST" or not acted:
        return None
    server = acted.group(1).lower()
    if not _presents(environ):
        environ[GLOBAL_ID] = f"req-{server}"
    return server


def _named_host(environ: Environ) -> str | None:
    """The host to which the action of a request moves a server; None: it names none."""
    try:
        request = json.loads(_buffered(environ))
    except (ValueError, RecursionError):
        return None  # nova-api says what is wrong
    for name, body in request.items() if isinstance(request, dict) else ():
        host = body.get("host") if isinstance(body, dict) else None
        if name in _MOVES and isinstance(host, str) and host:
            return host
    return None


def _presents(environ: Environ) -> bool:
    """Whether the request has a global request id already, by its header."""
    return _presented_id(environ) is not None


def _presented_id(environ: Environ) -> str | None:
    """What follows `req-` in the global request id that the request brings."""
    text = str(environ.get(GLOBAL_ID) or environ.get("HTTP_X_OPENSTACK_REQUEST_ID") or "")
    return text.removeprefix("req-").lower() if text.startswith("req-") else None


def _caller(environ: Environ) -> dict[str, str]:
    """Headers with the caller's token, and its roles, which count for noauth2 only."""
    found = {
        "X-Auth-Token": environ.get("HTTP_X_AUTH_TOKEN"),
        "X-Roles": environ.get("HTTP_X_ROLES"),
    }
    return {name: value for name, value in found.items() if value is not None}


def _buffered(environ: Environ) -> bytes:
    """The body, which the application can read again."""
    try:
        length = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        length = 0
    if length <= 0 and environ.get("wsgi.input_terminated"):
        length = LONGEST + 1  # sent in chunks: the server ends the stream
    elif not 0 < length <= LONGEST:
        return b""
    body: bytes = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = BytesIO(body)
    return body


def _put_body(environ: Environ, request: Mapping[str, Any]) -> None:
    body = json.dumps(request).encode()
    environ["wsgi.input"] = BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))


def _fault(refusal: Refusal, start_response: StartResponse) -> list[bytes]:
    """An error in the form of Nova's."""
    fault = {FAULTS[refusal.status]: {"code": refusal.status, "message": refusal.message}}
    body = json.dumps(fault).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response(f"{refusal.status} {HTTPStatus(refusal.status).phrase}", headers)
    return [body]
