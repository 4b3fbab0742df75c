"""Requests as lines of JSON, and their replay to a Placement service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from moorage.client.placement_wire import SourceFailed
from moorage.domain.errors import Conflict, InvalidDescription
from moorage.domain.replay import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moorage.client.placement_wire import PlacementWire


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    method: str
    path: str
    microversion: str
    body: dict[str, object] | None = None


def line(request: Request) -> bytes:
    """One request as a line."""
    made = _Line(
        request.method,
        request.path,
        request.version,
        None if request.body is None else dict(request.body),
    )
    return msgspec.json.encode(made) + b"\n"


def read_lines(lines: Iterable[bytes]) -> Iterator[Request]:
    """The requests of a file.

    Raises:
        InvalidDescription: a line is none; with its number.
    """
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            found = msgspec.json.decode(text, type=_Line)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidDescription(f"not a request: {error}", line=number) from error
        if found.method not in {"PUT", "POST"} or not found.path.startswith("/"):
            raise InvalidDescription(f"not a request: {found.method} {found.path}", line=number)
        yield Request(found.method, found.path, found.body, found.microversion)


class Stopped(SourceFailed):
    """A request was refused; those before it were carried out."""


def check_empty(wire: PlacementWire) -> None:
    """Refuse a service that is not empty.

    Raises:
        Conflict: it has resource providers.
        SourceFailed: it does not answer.
    """
    wire.negotiate()
    found = wire.get("/resource_providers")["resource_providers"]
    if found:
        raise Conflict(
            f"{wire.endpoint} is not empty: it has {len(found)} resource providers,"
            f" {found[0]['name']} among them; give it an empty database"
        )


def replay(
    wire: PlacementWire,
    requests: Iterable[Request],
    *,
    start: int = 1,
    advance: Callable[[int], None] = lambda _: None,
) -> int:
    """Send the requests from number `start` on, in order; return how many were sent.

    Raises:
        Stopped: one was refused, or not answered; names its number and what was done.
    """
    sent = 0
    for number, one in enumerate(requests, 1):
        if number < start:
            continue
        try:
            wire.call(one.method, one.path, one.body, version=one.version)
        except SourceFailed as error:
            raise Stopped(
                f"request {number}: {error.message}; those before it are done: go on with"
                f" --start {number}, or with {number + 1} if this one was carried out all the same",
                status=error.status,
                code=error.code,
            ) from error
        sent += 1
        advance(1)
    return sent
