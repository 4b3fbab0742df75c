"""The dialect as a WSGI application: version documents, routing, schemas, and Nova's errors.

Mounted at `/compute`, it answers at `/compute/v2.1/os-server-groups`; the version documents at
`/compute/` and `/compute/v2.1/` are those that clients discover versions by.
"""

# ruff: noqa: ARG001 - the framework's signatures

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

import falcon
import msgspec

from moorage.api.compute import protocol, rules, validation
from moorage.api.compute.call import Call
from moorage.api.compute.protocol import Fault, fault
from moorage.api.compute.routes import ROUTES
from moorage.api.compute.versions import HISTORY
from moorage.domain.errors import Busy, Forbidden, InvalidDescription, MoorageError
from moorage.http.microversion import InvalidVersion, UnacceptableVersion
from moorage.http.negotiation import JSON_TYPE, media_type
from moorage.http.wsgi import ROUTE
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.api.compute.routes import Route
    from moorage.http.access_rules import Access
    from moorage.http.microversion import NegotiatedVersion
    from moorage.http.wsgi import Application
    from moorage.usecases.environment import UseCaseEnvironment

VERSION: Final = "/v2.1"
OPEN_PATHS: Final = ("", "/", VERSION, f"{VERSION}/")
"""Paths below the mount whose GET needs no token."""
_NOBODY: Final = Caller(user_id="", project_id="")
_MALFORMED: Final = "the request's body is not JSON"
_VARY: Final = f"{protocol.VERSION_HEADER}, {protocol.LEGACY_HEADER}"
_log = logging.getLogger(__name__)


class Refused(Exception):
    """The request is refused before it reaches a handler."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(status, message)


def create_app(env: UseCaseEnvironment, *, access: Access = rules.by_default) -> Application:
    """The API of server groups as a WSGI application, to be mounted at `/compute`.

    It expects `moorage.caller` in the environ for every path but the open ones. `access` says who
    meets which rule.
    """
    app = falcon.App()
    app.req_options.keep_blank_qs_values = True
    by_path: dict[str, list[Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, []).append(route)
    for path, some in by_path.items():
        app.add_route(f"{VERSION}{path}", _Resource(env, some, access))
    app.add_route("/", _Versions())
    app.add_route(VERSION, _Version())
    app.add_route(f"{VERSION}/", _Version())
    app.add_sink(_nothing_here)
    app.add_error_handler(Exception, _failed)
    return app


class _Versions:
    """The document of all versions."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """GET: the document."""
        _write(resp, {"versions": [_current(req)]})


class _Version:
    """The document of version 2.1, for clients that start from its endpoint."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """GET: the document."""
        _say_version(resp, _negotiated(req))
        kind = "application/vnd.openstack.compute+json;version=2.1"
        media = [{"base": JSON_TYPE, "type": kind}]
        _write(resp, {"version": {**_current(req), "media-types": media}})


def _current(req: falcon.Request) -> dict[str, object]:
    base = f"{req.forwarded_scheme}://{req.forwarded_host}{req.root_path}"
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": str(HISTORY.maximum),
        "min_version": str(HISTORY.minimum),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{base}{VERSION}/"}],
    }


class _Resource:
    """The verbs of one path."""

    def __init__(self, env: UseCaseEnvironment, routes: list[Route], access: Access) -> None:
        by_method = {route.method: route for route in routes}
        for method in falcon.HTTP_METHODS:
            route = by_method.get(method)
            responder = _nothing_here if route is None else _responder(env, route, access)
            setattr(self, f"on_{method.lower()}", responder)


def _responder(env: UseCaseEnvironment, route: Route, access: Access) -> Callable[..., None]:
    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        req.env[ROUTE] = f"{VERSION}{route.path}"
        negotiated = _negotiated(req)
        _say_version(resp, negotiated)
        caller: Caller = req.env.get("moorage.caller", _NOBODY)
        if not caller.project_scoped or not access(route.rule, caller, caller.project_id):
            raise Forbidden(f"your roles do not meet the rule {route.rule}")
        query, body = _query(req), _body(req)
        validation.check_query(route.operation, negotiated, query)
        validation.check_body(route.operation, negotiated, body)
        body = negotiated.lifted(route.operation, body)
        call = Call(env.by(caller.actor), caller, path, query, body)
        reply = negotiated.lowered(route.operation, route.handler(call))
        resp.status = falcon.code_to_http_status(reply.status)
        if reply.body is not None:
            _write(resp, reply.body)

    return respond


def _negotiated(req: falcon.Request) -> NegotiatedVersion:
    header = req.get_header(protocol.VERSION_HEADER)
    legacy = req.get_header(protocol.LEGACY_HEADER)
    if header is None and legacy is not None:
        header = f"{protocol.SERVICE} {legacy}"
    try:
        return HISTORY.negotiated(header, protocol.SERVICE)
    except InvalidVersion as error:
        raise Refused(400, f"a version is Major.Minor or latest, not {error}") from None
    except UnacceptableVersion as error:
        told = f"it is at least {error.minimum} and at most {error.maximum}"
        raise Refused(406, f"version {error.asked} is not served here; {told}") from None


def _say_version(resp: falcon.Response, negotiated: NegotiatedVersion) -> None:
    resp.set_header("Vary", _VARY)
    resp.set_header(protocol.VERSION_HEADER, f"{protocol.SERVICE} {negotiated.version}")
    resp.set_header(protocol.LEGACY_HEADER, str(negotiated.version))


def _query(req: falcon.Request) -> dict[str, str]:
    return {
        name: value[-1] if isinstance(value, list) else value for name, value in req.params.items()
    }


def _body(req: falcon.Request) -> Any:  # noqa: ANN401 - decoded JSON
    data = req.bounded_stream.read() if req.method == "POST" else b""
    if not data:
        return None
    if media_type(req.content_type) != JSON_TYPE:
        raise InvalidDescription(_MALFORMED)
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        raise InvalidDescription(_MALFORMED) from None


def _write(resp: falcon.Response, body: object) -> None:
    resp.content_type = falcon.MEDIA_JSON
    resp.data = json.dumps(body, ensure_ascii=False).encode()


def _nothing_here(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
    told = "only server groups are served here, at /v2.1/os-server-groups"
    raise Refused(404, f"{told}; Nova has all other resources of its API")


def _failed(req: falcon.Request, resp: falcon.Response, error: Exception, params: object) -> None:
    if isinstance(error, Refused):
        said = error.fault
    elif isinstance(error, MoorageError):
        said = fault(error)
        if isinstance(error, Busy):
            resp.set_header("Retry-After", str(error.retry_after))
    else:
        # Nothing internal is disclosed; the log has more under the request id.
        _log.error("request %s failed", req.env.get("moorage.request_id"), exc_info=error)
        said = Fault(500, "something went wrong; the log has it under the request id")
    resp.status = falcon.code_to_http_status(said.status)
    _write(resp, said.body)
