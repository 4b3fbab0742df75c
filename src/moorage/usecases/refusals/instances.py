"""The replayable problem of a refusal: what is stored of it, and how it is made when asked for.

The problem has the whole fleet, which is megabytes for thousands of hosts, and few refusals are
ever replayed. So of a large fleet only the request is stored, with a digest of what it saw; the
problem is made from the ledger as long as that gives the same.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InstanceOutdated, WrongState
from moorage.domain.explain import Stage
from moorage.engine.joint.build import build
from moorage.engine.joint.instance import (
    dumps_asked,
    dumps_request,
    fleet_digest,
    loads_asked,
)

if TYPE_CHECKING:
    from moorage.domain.explain import Explanation
    from moorage.engine.joint.build import BuiltProblem
    from moorage.usecases.shared.environment import Environment

MOST_ROWS: Final = 100
"""Of so many hosts at most the whole problem is stored."""
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
    instance = zlib.decompress(base64.b64decode(stored)) if stored else b""
    if not instance:
        raise InstanceOutdated(explanation.id)
    asked = loads_asked(instance)
    if asked is None:
        return instance.decode()
    built = build(asked.request, env.store.snapshot(), closed=asked.closed)
    if fleet_digest(built.problem) != asked.fleet:
        raise InstanceOutdated(explanation.id, refused_at=explanation.revision)
    return dumps_request(built).decode()


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()
