"""What must be true of the ledger after each kill, and in the end, by looking at it directly."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from tests.scenarios.crash.walks import Walk

from moorage.domain.bookings import BookingState
from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.errors import NotFound
from moorage.store import Ledger


def check_integrity(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()


def check_whole(store: Ledger, walk: Walk) -> None:
    """A decision has all of its places or is not there at all."""
    try:
        ensemble = store.ensemble(walk.ensemble)
    except NotFound:
        assert walk.decision is None, "an acknowledged ensemble is lost"
        assert not store.decisions(project_id=None, ensemble_id=walk.ensemble)
        return
    (decision,) = store.decisions(project_id=None, ensemble_id=walk.ensemble)
    assert walk.decision in {None, decision.id}
    standing = {}
    for member in ensemble.members:
        consumers = [one for one in (member.uuid, member.server_id) if one is not None]
        found = [booking for one in consumers for _, booking in store.bookings(consumer=one)]
        assert len(found) <= 1, f"{member.name} stands twice"
        standing[str(member.name)] = found[0].state if found else None
    if decision.state is DecisionState.HELD and store.now() < decision.expires_at:
        claimed_before = {str(one.member) for one in store.claims(decision_id=decision.id)}
        missing = {name for name, state in standing.items() if state is None} - claimed_before
        # Read last: what has lapsed while we looked is no half decision.
        assert not missing or store.now() >= decision.expires_at, f"half a decision: {standing}"
    if decision.state in {DecisionState.CONFIRMED, DecisionState.CLOSED}:
        assert BookingState.HELD not in standing.values(), f"half a confirm: {standing}"


def check_acknowledged(store: Ledger, walk: Walk) -> None:
    """Whatever the service has said is done is done."""
    for claim_id in walk.claims.values():
        assert store.claim(claim_id).decision_id == walk.decision
    for member, server in walk.servers.items():
        assert store.claim(walk.claims[member]).state is ClaimState.ACTIVE
        found = store.consumer(server)
        assert found is not None, f"the server of {member} lost its allocation"
        assert [dict(booking.amounts) for booking in found[1]] == [{"VCPU": 1}]
    if walk.confirmed:
        assert walk.decision is not None
        state = store.decision(walk.decision).state
        assert state in {DecisionState.CONFIRMED, DecisionState.CLOSED}


def check_end(store: Ledger, walks: Sequence[Walk]) -> None:
    """After every expiry: nothing is held, and allocations belong to active claims."""
    states = {booking.state for _, booking in store.bookings()}
    assert states <= {BookingState.ALLOCATED}
    active = set()
    for walk in walks:
        for decision in store.decisions(project_id=None, ensemble_id=walk.ensemble):
            assert decision.state is not DecisionState.HELD
            for claim in store.claims(decision_id=decision.id):
                assert claim.state is not ClaimState.BUILDING
                if claim.state is ClaimState.ACTIVE:
                    active.add(claim.server_id)
    assert {booking.consumer for _, booking in store.bookings()} == active
    columns = store.snapshot().classes["VCPU"]
    assert columns.used.sum() == len(active)
    assert (columns.peak == columns.used).all(), "something is still held"
