"""Quotas of projects: what is refused, what still goes, and what nobody gets past."""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build, described

from moorage.domain.changes import Changeset
from moorage.domain.errors import Forbidden, Infeasible, NotFound, QuotaExceeded
from moorage.domain.leases import LeaseState
from moorage.domain.period import DAY, HOUR, Period
from moorage.domain.quotas import UNLIMITED, QuotaDefaults, QuotaName
from moorage.testing.service import OPERATOR, OTHER, TENANT
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.paging import Page
from moorage.usecases.shared import quotas

Make = Callable[..., World]


def say(here: World, **limits: int | None) -> None:
    named = {QuotaName(name.replace("_", "-")): limit for name, limit in limits.items()}
    quotas.set_quota(here.service.env, OPERATOR, TENANT.project_id, named)


def used(here: World, name: QuotaName) -> int | None:
    seen = quotas.show_quota(here.service.env, TENANT, TENANT.project_id)
    return seen.limits[name].used


def test_each_limit_refuses_and_the_next_that_fits_passes(world: Make) -> None:
    here = world(64)
    say(here, lease_units=4, leases=2, lease_max_length=3 * HOUR, lease_horizon=9 * HOUR)
    first = here.lease(1, 3, members=3)
    for start, end, members, name in (
        (2, 4, 2, QuotaName.UNITS),
        (5, 8.5, 1, QuotaName.MAX_LENGTH),
        (8, 10, 1, QuotaName.HORIZON),
    ):
        with pytest.raises(QuotaExceeded) as refused:
            here.lease(start, end, members=members)
        assert refused.value.what == name
    with pytest.raises(QuotaExceeded) as refused:
        here.lease(2, 4, members=2, dry_run=True)
    assert refused.value.passes_at == here.at(3)
    here.lease(3, 5, members=4)
    with pytest.raises(QuotaExceeded, match="leases limit 2 used 2"):
        here.lease(6, 7)
    here.lease(6, 7, caller=OTHER)
    cancel_lease(here.service.env, TENANT, first.lease.id)
    here.lease(6, 7)


def test_growing_extending_and_moving_are_judged_and_what_takes_less_never_is(world: Make) -> None:
    here = world(64)
    say(here, lease_units=4)
    lease = here.lease(1, 3, members=2).lease.id
    here.lease(4, 6, members=3)
    with pytest.raises(QuotaExceeded):
        here.change(lease, counts={"web": 5})
    with pytest.raises(QuotaExceeded):
        here.change(lease, end=5)
    with pytest.raises(QuotaExceeded):
        here.change(lease, start=5, end=6)
    here.change(lease, counts={"web": 3})
    say(here, lease_units=1)
    seen = quotas.show_quota(here.service.env, TENANT, TENANT.project_id).limits
    assert seen[QuotaName.UNITS].over
    here.change(lease, counts={"web": 2})
    here.change(lease, end=2)
    here.change(lease, name="other")
    with pytest.raises(QuotaExceeded):
        here.change(lease, counts={"web": 3})


def test_unit_hours_count_what_was_used_and_not_what_was_cancelled(world: Make) -> None:
    here = world(64)
    say(here, lease_unit_hours=20)
    env = here.service.env
    lease = here.lease(1, 6, members=4).lease.id
    with pytest.raises(QuotaExceeded, match="limit 20 used 20 requested 1 ") as refused:
        here.lease(7, 8)
    assert refused.value.passes_at == here.at(6) + 30 * DAY
    cancel_lease(env, TENANT, lease)
    assert used(here, QuotaName.UNIT_HOURS) == 0
    lease = here.lease(1, 6, members=4).lease.id
    here.go_to(2)
    here.begin(lease)
    here.change(lease, counts={"web": 1})
    assert used(here, QuotaName.UNIT_HOURS) == 8
    here.go_to(3)
    cancel_lease(env, TENANT, lease)
    assert used(here, QuotaName.UNIT_HOURS) == 5
    here.lease(3, 18)
    with pytest.raises(QuotaExceeded):
        here.lease(20, 21)


