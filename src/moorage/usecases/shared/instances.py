"""The replayable problem of a refusal or decision: what is stored of it, and made from that.

The problem has the whole fleet, which is megabytes for thousands of hosts, and few are ever
replayed. So of a large fleet only the request is stored, with a digest of what it saw; the problem
is made from the ledger as long as that gives the same.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InstanceOutdated, WrongState
from moorage.domain.explain import Stage
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_fleet_room
from moorage.engine.joint.instance import (
    dumps_asked,
    dumps_request,
    dumps_solved,
    fleet_digest,
    loads_asked,
    loads_stated,
)
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from moorage.domain.decisions import Decision
    from moorage.domain.explain import Explanation
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.build import BuiltProblem
    from moorage.usecases.shared.environment import Environment

MOST_ROWS: Final = 100
"""Of so many hosts at most the whole problem is stored."""
MOST_DECIDED: Final = 30
"""As `MOST_ROWS`, of decisions: each one waits until it is written."""
MOST_BYTES: Final = 20_000
"""The most that is stored of one problem, compressed."""
_JSON: Final = "{"
"""How an instance begins that was stored before 0.2: not compressed."""


def stored_instance(built: BuiltProblem) -> str:
    """What is stored of a refused problem: all of it, the request, or nothing, if too large."""
    if built.terrain.host_count <= MOST_ROWS:
        whole = _packed(dumps_request(built))
        if len(whole) <= MOST_BYTES:
            return whole
    request = _packed(dumps_asked(built))
    return request if len(request) <= MOST_BYTES else ""


def decided_instance(built: BuiltProblem) -> str:
    """What is stored of a problem that has a placement: as much as is worth its time."""
    if built.terrain.host_count <= MOST_DECIDED:
        whole = _packed(dumps_solved(built), zlib.Z_BEST_SPEED)
        if len(whole) <= MOST_BYTES:
            return whole
    request = _packed(dumps_asked(built), zlib.Z_BEST_SPEED)
    return request if len(request) <= MOST_BYTES else ""


def replayable_decision(env: Environment, decision: Decision, stored: str) -> str:
    """The problem of a decision as JSON, from what is stored of it.

    What was made on a large fleet is made from the ledger without the ensemble's own bookings.

    Raises:
        InstanceOutdated: only the request is stored, or not even that, and the hosts have changed.
    """
    if not stored:
        raise InstanceOutdated(f"decision {decision.id}")
    instance = _unpacked(stored)
    asked = loads_asked(instance)
    if asked is None:
        return instance.decode()
    request, fleet = asked.request, env.store.snapshot()
    ensemble = if_stored(env.store.ensemble, decision.ensemble_id)
    if ensemble is not None:
        moved = [one for one in ensemble.members if one.name not in request.fixed]
        own = {one for member in moved for one in (member.uuid, member.server_id) if one}
        fleet = with_bookings(fleet, dict.fromkeys(own, ()))
        request = replace(request, own_consumers=request.own_consumers | own)
    built = build(request, fleet, closed=asked.closed)
    if fleet_digest(built.problem) != asked.fleet:
        raise InstanceOutdated(f"decision {decision.id}", made_at=decision.revision)
    return dumps_solved(with_fleet_room(built, fleet, env.store.flavors)).decode()


def asked_request(stored: str) -> EnsembleRequest | None:
    """The request of a stored problem; None: it was too large."""
    return loads_stated(_unpacked(stored)) if stored else None


def replayable_instance(env: Environment, explanation: Explanation, stored: str) -> str:
    """The problem of a refusal as JSON, from what is stored of it.

    Raises:
        InstanceOutdated: only the request is stored, or not even that, and the hosts have changed.
        WrongState: a quota has refused, so that there was no problem.
    """
    if explanation.stage is Stage.QUOTA:
        raise WrongState("a quota has refused it: there was no problem to solve")
    if stored.startswith(_JSON):
        return stored
    instance = _unpacked(stored) if stored else b""
    if not instance:
        raise InstanceOutdated(f"explanation {explanation.id}")
    asked = loads_asked(instance)
    if asked is None:
        return instance.decode()
    built = build(asked.request, env.store.snapshot(), closed=asked.closed)
    if fleet_digest(built.problem) != asked.fleet:
        raise InstanceOutdated(f"explanation {explanation.id}", made_at=explanation.revision)
    return dumps_request(built).decode()


def _packed(data: bytes, level: int = zlib.Z_DEFAULT_COMPRESSION) -> str:
    return base64.b64encode(zlib.compress(data, level)).decode()


def _unpacked(stored: str) -> bytes:
    return zlib.decompress(base64.b64decode(stored))
