"""What changes mean to people; nothing of another project is told."""

from dataclasses import dataclass, replace

import pytest
from tests.contract.test_store_leases import LEASE

from moorage.domain.capacity_windows import CapacityWindow, WindowKind
from moorage.domain.changes import Change, DropCapacityWindow, PutClaim, PutEffect, PutLease
from moorage.domain.decisions import Claim, ClaimState
from moorage.domain.derived_events import derive_events
from moorage.domain.effects import ENDED, EVICTION, Effect, EffectKind, EffectState
from moorage.domain.ensembles import Ensemble, Role
from moorage.domain.errors import InvalidDescription
from moorage.domain.events import EVENT_TYPES, EventCursor, check_pattern, matches
from moorage.domain.leases import Lease, LeaseState
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.plans import Plan
from moorage.domain.server_providers import ServerProvider
from moorage.domain.shares import Share, ShareState
from moorage.domain.waitlist import WaitlistEntry

BODIES = {one.name: set(one.body) for one in EVENT_TYPES}
PROPOSAL = {"subject": "policy", "name": "one", "field": "max", "before": 1, "after": 2}


@dataclass
class Stood:
    """How things stood before."""

    stored: Lease | None = None

    def lease(self, id_: str) -> Lease | None:
        del id_
        return self.stored

    def entry(self, id_: str) -> WaitlistEntry | None:
        raise AssertionError(id_)

    def plan(self, id_: str) -> Plan | None:
        raise AssertionError(id_)

    def decision_state(self, id_: str) -> str | None:
        raise AssertionError(id_)

    def untold_refusals(self, explanation_id: str) -> int | None:
        del explanation_id
        return None

    def window(self, id_: str) -> CapacityWindow:
        return CapacityWindow(id_, WindowKind.MAINTENANCE, ("h1", "h2"), Period(5, 9))

    def shared_ensemble(self, id_: str) -> Ensemble | None:
        raise AssertionError(id_)

    def server_provider(self, id_: str) -> ServerProvider | None:
        return None if id_ == "gone" else ServerProvider(id_, "s", "owner", frozenset({"p"}))

    def owner(self, id_: str) -> tuple[str, str]:
        raise AssertionError(id_)


def told(change: Change, before: Lease | None = None) -> list[str]:
    found = list(derive_events((change,), Stood(before)))
    for one in found:
        assert set(one.body) == BODIES[one.type]
    return [one.type for one in found]


def moved(**fields: object) -> list[str]:
    return told(PutLease(replace(LEASE, **fields), 3), LEASE)  # type: ignore[arg-type]  # of a lease


def test_a_lease_tells_its_states_and_what_becomes_of_it() -> None:
    assert told(PutLease(LEASE, None)) == ["lease.pending"]
    for state in set(LeaseState) - {LeaseState.PENDING}:
        assert moved(state=state) == [f"lease.{state}"]
    assert moved() == []
    assert moved(updated_at=7, digest="other") == []
    assert moved(name="b") == ["lease.changed"]
    assert moved(degraded=True) == ["lease.degraded"]
    assert moved(degraded=True, missing=2) == ["lease.degraded", "lease.missing"]
    assert moved(degraded=True, proposal=PROPOSAL) == ["lease.degraded", "lease.missing"]
    hurt = replace(LEASE, degraded=True, missing=2, proposal=PROPOSAL)
    (one,) = derive_events((PutLease(replace(hurt, missing=1), 4),), Stood(hurt))
    assert (one.type, one.generation, one.body["missing"]) == ("lease.missing", 5, 1)
    assert one.body["proposal"] == {"policy": "one", "max": [1, 2]}
    assert told(PutLease(LEASE, 4), hurt) == ["lease.whole"]


def test_who_yields_is_told_without_whom_it_yields_to() -> None:
    details = {
        "lease": "of-another-project",
        "needed_at": "2026-11-21T09:00:00Z",
        "server": "s",
        "ends": "2026-11-21T08:55:00Z",
        "declared_end": "never",
        "order": 1,
        "of": 1,
        "why": "fewest units first",
    }
    warning = Effect("w", EffectKind.WARN, "s", "p", 1, 1, details=details)
    assert told(PutEffect(warning, None)) == ["member.warned"]
    (one,) = derive_events((PutEffect(warning, None),), Stood())
    assert "of-another-project" not in str(one.body)
    assert told(PutEffect(replace(warning, state=EffectState.DONE), 1)) == []
    ended = Effect("d", EffectKind.DELETE, "s", "p", 1, 1, details={**details, "reason": EVICTION})
    # It is asked for, tried, and done: told once somebody here has done it, and not before.
    assert told(PutEffect(ended, None)) == []
    assert told(PutEffect(replace(ended, attempts=1), 0)) == []
    assert told(PutEffect(replace(ended, state=EffectState.DONE), 0)) == []
    done = replace(ended, state=EffectState.DONE, details={**ended.details, ENDED: True})
    (one,) = derive_events((PutEffect(done, 1),), Stood())
    assert (one.type, one.subject) == ("member.evicted", "s")
    reprieve = Effect(
        "r", EffectKind.REPRIEVE, "s", "p", 1, 1, details={"server": "s", "ends": None}
    )
    assert told(PutEffect(reprieve, None)) == ["member.reprieved"]
    assert told(PutEffect(replace(reprieve, state=EffectState.DONE), 0)) == []


