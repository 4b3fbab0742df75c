"""Instances: joint problems saved as JSON, to be replayed.

One form serves bug reports, regression tests, benchmarks and the transfer to a solver process.
`dumps` writes a problem, which is enough to solve it; `dumps_request` writes the request and the
terrain, which is enough to solve, verify and explain it; `dumps_asked` writes the request alone, to
be built on a snapshot again. The same content gives the same bytes. A file may also have the
verdict that was recorded when it was saved.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from moorage.domain.errors import InvalidDescription
from moorage.engine.joint import instance_problem
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.instance_request import (
    decode_request,
    decode_room,
    decode_terrain,
    encode_request,
    encode_room,
    encode_terrain,
)
from moorage.engine.joint.problem import Outcome, Verdict, permitted_hosts
from moorage.policies.primitives import NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.host_filters import Closed
    from moorage.engine.joint.problem import Problem

FORMAT: Final = "moorage-instance"
VERSION: Final = 1
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


def dumps(problem: Problem) -> bytes:
    """Write a problem."""
    return _write("problem", instance_problem.encode(problem))


def loads(data: bytes | str) -> Problem:
    """The problem of an instance of either kind.

    Raises:
        InvalidDescription: not an instance, or of a version this program does not know.
    """
    kind, body = _read(data)
    try:
        return _built(body).problem if kind == "request" else instance_problem.decode(body)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidDescription(f"a damaged instance: {error!r}") from error


def dumps_request(built: BuiltProblem) -> bytes:
    """Write a request with its terrain: all that verifying and explaining need."""
    return _write(
        "request",
        {
            "request": encode_request(built.request),
            "terrain": encode_terrain(built.terrain),
            "closed": _closed(built),
        },
    )


def dumps_solved(built: BuiltProblem) -> bytes:
    """Write a request with what solving it depends on, and no more.

    That is the room for others, and of the occupants of hosts those that a policy has read. The
    room of devices is left out: of placements that cost the same, another one may be found.
    """
    view, room = built.policy_view, built.problem.room
    every = view.looked_beside or built.alternatives is not None
    inspected = None if every else sorted(view.read_occupants_of)
    document = {
        "request": encode_request(built.request),
        "terrain": encode_terrain(built.terrain, inspected),
        "closed": _closed(built),
    }
    if room is not None and not room.devices:
        document["room"] = encode_room(room)
    return _write("request", document)


def _closed(built: BuiltProblem) -> dict[str, list[str]]:
    return {reason: sorted(uuids) for reason, uuids in sorted(built.closed.items())}


class Asked(NamedTuple):
    """A request without its fleet: enough to build its problem while the fleet is the same."""

    request: EnsembleRequest
    closed: Closed
    fleet: str
    """The `fleet_digest` of its problem."""


def dumps_asked(built: BuiltProblem) -> bytes:
    """Write a request without its fleet."""
    return _write(
        "asked",
        {
            "request": encode_request(built.request),
            "closed": _closed(built),
            "fleet": fleet_digest(built.problem),
        },
    )


def loads_asked(data: bytes | str) -> Asked | None:
    """Read what `dumps_asked` wrote; None: the instance has its fleet.

    Raises:
        InvalidDescription: not an instance.
    """
    kind, body = _read(data)
    if kind != "asked":
        return None
    closed = {reason: frozenset(uuids) for reason, uuids in body["closed"].items()}
    return Asked(decode_request(body["request"]), closed, body["fleet"])


def loads_stated(data: bytes | str) -> EnsembleRequest:
    """The request of an instance that has one, with its fleet or without.

    Raises:
        InvalidDescription: not such an instance.
    """
    kind, body = _read(data)
    if kind not in {"request", "asked"}:
        raise InvalidDescription(f"an instance with a request is needed, this has a {kind}")
    return decode_request(body["request"])


def fleet_digest(problem: Problem) -> str:
    """Equal for problems of one request if it sees the same hosts, in the same state and order."""
    digest = hashlib.blake2b("\n".join(problem.hosts).encode(), digest_size=16)
    columns = [problem.free, problem.capacity, problem.allowed, problem.fixed]
    columns += [domains for _, domains in sorted(problem.domains.items())]
    for one in problem.primitives:
        if isinstance(one, OnlyOn | NeverOn):
            columns.append(permitted_hosts(one, len(problem.hosts)))
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def loads_request(data: bytes | str) -> BuiltProblem:
    """Read what `dumps_request` wrote, and build the problem again.

    Raises:
        InvalidDescription: not such an instance.
    """
    kind, body = _read(data)
    if kind != "request":
        raise InvalidDescription(f"an instance with a request is needed, this has a {kind}")
    try:
        return _built(body)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidDescription(f"a damaged instance: {error!r}") from error


def with_verdict(data: bytes | str, verdict: Verdict) -> bytes:
    """The instance with a recorded verdict.

    Raises:
        InvalidDescription: not an instance.
    """
    document = _document(data)
    document["recorded"] = str(verdict)
    return _bytes(document)


def recorded_verdict(data: bytes | str) -> Verdict | None:
    """The verdict recorded in an instance, or None.

    Raises:
        InvalidDescription: not an instance, or an unknown verdict.
    """
    found = _document(data).get("recorded")
    try:
        return None if found is None else Verdict(found)
    except ValueError as error:
        raise InvalidDescription(f"a damaged instance: recorded {found!r}") from error


def dumps_outcome(outcome: Outcome) -> bytes:
    """Write a solver's answer."""
    return _write(
        "outcome",
        {
            "verdict": str(outcome.verdict),
            "solver": outcome.solver,
            "hosts": None if outcome.hosts is None else outcome.hosts.tolist(),
            "value": outcome.value,
            "bound": outcome.bound,
            "wall_ms": outcome.wall_ms,
        },
    )


