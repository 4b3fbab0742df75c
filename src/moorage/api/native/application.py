"""The native API as a WSGI application: the route table on falcon."""

# ruff: noqa: ARG001, ARG002, FBT001 - the framework's signatures

from __future__ import annotations

import logging
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import falcon
import msgspec

from moorage.api.native import errors, protocol
from moorage.api.native.access import permit
from moorage.api.native.body_errors import invalid_body
from moorage.api.native.call import Call, Reply
from moorage.api.native.errors import refuse
from moorage.api.native.explanations import refused_request
from moorage.api.native.openapi import document
from moorage.api.native.paging import ENCODER
from moorage.api.native.routes import ROUTES, simulation
from moorage.api.native.rules import by_default
from moorage.domain import deadline
from moorage.domain.errors import (
    Busy,
    ConcurrentUpdate,
    ConsumerConflict,
    InvalidDescription,
    MoorageError,
    NotFound,
    ProviderConflict,
    QuotaExceeded,
    Undecided,
)
from moorage.http.falcon_stream import send
from moorage.http.negotiation import JSON_TYPE, media_type
from moorage.http.wsgi import ROUTE
from moorage.usecases.ports import Caller
from moorage.usecases.refusals.quota_refusals import explain_quota

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from falcon import App

    from moorage.api.native.clock import SettableClock
    from moorage.api.native.route import Route
    from moorage.http.access_rules import Access
    from moorage.http.planner_client import Planner
    from moorage.usecases.environment import UseCaseEnvironment

_log = logging.getLogger(__name__)
NOBODY: Final = Caller(user_id="", project_id="")


OPEN_PATHS: Final = ("", "/", "/openapi.json")
"""Paths below the mount whose GET needs no token."""


def create_app(
    env: UseCaseEnvironment,
    *,
    clock: SettableClock | None = None,
    access: Access = by_default,
    planner: Planner | None = None,
) -> App[Any, Any]:
    """The native API as a WSGI application, to be mounted under `/v1`.

    It expects `moorage.caller` and `moorage.request_id` in the environ. `clock` is a
    simulation's; with it the clock's routes exist. `access` says who meets which rule. Expensive
    requests are handed to the planner, if there is one.
    """
    routes = ROUTES if clock is None else (*ROUTES, *simulation(clock))
    return application(env, routes, access, planner)


def application(
    env: UseCaseEnvironment,
    routes: tuple[Route, ...],
    access: Access,
    planner: Planner | None = None,
) -> falcon.App[Any, Any]:
    """Make the application. All routes of a path become one resource.

    Expensive requests are handed to the planner, if there is one.
    """
    app = falcon.App()
    app.req_options.strip_url_path_trailing_slash = True
    app.req_options.keep_blank_qs_values = True
    by_path: dict[str, list[Route]] = {}
    for route in routes:
        by_path.setdefault(route.path, []).append(route)

    @cache
    def described() -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(document(routes)))

    for path, some in by_path.items():
        app.add_route(path.rstrip("/") or "/", Resource(env, some, described, access, planner))
    app.add_sink(_nothing_here)
    app.add_error_handler(Exception, _failed)
    app.add_middleware(Versioned())
    return app


class Resource:
    """The verbs of one path."""

    def __init__(
        self,
        env: UseCaseEnvironment,
        routes: Sequence[Route],
        described: Callable[[], msgspec.Raw],
        access: Access,
        planner: Planner | None,
    ) -> None:
        by_method = {route.method: route for route in routes}
        if "GET" in by_method:
            by_method["HEAD"] = by_method["GET"]  # the framework sends no body
        allowed = tuple(sorted(by_method))
        for method in falcon.HTTP_METHODS:
            route = by_method.get(method)
            responder = (
                _refuse_verb(method, allowed)
                if route is None
                else _responder(env, route, described, access, planner)
            )
            setattr(self, f"on_{method.lower()}", responder)


class Versioned:
    """Negotiates the version of each request; names it in the response, and what was preferred."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Negotiate the version."""
        resp.set_header("Vary", protocol.VERSION_HEADER)
        req.context.version = protocol.negotiate(req.get_header(protocol.VERSION_HEADER))

    def process_response(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        resource: object,
        succeeded: bool,
    ) -> None:
        """Name the version that answered."""
        version = getattr(req.context, "version", protocol.HISTORY.maximum)
        resp.set_header(protocol.VERSION_HEADER, f"{protocol.SERVICE} {version}")
        preference = getattr(req.context, "preference", None)
        if preference is not None:
            resp.set_header(protocol.APPLIED, preference)


