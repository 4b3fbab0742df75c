"""Where Nova put several servers one after the other, beside what a joint decision gives them.

The joint decision is made for all of them at once, on the hosts as they are, with the room of these
servers given back; everything else stays.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import Member
from moorage.domain.errors import Busy, Infeasible
from moorage.domain.period import SECOND
from moorage.shadow.report import JointCase, timestamp
from moorage.usecases.compliance.judgement import broken_policies
from moorage.usecases.decide.loop import decide_proposal
from moorage.usecases.decide.member_places import bookings_of, host_row
from moorage.usecases.decide.request import (
    Proposal,
    RefusalDetail,
    RefusalReader,
    RequestIdentity,
)
from moorage.usecases.decide.solution import DecisionOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.ensembles import Ensemble
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment

LEAST: Final = 2
"""Fewer servers are no joint decision."""
_OPTIONS: Final = DecisionOptions(time_limit=5 * SECOND)
_UNREAD: Final = RefusalReader(detail=RefusalDetail.NONE)


def judge(env: UseCaseEnvironment, of: str, ensemble: Ensemble) -> JointCase | None:
    """Decide an ensemble's running servers anew, without writing anything.

    Args:
        env: the environment.
        of: what the servers are called together, such as a group.
        ensemble: its members are servers that run.

    Returns:
        Both placements; None if fewer than `LEAST` of the servers have places, or time ran out.
    """
    snapshot = env.store.snapshot()
    there = [one for one in ensemble.members if one.server_id and _host(snapshot, one.server_id)]
    if len(there) < LEAST:
        return None
    standing = replace(ensemble, members=tuple(there))
    case = JointCase(
        at=timestamp(),
        of=of,
        servers=len(there),
        there=_counts(_host(snapshot, str(one.server_id)) for one in there),
        broken=sorted({one.policy for one in broken_policies(snapshot, standing)}),
    )
    ids = env.ids
    members = tuple(Member(one.name, ids.uuid()) for one in there)
    names = frozenset(one.name for one in members)
    proposal = Proposal(
        replace(ensemble, id=ids.uuid(), members=members),
        None,
        (lambda _: names,),
        freed=frozenset(str(one.server_id) for one in there),
        reader=_UNREAD,
    )
    identity = RequestIdentity(ids.uuid())
    try:
        found = decide_proposal(env.in_dry_run(), proposal, _OPTIONS, identity)
    except Infeasible as error:
        case.reason = error.message
        return case
    except Busy:
        return None
    hosts = (found.snapshot.row(place.host) for place in found.decision.places.values())
    case.here = _counts(found.snapshot.names[row] for row in hosts)
    return case


def _host(snapshot: Snapshot, server: str) -> str:
    """The name of the server's host; empty if it has no allocations."""
    rows = [
        snapshot.row_of[one.provider]
        for one in bookings_of(snapshot, server)
        if one.provider in snapshot.row_of
    ]
    return snapshot.names[host_row(snapshot, rows)] if rows else ""


def _counts(hosts: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(hosts).items()))