def loads_outcome(data: bytes | str) -> Outcome:
    """Read what `dumps_outcome` wrote.

    Raises:
        InvalidDescription: not an outcome.
    """
    kind, body = _read(data)
    if kind != "outcome":
        raise InvalidDescription(f"an outcome is needed, this is a {kind}")
    hosts = body["hosts"]
    return Outcome(
        verdict=Verdict(body["verdict"]),
        solver=body["solver"],
        hosts=None if hosts is None else np.array(hosts, dtype=np.int64),
        value=body["value"],
        bound=body["bound"],
        wall_ms=body["wall_ms"],
    )


def _built(body: Mapping[str, Any]) -> BuiltProblem:
    built = build_on_terrain(
        decode_request(body["request"]),
        decode_terrain(body["terrain"]),
        closed={reason: frozenset(uuids) for reason, uuids in body["closed"].items()},
    )
    if "room" not in body:
        return built
    return replace(built, problem=replace(built.problem, room=decode_room(body["room"])))


def _write(kind: str, body: Mapping[str, object]) -> bytes:
    return _bytes({"format": FORMAT, "version": VERSION, "kind": kind, kind: body})


def _bytes(document: Mapping[str, object]) -> bytes:
    return _ENCODER.encode(document)


def _read(data: bytes | str) -> tuple[str, Mapping[str, Any]]:
    document = _document(data)
    kind = document["kind"]
    return kind, document[kind]


def _document(data: bytes | str) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError as error:
        raise InvalidDescription(f"not an instance: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidDescription(f"not an instance: no format {FORMAT!r}")
    if document.get("version") != VERSION:
        raise InvalidDescription(
            f"instance of version {document.get('version')}, this program reads {VERSION}"
        )
    kind = document.get("kind")
    body = document.get(kind) if isinstance(kind, str) else None
    if not isinstance(kind, str) or not isinstance(body, dict):
        raise InvalidDescription("a damaged instance: no body")
    unknown = document.keys() - {"format", "version", "kind", kind, "recorded"}
    if unknown:
        raise InvalidDescription(f"not an instance: unknown key {min(unknown)!r}")
    return document