def test_a_notice_is_told_when_its_time_has_come_and_once() -> None:
    details = {
        "name": "shop",
        "start": "a",
        "end": "b",
        "edge": "on_end",
        "at": "b",
        "state": "active",
        "lease": "l",
    }
    notice = Effect("n", EffectKind.NOTIFY, "l", "p", 1, 1, details=details)
    assert told(PutEffect(notice, None)) == []
    assert told(PutEffect(replace(notice, attempts=1), 0)) == ["lease.notice"]
    assert told(PutEffect(replace(notice, attempts=2), 1)) == []
    assert told(PutEffect(replace(notice, state=EffectState.DONE), 0)) == ["lease.notice"]


def test_a_claim_in_a_lease_is_told_of_both() -> None:
    claim = Claim("c", "d", "e", "p", MemberName("web", 0), ClaimState.BUILDING, lease_id="l")
    assert told(PutClaim(claim, None)) == ["claim.building", "lease.claimed"]
    assert told(PutClaim(replace(claim, lease_id=None), None)) == ["claim.building"]
    active = replace(claim, state=ClaimState.ACTIVE)
    assert told(PutClaim(active, "building")) == ["claim.active"]
    assert told(PutClaim(active, "active")) == []


def test_a_slice_is_told_to_the_owner_of_its_server_too() -> None:
    claim = Claim(
        *("c", "d", "e", "p", MemberName("web", 0), ClaimState.BUILDING),
        server_provider="o",
        resources={"CUSTOM_SESSION": 2},
    )
    assert told(PutClaim(claim, None)) == ["claim.building", "slice.claimed"]
    assert told(PutClaim(replace(claim, server_provider="gone"), None)) == ["claim.building"]
    for state, word in (
        (ClaimState.ACTIVE, "active"),
        (ClaimState.FAILED, "gone"),
        (ClaimState.EXPIRED, "gone"),
        (ClaimState.ENDED, "gone"),
    ):
        after = PutClaim(replace(claim, state=state), "building")
        assert told(after) == [f"claim.{state}", f"slice.{word}"]
        found = [*derive_events((after,), Stood())][1]
        assert (found.project_id, found.subject, found.body["project"]) == ("owner", "c", "p")
    stranger = [*derive_events((PutClaim(replace(claim, project_id="q"), None),), Stood())]
    assert stranger[1].body["project"] is None


@pytest.mark.parametrize("text", ["", "1", "-", "1-", "01-2", "1-0x2", "A-1", "1-2-3", "\uff11-2"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        EventCursor.parse(text)
    assert EventCursor.parse(str(EventCursor(77, 9))) == EventCursor(77, 9)


def test_patterns_mean_types() -> None:
    assert matches("*", "lease.active")
    assert matches("lease.*", "lease.active")
    assert not matches("lease.*", "leases.active")
    assert not matches("lease.act", "lease.active")
    for bad in ("", "lease", "*.active", "lease.**", "moon.*", "lease.bogus"):
        with pytest.raises(InvalidDescription):
            check_pattern(bad, "x")


def test_hosts_that_are_to_be_away_are_counted_not_named() -> None:
    effect = Effect("e", EffectKind.NOTIFY, "w", "p", 0, 0, details={
        "capacity_window": "w", "kind": "delivery", "edge": "there", "hosts": ["h1", "h2"],
        "start": "a", "end": "b", "reason": "",
    })  # fmt: skip
    told = derive_events((DropCapacityWindow("w"), PutEffect(effect, 0)), Stood())
    found = {one.type: one.body for one in told}
    assert {name: body["hosts"] for name, body in found.items()} == {
        "capacity.removed": 2,
        "capacity.ends": 2,
    }
    assert all(set(body) == BODIES[name] for name, body in found.items())


@dataclass
class Shared(Stood):
    """An ensemble in which another project takes part with the role db."""

    def shared_ensemble(self, id_: str) -> Ensemble | None:
        share = Share("s", "other", ShareState.ACCEPTED, "bob")
        roles = (Role("web", {"VCPU": 1}), Role("db", {"VCPU": 1}, share=share))
        return Ensemble(id_, "p", "u", "shop", roles, ())


def test_members_without_a_place_are_told_to_the_project_of_each() -> None:
    details = {"ensemble": "e", "decision": "d", "members": ["web[0]", "db[0]", "db[1]"]}
    lost = Effect("r", EffectKind.REPLACE, "e", "p", 1, 1, details=details)
    found = derive_events((PutEffect(lost, None),), Shared())
    assert [(one.type, one.project_id, one.body["members"]) for one in found] == [
        ("decision.unplaced", "p", ["web[0]", "db[0]", "db[1]"]),
        ("decision.unplaced", "other", ["db[0]", "db[1]"]),
    ]
