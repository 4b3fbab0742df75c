"""The dialect as a WSGI application: version documents, routing, decoding, and Blazar's errors.

Mounted at `/reservation`, it answers at `/reservation/v1/...` and, with the version documents, at
its root; every route also with `.json` behind it.
"""

# ruff: noqa: ARG001 - the framework's signatures

from __future__ import annotations

import json
import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import falcon
import msgspec

from moorage.api.leases import protocol, rules
from moorage.api.leases.call import Call, Collection, Reply
from moorage.api.leases.protocol import BEYOND, HISTORY, ErrorReply, error_reply
from moorage.api.leases.routes import ROUTES
from moorage.domain.errors import Busy, Forbidden, MoorageError, QuotaExceeded
from moorage.domain.explain import RefusedRequest
from moorage.http.falcon_stream import send
from moorage.http.microversion import InvalidVersion, UnacceptableVersion
from moorage.http.wsgi import ROUTE
from moorage.usecases.ports import Caller
from moorage.usecases.refusals.quota_refusals import explain_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moorage.api.leases.routes import Route
    from moorage.http.access_rules import Access
    from moorage.http.microversion import NegotiatedVersion
    from moorage.http.planner_client import Planner
    from moorage.http.wsgi import Application, Environ, StartResponse
    from moorage.usecases.environment import UseCaseEnvironment

VERSION: Final = "/v1"
OPEN_PATHS: Final = ("", "/", "/versions", VERSION, f"{VERSION}/")
"""Paths below the mount whose GET needs no token."""
_NOBODY: Final = Caller(user_id="", project_id="")
_log = logging.getLogger(__name__)


