"""The Placement dialect as a WSGI application.

The order of checks is the reference's: version header, the body's headers, route and method,
existence in the client's version, media types, access, query; the handler does the rest.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote

import msgspec

from moorage.api.placement import rendering, validation
from moorage.api.placement.access import DEFAULT, permit
from moorage.api.placement.errors import refusal_of
from moorage.api.placement.fragments import Fragments, summary, summary_with_terms
from moorage.api.placement.providers import encoder
from moorage.api.placement.refusals import Refusal
from moorage.api.placement.request import Request
from moorage.api.placement.routes import Route, VersionedRoute, find, route_in_version
from moorage.api.placement.versions import HISTORY
from moorage.domain.errors import MoorageError
from moorage.engine.candidates.limit import ANY_NUMBER
from moorage.http.microversion import InvalidVersion, NegotiatedVersion, UnacceptableVersion
from moorage.http.negotiation import JSON_TYPE, accepts
from moorage.http.system_routes import READING
from moorage.http.wsgi import ROUTE
from moorage.usecases.ledger.allocations import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.engine.candidates.limit import CandidateLimit
    from moorage.http.access_rules import Access
    from moorage.http.microversion import Response
    from moorage.http.wsgi import Application, Environ, StartResponse
    from moorage.usecases.ports import Caller, Ids, Store
    from moorage.usecases.shared.allocation_write import WriteSettings

SERVICE: Final = "placement"
VERSION_HEADER: Final = "openstack-api-version"
QUERIES_KEPT: Final = 256
"""Query strings that are kept as taken apart: schedulers ask for the same flavors again."""
MOUNTS: Final = 8
"""How many mount points have their encoded providers cached; few deployments have several."""

_log = logging.getLogger(__name__)


def create_app(
    store: Store,
    ids: Ids,
    *,
    access: Access = DEFAULT,
    settings: WriteSettings = DEFAULTS,
    candidates: CandidateLimit = ANY_NUMBER,
) -> Application:
    """The dialect's application over a ledger.

    The kernel that calls it has set `moorage.request_id`, and `moorage.caller` for every path
    but the root's. `access` judges the access rules, `settings` are for writes of allocations,
    `candidates` bounds answers with candidates.
    """
    return _Dialect(store, ids, access, settings, candidates)


@dataclass(frozen=True, slots=True)
class _Dialect:
    store: Store
    ids: Ids
    access: Access
    settings: WriteSettings
    candidates: CandidateLimit
    summaries: Fragments = field(default_factory=lambda: Fragments(summary))
    summaries_with_terms: Fragments = field(default_factory=lambda: Fragments(summary_with_terms))
    _shapes: dict[str, Fragments] = field(default_factory=dict)
    """Encoded providers by mount point; a server has one or two."""

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        try:
            negotiated = _negotiated(environ.get("HTTP_OPENSTACK_API_VERSION"))
        except InvalidVersion as error:
            wrong = Refusal(400, f"Invalid microversion: invalid version string: {error}")
            return _refuse(environ, start_response, wrong, None)
        except UnacceptableVersion as error:
            wrong = Refusal(
                406, f"Invalid microversion: Unacceptable version header: {error.asked}"
            )
            return _refuse(environ, start_response, wrong, None)
        try:
            return self.serve(environ, start_response, negotiated)
        except Refusal as refusal:
            return _refuse(environ, start_response, refusal, negotiated)
        except Exception:  # noqa: BLE001 - the last resort: logged, answered in the dialect's form
            _log.exception("request %s failed", environ.get("moorage.request_id"))
            failed = Refusal(500, "An unexpected error happened; the server's log has it.")
            return _refuse(environ, start_response, failed, negotiated)

    def serve(
        self, environ: Environ, start_response: StartResponse, negotiated: NegotiatedVersion
    ) -> Iterable[bytes]:
        """Route, check, handle and answer; every refusal is raised."""
        _check_body_headers(environ)
        route, path = find(environ["REQUEST_METHOD"], _path(environ))
        environ[ROUTE] = route.path
        there = route_in_version(route, negotiated)
        if there.absent is not None:
            allow = route.allow if there.absent == _NOT_ALLOWED else None
            raise Refusal(there.absent, "", allow=allow)
        _negotiate(environ, there)
        request = _request(environ, route, path, negotiated)
        try:
            self.permit(environ, route, request)
            validation.check_query(route.operation, negotiated, request.query)
            reads = environ["REQUEST_METHOD"] in READING
            response = there.handler(self if reads else self.by(request.caller), request)
        except MoorageError as error:
            raise refusal_of(error, request) from error
        response = _as_negotiated(response, request, there)
        body = rendering.encoded(response.body)
        base = "" if response.location is None else _base(environ)
        headers = rendering.success_headers(response, body, base)
        headers += _version_headers(negotiated)
        start_response(_line(response.status), headers)
        return body

    def by(self, caller: Caller | None) -> _Dialect:
        """The dialect in which this caller causes what is committed."""
        if caller is None:
            return self
        # Written out: `replace` takes twice as long, in each write.
        return _Dialect(
            self.store.by(caller.actor),
            self.ids,
            self.access,
            self.settings,
            self.candidates,
            self.summaries,
            self.summaries_with_terms,
            self._shapes,
        )

    def shapes(self, mount: str) -> Fragments:
        """See `Environment`."""
        found = self._shapes.get(mount)
        if found is None:
            if len(self._shapes) >= MOUNTS:
                self._shapes.clear()
            found = self._shapes[mount] = Fragments(encoder(mount))
        return found

    def permit(self, environ: Environ, route: Route, request: Request) -> None:
        """Check the route's access rule."""
        if not route.rule:
            return
        caller: Caller | None = environ.get("moorage.caller")
        permit(self.access, route.rule, caller, project=request.value("project_id"))