def test_a_request_that_another_overtakes_is_judged_again_in_its_commit(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(64)
    store = here.service.store
    say(here, lease_units=4)
    commit = store.commit
    seen: list[int] = []

    def late(changeset: Changeset) -> object:
        if not seen:
            seen.append(1)
            here.lease(1, 3, members=3)
        return commit(changeset)

    monkeypatch.setattr(store, "commit", late)
    with pytest.raises(QuotaExceeded, match="lease-units limit 4 used 3 requested 2 "):
        here.lease(2, 4, members=2)
    assert used(here, QuotaName.UNITS) == 3


def test_defaults_hold_until_something_is_said_and_again_afterwards(world: Make) -> None:
    here = world(64)
    service = here.service
    limits = replace(
        service.env.limits,
        quotas=QuotaDefaults(MappingProxyType({QuotaName.UNITS: 1}), 7 * DAY),
    )
    env: UseCaseEnvironment = replace(service.env, limits=limits)
    here.service.env = env
    with pytest.raises(QuotaExceeded):
        here.lease(1, 2, members=2)
    say(here, lease_units=UNLIMITED)
    here.lease(1, 2, members=2)
    say(here, lease_units=None)
    (seen,) = quotas.list_quotas(env, OPERATOR, Page(), all_projects=True)
    assert (seen.project_id, seen.window) == (TENANT.project_id, 7 * DAY)
    assert (seen.limits[QuotaName.UNITS].limit, seen.limits[QuotaName.UNITS].own) == (1, False)
    quotas.unset_quota(env, OPERATOR, TENANT.project_id)
    with pytest.raises(NotFound):
        quotas.unset_quota(env, OPERATOR, TENANT.project_id)
    for forbidden in (
        lambda: quotas.set_quota(env, TENANT, TENANT.project_id, {}),
        lambda: quotas.list_quotas(env, TENANT, Page(), all_projects=True),
    ):
        with pytest.raises(Forbidden):
            forbidden()


def test_another_projects_quota_is_not_there(world: Make) -> None:
    env = world(64).service.env
    with pytest.raises(NotFound):
        quotas.show_quota(env, TENANT, OTHER.project_id)
    assert quotas.show_quota(env, OPERATOR, OTHER.project_id).project_id == OTHER.project_id


def test_places_held_are_limited_by_the_projects_own_limit(world: Make) -> None:
    here = world(64)
    say(here, held_units=2)
    here.ensemble(members=2)
    with pytest.raises(QuotaExceeded, match="held-units limit 2 used 2 requested 1"):
        here.ensemble(body=described(name="f"))
    here.lease(1, 2, members=3)


def test_capacity_is_told_how_many_places_a_quota_allows(world: Make) -> None:
    here = world(64)
    period = Period(here.at(2), here.at(4))
    env = here.service.env
    assert quotas.quota_allows(env, TENANT.project_id, period) is None
    say(here, lease_units=10, lease_unit_hours=14)
    here.lease(3, 5, members=3)
    assert quotas.quota_allows(env, TENANT.project_id, period) == 4
    say(here, leases=1)
    assert quotas.quota_allows(env, TENANT.project_id, period) == 0


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["lease", "change", "cancel"]),
        st.integers(1, 12),
        st.integers(1, 6),
        st.integers(1, 4),
    ),
    min_size=4,
    max_size=9,
)


@settings(max_examples=12, deadline=None)
@given(STEPS)
def test_no_committed_set_of_leases_is_more_than_the_quota(
    steps: list[tuple[str, int, int, int]],
) -> None:
    here = build(64)
    try:
        say(here, lease_units=5, leases=3, lease_unit_hours=30)
        made: list[str] = []
        for what, start, length, members in steps:
            try:
                if what == "lease" or not made:
                    made.append(here.lease(start, start + length, members=members).lease.id)
                elif what == "change":
                    here.change(made[-1], start=start, end=start + length, counts={"web": members})
                else:
                    cancel_lease(here.service.env, TENANT, made.pop())
            except (QuotaExceeded, Infeasible):
                pass
            _within(here, units=5, leases=3, unit_hours=30)
    finally:
        here.service.close()


def _within(here: World, *, units: int, leases: int, unit_hours: int) -> None:
    """Counted from the leases themselves, hour by hour."""
    store = here.service.store
    every = [
        one
        for one in store.leases(project_id=TENANT.project_id)
        if one.state is not LeaseState.CLOSED
    ]
    members = {one.id: len(store.ensemble(one.ensemble_id).members) for one in every}
    assert len(every) <= leases
    for hour in range(20):
        at = here.at(hour)
        assert sum(members[o.id] for o in every if o.terms.period.covers(at)) <= units
    # All of it lies in one window.
    hours = sum(members[o.id] * (o.terms.period.end - o.terms.period.start) // HOUR for o in every)
    assert hours <= unit_hours