class EarlyError(Exception):
    """Errors before a handler is reached, which Blazar words in another form."""

    def __init__(self, said: ErrorReply, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(said.message)
        self.said = said
        self.headers = headers


def create_app(
    env: UseCaseEnvironment, *, access: Access = rules.by_default, planner: Planner | None = None
) -> Application:
    """The lease API as a WSGI application, to be mounted at `/reservation`.

    It expects `moorage.caller` in the environ for every path but the open ones. `access` says who
    meets which rule. Expensive requests are handed to the planner, if there is one.
    """
    app = falcon.App()
    app.req_options.strip_url_path_trailing_slash = True
    app.req_options.keep_blank_qs_values = True
    by_path: dict[str, list[Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, []).append(route)
    for path, some in by_path.items():
        app.add_route(f"{VERSION}{path}", _Resource(env, some, access, planner))
    for path in ("/", "/versions"):
        app.add_route(path, _Versions())
    app.add_route(VERSION, _Version())
    app.add_route(f"{VERSION}/", _Version())
    app.add_sink(_nothing_here)
    app.add_error_handler(Exception, _failed)

    def without_suffix(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path.endswith(".json"):
            environ["PATH_INFO"] = path.removesuffix(".json")
        answer: Iterable[bytes] = app(environ, start_response)
        return answer

    return without_suffix


class _Versions:
    """The version document of all versions, which Blazar answers with 300."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """GET: the document."""
        resp.status = falcon.HTTP_300
        _write(resp, {"versions": [_current(req)]})


class _Version:
    """The version document of version 1, for clients that start from its endpoint."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """GET: the document."""
        _write(resp, {"version": _current(req)})


def _current(req: falcon.Request) -> dict[str, object]:
    base = f"{req.forwarded_scheme}://{req.forwarded_host}{req.root_path}"
    return {
        "id": "v1.0",
        "status": "CURRENT",
        "links": [{"rel": "self", "href": f"{base}{VERSION}"}],
        "min_version": str(HISTORY.minimum),
        "max_version": str(HISTORY.maximum),
    }


class _Resource:
    """The verbs of one path."""

    def __init__(
        self, env: UseCaseEnvironment, routes: list[Route], access: Access, planner: Planner | None
    ) -> None:
        by_method = {route.method: route for route in routes}
        allowed = ", ".join(sorted(by_method))
        for method in falcon.HTTP_METHODS:
            route = by_method.get(method)
            responder = (
                _refuse_verb(allowed) if route is None else _responder(env, route, access, planner)
            )
            setattr(self, f"on_{method.lower()}", responder)


def _responder(
    env: UseCaseEnvironment, route: Route, access: Access, planner: Planner | None
) -> Callable[..., None]:
    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        req.env[ROUTE] = f"{VERSION}{route.path}"
        resp.set_header("Vary", protocol.VERSION_HEADER)
        negotiated = req.context.negotiated = _negotiated(req)
        resp.set_header(protocol.VERSION_HEADER, f"{protocol.SERVICE} {negotiated.version}")
        caller: Caller = req.env.get("moorage.caller", _NOBODY)
        if not caller.project_scoped or not access(route.rule, caller, caller.project_id):
            raise Forbidden(f"Policy doesn't allow {route.rule} to be performed.")
        with env.admission.turn(caller) if route.expensive else nullcontext():
            if route.expensive and planner is not None:
                planner(req.env).give(resp)
            else:
                work(req, resp, caller, path)

    def work(
        req: falcon.Request, resp: falcon.Response, caller: Caller, path: dict[str, str]
    ) -> None:
        negotiated: NegotiatedVersion = req.context.negotiated
        acting = env.by(caller.actor)
        call = Call(acting, caller, negotiated, path, _query(req), _body(req))
        try:
            reply: Reply = route.handler(call)
        except QuotaExceeded as error:
            explain_quota(acting, caller, error, _asked(call), stored=True)
            raise
        resp.status = falcon.code_to_http_status(reply.status)
        if isinstance(reply.body, Collection):
            resp.content_type = falcon.MEDIA_JSON
            send(resp, reply.body.parts())
        elif reply.body is not None:
            _write(resp, reply.body)

    return respond


def _asked(call: Call) -> RefusedRequest:
    name = call.body.get("name") if isinstance(call.body, dict) else None
    return RefusedRequest("", name if isinstance(name, str) else "", call.caller.user_id)


def _negotiated(req: falcon.Request) -> NegotiatedVersion:
    try:
        return HISTORY.negotiated(req.get_header(protocol.VERSION_HEADER), protocol.SERVICE)
    except InvalidVersion as error:
        wrong = f"API Version String '{error}' is of invalid format. It must be Major.Minor."
        raise EarlyError(ErrorReply(400, wrong)) from None
    except UnacceptableVersion as error:
        wrong = (
            f"{protocol.SERVICE.capitalize()} API does not support version {error.asked}; it is at"
            f" least {error.minimum} and at most {error.maximum}"
        )
        raise EarlyError(ErrorReply(406, wrong)) from None


def _query(req: falcon.Request) -> dict[str, str]:
    return {
        name: value[-1] if isinstance(value, list) else value for name, value in req.params.items()
    }


def _body(req: falcon.Request) -> Any:  # noqa: ANN401 - decoded JSON
    if req.method not in {"POST", "PUT", "PATCH"}:
        return None
    data = req.bounded_stream.read()
    try:
        # Other than `json`, it takes no numbers that are none, nor half a surrogate pair.
        return msgspec.json.decode(data) if data else None
    except (ValueError, RecursionError):
        raise EarlyError(ErrorReply(400, "The request's body is not JSON")) from None


def _write(resp: falcon.Response, body: object) -> None:
    resp.content_type = falcon.MEDIA_JSON
    resp.data = json.dumps(body, ensure_ascii=False).encode()


def _refuse_verb(allowed: str) -> Callable[..., None]:
    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        raise EarlyError(ErrorReply(405, "Method Not Allowed"), (("Allow", allowed),))

    return respond


def _nothing_here(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
    raise EarlyError(ErrorReply(404, "Not Found"))


def _failed(req: falcon.Request, resp: falcon.Response, error: Exception, params: object) -> None:
    if isinstance(error, EarlyError):
        said, body = error.said, error.said.early
        resp.set_headers(error.headers)
    elif isinstance(error, MoorageError):
        negotiated = getattr(req.context, "negotiated", HISTORY.at(HISTORY.minimum))
        said = error_reply(error, beyond=negotiated.has(BEYOND))
        body = said.body
        if isinstance(error, Busy):
            resp.set_header("Retry-After", str(error.retry_after))
    else:
        # Nothing internal is disclosed; the log has more under the request id.
        _log.error("request %s failed", req.env.get("moorage.request_id"), exc_info=error)
        said = ErrorReply(500, "Internal Server Error")
        body = {**said.body, "error_name": protocol.INTERNAL}
    resp.status = falcon.code_to_http_status(said.status)
    _write(resp, body)
