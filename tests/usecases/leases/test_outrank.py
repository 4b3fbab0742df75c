"""Leases that lie ahead give up their places for one of a higher priority, and no others do."""

from collections.abc import Callable
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build
from tests.usecases.leases.test_priorities import may_have

from moorage.domain.changes import Changeset, DeleteAllocations
from moorage.domain.effects import EffectKind
from moorage.domain.ensembles import Ensemble
from moorage.domain.errors import Infeasible
from moorage.domain.events import EVENT_TYPES
from moorage.domain.explain import Explanation
from moorage.domain.leases import Lease, LeaseOutcome, LeaseState
from moorage.domain.period import DAY, FOREVER, HOUR, Period, parse_instant
from moorage.domain.waitlist import EntryState
from moorage.testing.service import OPERATOR, OTHER, TENANT
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.requests import LeaseResult
from moorage.usecases.preemption.preempted_leases import may_yield_until
from moorage.usecases.shared.limits import Limits
from moorage.usecases.waitlist.attempt import try_entry

Make = Callable[..., World]
FAR = 48.0
"""Hours ahead: far enough to be preempted."""


ALLOWING = Limits(preemption_notice=24 * HOUR, explanation_budget=DAY)


def allowing(world: World) -> World:
    """The world, whose projects may ask for any priority."""
    may_have(world, 1000)
    return world


@pytest.fixture
def allowed(world: Make) -> Make:
    """Makes worlds where leases that have not begun are preempted, up to a day before."""
    return lambda *vcpu: allowing(world(*vcpu, limits=ALLOWING))


def now(world: World, granted: LeaseResult) -> Lease:
    return world.service.store.lease(granted.lease.id)


def ids(granted: LeaseResult) -> set[str]:
    return {one.of.lease.id for one in granted.preempted}


def test_a_preempted_lease_is_told_of_another_window_without_the_end_of_others(
    allowed: Make,
) -> None:
    here = allowed(16)
    here.lease(FAR, FAR + 4, vcpu=10, caller=OTHER)
    high = here.lease(FAR + 1, FAR + 2.3, vcpu=10, priority=5)
    (gone,) = high.preempted
    assert gone.earliest is not None
    assert gone.earliest.start == here.at(FAR + 3)


def test_a_lease_takes_the_places_of_one_of_lower_priority(allowed: Make) -> None:
    here = allowed(16)
    low = here.lease(FAR, FAR + 4, vcpu=10, caller=OTHER)
    high = here.lease(FAR + 1, FAR + 2, vcpu=10, priority=5)
    assert ids(high) == {low.lease.id}
    closed = now(here, low)
    assert (closed.state, closed.outcome) == (LeaseState.CLOSED, LeaseOutcome.PREEMPTED)
    # Its ensemble stays, without places; and it would fit behind the other.
    ensemble = here.service.store.ensemble(low.lease.ensemble_id)
    assert isinstance(ensemble, Ensemble)
    assert not here.service.store.bookings(consumer=ensemble.members[0].uuid)
    (gone,) = high.preempted
    assert gone.earliest is not None
    assert (gone.earliest.start, gone.earliest.proved) == (here.at(FAR + 2), True)
    again = here.lease(FAR + 2, FAR + 6, caller=OTHER, ensemble_id=ensemble.id)
    assert again.lease.state is LeaseState.PENDING
    (told,) = [
        one for one in here.service.store.effects(low.lease.id) if one.kind is EffectKind.NOTIFY
    ]
    assert told.details["outcome"] == "preempted"
    assert parse_instant(str(told.details["earliest_start"])) == here.at(FAR + 2)
    assert not any("lease" in name and high.lease.id in str(told.details) for name in told.details)