def _responder(
    env: UseCaseEnvironment,
    route: Route,
    described: Callable[[], msgspec.Raw],
    access: Access,
    planner: Planner | None,
) -> Callable[..., None]:
    decoder = None if route.request is None else msgspec.json.Decoder(route.request)

    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        req.env[ROUTE] = route.path
        caller = permit(access, route.access, route.rule, req.env.get("moorage.caller", NOBODY))
        with env.admission.turn(caller) if route.expensive else nullcontext():
            if route.expensive and planner is not None:
                planner(req.env).give(resp)
            else:
                work(req, resp, caller, path)

    def work(
        req: falcon.Request, resp: falcon.Response, caller: Caller, path: dict[str, str]
    ) -> None:
        header = req.get_header("If-Match")
        call = Call(
            env=env.by(caller.actor),
            caller=caller,
            base=req.root_path,
            path=path,
            query=_query(req, route),
            body=None if decoder is None else _body(req, decoder),
            matched=protocol.if_match(header),
            match_given=header is not None,
            may=lambda rule: access(rule, caller, caller.project_id),
            header=req.get_header,
            described=described,
        )
        req.context.call = call
        try:
            with _preferring(env, req):
                reply = route.handler(call)
        except QuotaExceeded as error:
            kept = route.mutates and not call.dry_run
            asked = refused_request(call, route.path)
            explain_quota(call.env, caller, error, asked, stored=kept)
            raise
        except ConcurrentUpdate as error:
            if header is None or isinstance(error, ProviderConflict | ConsumerConflict):
                raise
            raise protocol.PreconditionFailed(error.message) from error
        _answer(resp, route, reply)

    return respond


@contextmanager
def _preferring(env: UseCaseEnvironment, req: falcon.Request) -> Iterator[None]:
    """Answer within the time that the client prefers to wait, where that is possible."""
    seconds = protocol.preferred_wait(req.get_header(protocol.PREFER))
    if seconds is None:
        yield
        return
    with deadline.preferring(env.stopwatch, seconds) as wait:
        try:
            yield
        finally:
            req.context.preference = f"wait={seconds}" if wait.applied else None


def _answer(resp: falcon.Response, route: Route, reply: Reply) -> None:
    status = route.status if reply.status is None else reply.status
    if reply.tag is not None:
        resp.set_header("ETag", f'W/"{reply.tag}"')
        resp.set_header("Cache-Control", "private, no-cache")
        resp.append_header("Vary", "Accept-Encoding")
    if reply.body is None and reply.parts is None and reply.data is None:
        resp.status = falcon.code_to_http_status(reply.status or 204)
        return
    resp.status = falcon.code_to_http_status(status)
    resp.content_type = falcon.MEDIA_JSON
    if reply.data is not None:
        resp.data = reply.data
        if reply.encoding is not None:
            resp.set_header("Content-Encoding", reply.encoding)
    elif reply.parts is None:
        resp.data = ENCODER.encode(reply.body)
    else:
        send(resp, reply.parts)
    if reply.generation is not None:
        resp.set_header("ETag", f'"{reply.generation}"')
    if reply.location is not None:
        resp.set_header("Location", reply.location)


def _query(req: falcon.Request, route: Route) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in req.params.items():
        if name not in route.parameters:
            known = ", ".join(route.parameters) or "none"
            raise InvalidDescription(f"unknown query parameter {name}; known: {known}", path=name)
        if isinstance(value, list):
            raise InvalidDescription(f"query parameter {name} is given twice", path=name)
        found[name] = value
    return found


def _body(req: falcon.Request, decoder: msgspec.json.Decoder[Any]) -> object:
    sent = media_type(req.content_type) or JSON_TYPE
    if sent != JSON_TYPE:
        raise protocol.UnsupportedMediaType(f"send {JSON_TYPE}, not {sent}")
    data = req.bounded_stream.read()
    try:
        return _decoded(data, decoder)
    except msgspec.ValidationError as error:
        raise invalid_body(str(error), decoder.type) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidDescription(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise InvalidDescription("the body is nested too deeply") from None


def _decoded(data: bytes, decoder: msgspec.json.Decoder[Any]) -> object:
    try:
        return decoder.decode(data)
    except msgspec.ValidationError:
        # Found before the end was reached: what is cut off there is no JSON, whatever it says.
        # Nothing is made of it: 900,000 keys that nobody knows would take a second, and 100 MB.
        data.decode()
        msgspec.json.decode(data, type=msgspec.Raw)
        raise


def _refuse_verb(method: str, allowed: tuple[str, ...]) -> Callable[..., None]:
    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        resp.set_header("Allow", ", ".join(allowed))
        raise protocol.MethodNotAllowed(method, allowed)

    return respond


def _nothing_here(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
    raise NotFound("resource", req.path)


def _failed(req: falcon.Request, resp: falcon.Response, error: Exception, params: object) -> None:
    if not isinstance(error, MoorageError):
        # The kernel makes the 500 and logs the trace: nothing internal is disclosed here.
        raise error
    operator_error = refuse(
        error, str(req.env.get("moorage.request_id", "")), getattr(req.context, "call", None)
    )
    resp.status = falcon.code_to_http_status(operator_error.errors[0].status)
    resp.content_type = falcon.MEDIA_JSON
    resp.data = ENCODER.encode(operator_error)
    if isinstance(error, Busy) and not isinstance(error, Undecided):
        resp.set_header("Retry-After", str(error.retry_after))
    if operator_error.errors[0].status == errors.NOT_ACCEPTABLE:
        resp.set_header("OpenStack-API-Maximum-Version", str(protocol.HISTORY.maximum))
