"""Forwards requests that search to the planner processes (ADR-0021).

An HTTP worker knows the caller, finds the route, and admits the request; then its thread only
waits. What a planner needs comes in one message, which no client can write: the caller as the
worker knows it, the environ, the body, and the deadline, on the clock that all processes of a
machine share.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from moorage.domain import deadline
from moorage.http.kernel import CALLER
from moorage.http.process_queue import ProcessPool
from moorage.usecases.ports import Caller  # noqa: TC001 - msgspec reads the annotation

if TYPE_CHECKING:
    import falcon

    from moorage.http.wsgi import Environ

MARGIN: Final = 5.0
"""Seconds past its deadline that a request's answer may take to come."""
_SECRETS: Final = frozenset({"HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN", "HTTP_COOKIE"})


@dataclass(frozen=True, slots=True)
class PlannerRequest:
    """A request as it is sent to a planner."""

    environ: dict[str, str]
    """Its texts."""
    caller: Caller
    body: bytes
    began: float
    """When its time began, monotonic."""
    at: float
    """When its time is over."""


@dataclass(frozen=True, slots=True)
class PlannerAnswer:
    """What a planner answers."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes

    def give(self, resp: falcon.Response) -> None:
        """Send it to the client."""
        resp.status = self.status
        for name, value in self.headers:
            if name.lower() != "content-length":  # the framework's, as of every answer
                resp.set_header(name, value)
        resp.data = self.body


class Planner(Protocol):
    """Runs requests in another process."""

    def __call__(self, environ: Environ) -> PlannerAnswer:
        """The answer to a request that is authenticated and has a deadline.

        Raises:
            Busy: no planner could take it, or the one that had it died or did not answer in time.
            Failed: the planner met an internal error.
        """


@dataclass(frozen=True, slots=True)
class PlannerClient:
    """The planner processes that listen at an address."""

    address: str

    def __call__(self, environ: Environ) -> PlannerAnswer:
        """Send a request to a planner process, and return its answer."""
        limit = deadline.current()
        assert limit is not None, "the kernel gives every request one"
        texts = {
            name: value
            for name, value in environ.items()
            if isinstance(value, str) and name not in _SECRETS
        }
        if texts["REQUEST_METHOD"] == "HEAD":  # the worker leaves the body out
            texts["REQUEST_METHOD"] = "GET"
        body: bytes = environ["wsgi.input"].read()
        asked = PlannerRequest(texts, environ[CALLER], body, limit.began, limit.at)
        message = msgspec.msgpack.encode(asked)
        planners = ProcessPool("planner", self.address)
        return _ANSWER.decode(planners.ask(lambda: (message,), until=limit.at, margin=MARGIN))


def decode_request(message: bytes) -> PlannerRequest:
    """The request in a message.

    Raises:
        msgspec.MsgspecError: there is none in it.
    """
    return _PLANNED.decode(message)


def encode_answer(answer: PlannerAnswer) -> bytes:
    """The answer as a message."""
    return msgspec.msgpack.encode(answer)


def deadline_of(planned: PlannerRequest) -> deadline.Deadline:
    """The deadline of a request, in this process."""
    return deadline.Deadline(planned.began, planned.at, time.monotonic, last=planned.at)


_PLANNED: Final = msgspec.msgpack.Decoder(PlannerRequest)
_ANSWER: Final = msgspec.msgpack.Decoder(PlannerAnswer)