def test_who_gave_up_places_waits_where_it_stood(allowed: Make) -> None:
    here = allowed(16)
    store = here.service.store
    low = here.lease(FAR, FAR + 4, vcpu=10, caller=OTHER)
    high = here.lease(FAR + 1, FAR + 2, vcpu=10, priority=5)
    (entry,) = store.waitlist(project_id=None)
    assert (entry.state, entry.name) == (EntryState.WAITING, low.lease.name)
    assert (entry.entered_at, entry.terms) == (now(here, low).created_at, low.lease.terms)
    (told,) = [one for one in store.effects(low.lease.id) if one.kind is EffectKind.NOTIFY]
    assert told.details["waitlist_entry"] == entry.id
    # Once the other is gone, it is a lease again: the same places of the same ensemble.
    cancel_lease(here.service.env, TENANT, high.lease.id)
    assert try_entry(here.service.env, entry, seconds=5)
    again = store.lease(entry.id)
    assert (again.state, again.ensemble_id) == (LeaseState.PENDING, low.lease.ensemble_id)
    assert again.project_id == low.lease.project_id


@pytest.mark.parametrize("priority", [5, 6])
def test_equal_and_higher_priorities_stay(allowed: Make, priority: int) -> None:
    here = allowed(16)
    first = here.lease(FAR, FAR + 4, vcpu=10, priority=priority)
    with pytest.raises(Infeasible):
        here.lease(FAR, FAR + 4, vcpu=10, priority=5)
    assert now(here, first).state is LeaseState.PENDING


def test_nobody_is_preempted_where_the_operator_has_not_said_so(world: Make) -> None:
    here = world(16)
    may_have(here, 1000)
    first = here.lease(FAR, FAR + 4, vcpu=10)
    with pytest.raises(Infeasible) as refused:
        here.lease(FAR, FAR + 4, vcpu=10, priority=5)
    explanation = refused.value.explanation
    assert isinstance(explanation, Explanation)
    assert not any(one.change.subject == "lease" for one in explanation.relaxations)
    assert now(here, first) == first.lease


def test_one_that_begins_within_the_notice_is_safe(allowed: Make) -> None:
    here = allowed(16)
    first = here.lease(25, 30, vcpu=10, lead=HOUR)
    here.go_to(0.01)
    with pytest.raises(Infeasible):
        here.lease(25, 30, vcpu=10, priority=5)
    notice = here.service.env.limits.preemption_notice
    assert may_yield_until(now(here, first), notice, here.now) is None
    far = here.lease(FAR, FAR + 1, vcpu=10, priority=3)
    assert may_yield_until(far.lease, notice, here.now) == here.at(24)
    assert may_yield_until(far.lease, None, here.now) is None


def test_one_that_has_begun_is_safe(allowed: Make) -> None:
    here = allowed(16)
    first = here.lease(1, 200, vcpu=10)
    here.go_to(1)
    here.begin(first.lease.id)
    with pytest.raises(Infeasible):
        here.lease(FAR, FAR + 1, vcpu=10, priority=1000)
    assert now(here, first).state is LeaseState.ACTIVE


def test_nobody_goes_where_others_move_or_end(allowed: Make) -> None:
    here = allowed(8, 16)
    server = here.server(8, 0)
    small = here.lease(FAR, FAR + 1, vcpu=8)
    assert here.host_of(small) == here.hosts[1]
    here.service.store.commit(Changeset((DeleteAllocations(server),)))
    large = here.lease(FAR, FAR + 1, vcpu=9, priority=5)
    assert large.preempted == ()
    assert here.host_of(large) == here.hosts[1]
    here.server(7, 1, preemptible=True)
    ending = here.lease(FAR + 1, FAR + 2, vcpu=16, priority=5)
    assert (ending.preempted, len(ending.displaced)) == ((), 1)


def test_the_lowest_priority_goes_then_the_fewest_places_then_the_newest(allowed: Make) -> None:
    here = allowed(8, 8, 8)
    high = here.lease(FAR, FAR + 4, vcpu=8, priority=4)
    old = here.lease(FAR, FAR + 4, vcpu=8, priority=2)
    here.go_to(0.5)
    new = here.lease(FAR, FAR + 4, vcpu=8, priority=2)
    made = here.lease(FAR, FAR + 4, vcpu=8, priority=9)
    assert ids(made) == {new.lease.id}
    assert [now(here, one).state for one in (high, old)] == [LeaseState.PENDING] * 2