@lru_cache(maxsize=256)
def _negotiated(header: str | None) -> NegotiatedVersion:
    """The parsed version header. Clients send few different ones; the cache is bounded."""
    return HISTORY.negotiated(header, SERVICE)


_NOT_ALLOWED: Final = 405


def _check_body_headers(environ: Environ) -> None:
    length = environ.get("CONTENT_LENGTH") or "0"
    try:
        has_body = int(length) > 0
    except ValueError:
        raise Refusal(400, "content-length header must be an integer") from None
    if has_body and not environ.get("CONTENT_TYPE"):
        raise Refusal(400, "content-type header required when content-length > 0")


def _negotiate(environ: Environ, there: VersionedRoute) -> None:
    if there.takes_json:
        # As it is written: the reference takes no other spelling of a body's type.
        sent = (environ.get("CONTENT_TYPE") or "").partition(";")[0]
        if sent != JSON_TYPE:
            raise Refusal(415, f"The media type {sent or None} is not supported, use {JSON_TYPE}")
    elif there.gives_json and not accepts(environ.get("HTTP_ACCEPT"), JSON_TYPE):
        raise Refusal(406, f"Only {JSON_TYPE} is provided")


def _request(
    environ: Environ, route: Route, path: dict[str, str], negotiated: NegotiatedVersion
) -> Request:
    try:
        query = parse_query_string(environ.get("QUERY_STRING", ""))
    except ValueError as error:
        raise Refusal(400, f"Invalid query string parameters: {error}") from error
    return Request(
        operation=route.operation,
        negotiated=negotiated,
        path=path,
        query=query,
        raw=_body(environ),
        mount=environ.get("SCRIPT_NAME", ""),
        caller=environ.get("moorage.caller"),
        global_request_id=environ.get("moorage.global_request_id"),
    )


@lru_cache(maxsize=QUERIES_KEPT)
def parse_query_string(text: str) -> tuple[tuple[str, str], ...]:
    """The names and values of a query string, in order; `;` separates as `&` does.

    Raises:
        ValueError: it is not UTF-8.
    """
    text = text.replace(";", "&")
    if "%" not in text and "+" not in text:  # nothing to decode
        parted = [item.partition("=") for item in text.split("&") if item]
        return tuple([(key, value) for key, _, value in parted])
    return tuple(parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict"))


def _body(environ: Environ) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    return bytes(environ["wsgi.input"].read(length)) if length > 0 else b""


def _path(environ: Environ) -> str:
    """The decoded path below the mount. WSGI passes its bytes as Latin-1 text."""
    raw: str = environ.get("PATH_INFO", "")
    if raw.isascii():
        return raw
    try:
        return raw.encode("latin-1").decode()
    except UnicodeDecodeError:
        raise Refusal(404, "") from None


def _base(environ: Environ) -> str:
    """Scheme, host and mount point, as the client sees them."""
    host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    mount = quote(environ.get("SCRIPT_NAME", ""), safe="/")
    return f"{environ.get('wsgi.url_scheme', 'http')}://{host}{mount}"


def _as_negotiated(response: Response, request: Request, there: VersionedRoute) -> Response:
    """The answer in the shape of the client's version."""
    if response.modified is not None and not there.dates:
        response = replace(response, modified=None)
    if not there.lowers:
        return response
    if isinstance(response.body, rendering.Assembled):
        response = replace(response, body=msgspec.json.decode(b"".join(response.body)))
    return request.negotiated.lowered(request.operation, response)


@cache
def _version_headers(negotiated: NegotiatedVersion) -> tuple[tuple[str, str], ...]:
    return (VERSION_HEADER, f"{SERVICE} {negotiated.version}"), ("vary", VERSION_HEADER)


@cache
def _line(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


def _refuse(
    environ: Environ,
    start_response: StartResponse,
    refusal: Refusal,
    negotiated: NegotiatedVersion | None,
) -> Iterable[bytes]:
    accept = environ.get("HTTP_ACCEPT")
    text = rendering.detail(
        refusal.status,
        refusal.message,
        method=environ["REQUEST_METHOD"],
        accept=accept or "",
        content_type=environ.get("CONTENT_TYPE") or "",
    )
    document = rendering.refusal_body(
        refusal,
        text,
        environ.get("moorage.request_id", ""),
        has_codes=negotiated is not None and negotiated.has("error-codes"),
        versions=_offered(refusal, negotiated),
    )
    kind, body = rendering.refusal_page(accept, refusal.status, text, document)
    headers = [("content-type", kind), ("content-length", str(len(body)))]
    if negotiated is not None:
        headers += _version_headers(negotiated)
    if refusal.allow is not None:
        headers.append(("allow", refusal.allow))
    if refusal.retry_after is not None:
        headers.append(("retry-after", str(refusal.retry_after)))
    start_response(_line(refusal.status), headers)
    return [body]


def _offered(refusal: Refusal, negotiated: NegotiatedVersion | None) -> tuple[str, str] | None:
    if negotiated is not None or refusal.status != HTTPStatus.NOT_ACCEPTABLE:
        return None
    return str(HISTORY.minimum), str(HISTORY.maximum)