def test_those_who_made_room_for_it_get_their_end_back(allowed: Make) -> None:
    here = allowed(16)
    server = here.server(8, preemptible=True)
    low = here.lease(FAR, FAR + 4, vcpu=12)
    assert here.booking(server).yields_to == low.lease.id
    made = here.lease(FAR + 1, FAR + 2, vcpu=8, priority=5)
    assert ids(made) == {low.lease.id}
    assert (here.booking(server).period.end, here.booking(server).yields_to) == (FOREVER, None)


def test_a_dry_run_says_who_would_go_and_nobody_does(allowed: Make) -> None:
    here = allowed(16)
    low = here.lease(FAR, FAR + 4, vcpu=10)
    made = here.lease(FAR, FAR + 4, vcpu=10, priority=5, dry_run=True)
    assert ids(made) == {low.lease.id}
    assert now(here, low) == low.lease


def test_a_lease_that_grows_takes_places_too_but_not_its_own(allowed: Make) -> None:
    here = allowed(16)
    mine = here.lease(FAR, FAR + 4, vcpu=4, priority=5)
    low = here.lease(FAR, FAR + 4, vcpu=10)
    grown = here.change(mine.lease.id, counts={"web": 3})
    assert ids(grown) == {low.lease.id}
    longer = here.lease(FAR + 4, FAR + 8, vcpu=10, priority=1)
    assert ids(here.change(mine.lease.id, end=FAR + 5)) == {longer.lease.id}


def test_a_lease_that_keeps_others_out_can_be_preempted(allowed: Make) -> None:
    here = allowed(16)
    alone = [{"name": "x", "type": "exclusive", "members": ["*"]}]
    role = [{"name": "web", "count": 1, "resources": {"VCPU": 1}}]
    body = {"name": "e", "members": role, "policies": alone}
    low = here.lease(FAR, FAR + 4, body=body, caller=OTHER)
    with pytest.raises(Infeasible):
        here.lease(FAR, FAR + 4, vcpu=1)
    assert ids(here.lease(FAR, FAR + 4, vcpu=1, priority=1)) == {low.lease.id}


@pytest.mark.parametrize("caller", [TENANT, OPERATOR])
def test_a_refusal_says_which_priority_would_do(allowed: Make, caller: Any) -> None:
    here = allowed(16)
    may_have(here, 1000, OPERATOR.project_id)
    low = here.lease(FAR, FAR + 4, vcpu=10, priority=7, caller=OTHER)
    with pytest.raises(Infeasible) as refused:
        here.lease(FAR, FAR + 4, vcpu=10, caller=caller)
    explanation = refused.value.explanation
    assert isinstance(explanation, Explanation)
    (found,) = [one for one in explanation.relaxations if one.change.subject == "lease"]
    assert (found.change.field, found.change.before, found.change.after) == ("priority", 0, 8)
    assert (low.lease.id in found.result) is (caller is OPERATOR)
    assert found.result.startswith("displaces ")
    assert ids(here.lease(FAR, FAR + 4, vcpu=10, priority=8, caller=caller)) == {low.lease.id}


Leases = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(1, 6), st.integers(0, 3)),
    min_size=1,
    max_size=4,
)


@settings(max_examples=12, deadline=None)
@given(Leases, st.integers(1, 3), st.integers(1, 8))
def test_the_least_set_goes_and_every_other_promise_is_kept(
    leases: list[tuple[int, int, int, int]], priority: int, vcpu: int
) -> None:
    """Against all sets of leases with less priority, on one host where nobody can move."""
    here = allowing(build(8, limits=ALLOWING))
    try:
        granted: list[LeaseResult] = []
        for start, length, size, own in leases:
            try:
                granted.append(here.lease(FAR + start, FAR + start + length, size, priority=own))
            except Infeasible:
                continue
        there = [now(here, one) for one in granted]
        there = [one for one in there if one.state is LeaseState.PENDING]
        sizes = {one.lease.id: one.ensemble.roles[0].resources["VCPU"] for one in granted}
        wanted = Period(here.at(FAR), here.at(FAR + 3))

        def fits(gone: tuple[Lease, ...]) -> bool:
            left = [one for one in there if one not in gone]
            return all(
                vcpu + sum(sizes[o.id] for o in left if o.terms.period.covers(at)) <= 8
                for at in range(wanted.start, wanted.end, HOUR)
            )

        def cost(gone: tuple[Lease, ...]) -> tuple[object, ...]:
            levels = [sum(one.terms.priority == level for one in gone) for level in (3, 2, 1, 0)]
            return (*levels, len(gone))

        lower = [one for one in there if one.terms.priority < priority]
        every = chain.from_iterable(combinations(lower, n) for n in range(len(lower) + 1))
        enough = [cost(some) for some in every if fits(some)]
        try:
            made = here.lease(FAR, FAR + 3, vcpu, priority=priority)
        except Infeasible:
            assert not enough
            assert [here.service.store.lease(one.id) for one in there] == there
            return
        gone = tuple(one for one in there if one.id in ids(made))
        assert fits(gone)
        assert all(one.terms.priority < priority for one in gone)
        assert cost(gone) == min(enough)
        for one in there:
            stored = here.service.store.lease(one.id)
            assert stored.state is (LeaseState.CLOSED if one in gone else LeaseState.PENDING)
            (member,) = here.service.store.ensemble(one.ensemble_id).members
            assert bool(here.service.store.bookings(consumer=member.uuid)) is (one not in gone)
        snapshot = here.service.store.snapshot()
        for columns in snapshot.classes.values():
            assert (columns.peak <= columns.capacity).all()
    finally:
        here.service.close()


def test_over_http(allowed: Make) -> None:
    here = allowed(16)
    body = {
        "name": "low",
        "amount": {"count": 1, "resources": {"VCPU": 10}},
        "start": "2026-11-24T09:00:00Z",
        "end": "2026-11-25T09:00:00Z",
    }

    def asked(caller: Any, query: dict[str, str] | None = None, **more: Any) -> Any:
        answer = here.service.call(
            "POST", "/leases", {"lease": body | more}, caller=caller, query=query
        )
        assert answer.status_code in {200, 201}, answer.text
        return answer.json

    low = asked(OTHER)["lease"]
    assert low["may_yield"] == {"above": 0, "until": "2026-11-23T09:00:00Z"}
    dry = asked(TENANT, {"dry_run": "true"}, priority=7)
    assert dry["preempted"] == {"count": 1}
    made = asked(OPERATOR, None, priority=7)
    (gone,) = made["preempted"]["leases"]
    assert (gone["id"], gone["earliest_start"]) == (low["id"], "2026-11-25T09:00:00Z")
    shown = here.service.call("GET", f"/leases/{low['id']}", caller=OTHER).json["lease"]
    assert (shown["status"], shown["outcome"], shown["may_yield"]) == ("closed", "preempted", None)
    events = here.service.call("GET", "/events", caller=OTHER, query={"type": "lease.*"}).json
    told = [one for one in events["events"] if one["type"] == "lease.preempted"]
    assert [one["subject"] for one in told] == [low["id"]]
    assert told[0]["body"]["earliest_start"] == "2026-11-25T09:00:00Z"
    assert made["lease"]["id"] not in str(told)
    entry = told[0]["body"]["waitlist_entry"]
    assert shown["waitlist_entry"] == entry
    assert shown["links"][-1]["rel"] == "waitlist_entry"
    waits = here.service.call("GET", f"/waitlist/{entry}", caller=OTHER).json["entry"]
    assert waits["ensemble_id"] == shown["ensemble_id"]
    (kind,) = [one for one in EVENT_TYPES if one.name == "lease.preempted"]
    assert set(told[0]["body"]) == set(kind.body)
