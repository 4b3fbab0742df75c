"""What `fit` predicts is what fits at once; copies are what really fits."""

from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.domain.capacity_windows import WindowKind
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible
from moorage.domain.leases import Terms
from moorage.domain.period import HOUR, Period
from moorage.testing.service import NINE, OPERATOR, TENANT, Service
from moorage.usecases.capacity.copies import fit_described
from moorage.usecases.capacity.fit import fit_members
from moorage.usecases.capacity.planned import PlanRequest, plan_window
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.change import ChangeRequest, change_ensemble
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseRequest

FLEET = """
fleet: tiny
topology:
  location: {levels: [rack], domains: [{name: "r{n}", count: 2, level: rack}]}
hosts:
  - name: "h{n}"
    count: 4
    inventories: {VCPU: 6}
    place: {location: {name: "r{n}", count: 2}}
"""
POLICIES: dict[str, dict[str, Any]] = {
    "apart": {"name": "apart", "type": "anti-affinity", "members": ["w"]},
    "even": {
        "name": "even", "type": "spread", "members": ["w"], "level": "rack", "max_skew": 1,
    },
    "survive": {
        "name": "survive", "type": "survive", "members": ["w"], "level": "rack",
        "lose": 1, "keep": 1,
    },
}  # fmt: skip


def described(size: int, count: int, policies: list[str]) -> Any:
    return read_ensemble(
        {
            "name": "e",
            "members": [{"name": "w", "count": count, "resources": {"VCPU": size}}],
            "policies": [POLICIES[one] for one in policies],
        }
    )


def leased(service: Service, size: int, count: int, start: int) -> None:
    env = service.env
    period = Period(NINE + start * HOUR, NINE + (start + 5) * HOUR)
    asked = LeaseRequest("later", Terms(period), description=described(size, count, []))
    create_lease(env, OPERATOR, asked, RequestIdentity(env.ids.uuid()))


@settings(max_examples=6, deadline=None)
@given(
    size=st.integers(1, 4),
    policies=st.lists(st.sampled_from(sorted(POLICIES)), unique=True, max_size=2),
    others=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), max_size=2),
)
def test_fit_is_what_can_be_added_at_once(
    size: int, policies: list[str], others: list[tuple[int, int]]
) -> None:
    service = Service(FLEET)
    env = service.env
    try:
        for amount, start in others:
            leased(service, amount, 1, start)
        try:
            made = create_ensemble(
                env,
                TENANT,
                described(size, 2, policies),
                DecisionOptions(),
                RequestIdentity(env.ids.uuid()),
            )
        except Infeasible:
            return
        found = fit_members(env, TENANT, made.ensemble.id, "w", None)
        assert found.exact
        extend(service, made.ensemble.id, 2 + found.additional, dry_run=True)
        with pytest.raises(Infeasible):
            extend(service, made.ensemble.id, 3 + found.additional, dry_run=True)
        reached = one_by_one(service, made.ensemble.id)
        # Those that came first may stand where a lease would have moved to for all together.
        assert reached <= found.additional if others else reached == found.additional
    finally:
        service.close()


def one_by_one(service: Service, ensemble_id: str) -> int:
    """How many members can be added, each by a change of its own."""
    reached = 0
    while True:
        try:
            extend(service, ensemble_id, 3 + reached)
        except Infeasible:
            return reached
        reached += 1


def extend(service: Service, ensemble_id: str, count: int, *, dry_run: bool = False) -> None:
    change = ChangeRequest(members=({"name": "w", "count": count},), generation=None)
    env = service.env.in_dry_run() if dry_run else service.env
    change_ensemble(env, TENANT, ensemble_id, change, None)


def test_fit_counts_with_leases_that_move_together() -> None:
    service = Service(FLEET)
    leased(service, 3, 1, 1)
    leased(service, 3, 1, 1)
    identity = RequestIdentity(service.env.ids.uuid())
    made = create_ensemble(service.env, TENANT, described(2, 2, []), DecisionOptions(), identity)
    assert fit_members(service.env, TENANT, made.ensemble.id, "w", None).additional == 7
    assert one_by_one(service, made.ensemble.id) == 7
    service.close()


def test_what_limits_is_named() -> None:
    service = Service(FLEET)
    made = create_ensemble(
        service.env,
        TENANT,
        described(1, 2, ["apart"]),
        DecisionOptions(),
        RequestIdentity(service.env.ids.uuid()),
    )
    found = fit_members(service.env, TENANT, made.ensemble.id, "w", None)
    assert (found.additional, [one.policy for one in found.limited_by]) == (2, ["apart"])
    service.close()


def test_hosts_that_go_limit_what_fits_for_good() -> None:
    service = Service(FLEET)
    planning = PlanRequest(WindowKind.DECOMMISSION, ("h1", "h2"), start=NINE + HOUR)
    plan_window(service.env, OPERATOR, planning, RequestIdentity(service.env.ids.uuid()))
    for policies, count, fits in (([], 1, 12), (["apart"], 2, 6)):
        found = fit_described(service.env, TENANT, described(1, count, policies), None)
        assert found.additional == fits
        assert found.limited_by[0].needs == "2+ hosts planned to be away from 2026-11-21T10:00:00Z"
        before = Period(NINE, NINE + HOUR)
        until = fit_described(service.env, TENANT, described(1, count, policies), before)
        assert (until.additional, until.limited_by[0].role) == (2 * fits, "w")
    service.close()


@pytest.mark.parametrize(("start", "count"), [(0, 1), (5, 2), (4, 1)])
def test_copies_fit_in_their_window(start: int, count: int) -> None:
    """A copy takes 4 of 6 in each of two racks; for five hours a lease takes one of the hosts."""
    service = Service(FLEET)
    leased(service, 4, 1, 0)
    window = Period(NINE + start * HOUR, NINE + (start + 4) * HOUR)
    found = fit_described(service.env, TENANT, described(4, 2, ["survive"]), window)
    # Beside the lease, which has not begun and might move, it is a lower bound.
    assert (found.additional, found.exact) == (count, start == 5)
    service.close()


def test_leases_move_for_what_is_described() -> None:
    """Two leases of half a host each, on two of four hosts, have room on one."""
    service = Service(FLEET)
    for _ in range(2):
        leased(service, 3, 1, 1)
    found = fit_described(service.env, TENANT, described(6, 1, []), None)
    assert (found.additional, found.exact) == (3, True)
    options, ids = DecisionOptions(), service.env.ids
    for count, fits in ((3, True), (4, False)):
        with nullcontext() if fits else pytest.raises(Infeasible):
            create_ensemble(
                service.env.in_dry_run(),
                TENANT,
                described(6, count, []),
                options,
                RequestIdentity(ids.uuid()),
            )
    service.close()


def test_where_leases_may_move_a_count_without_that_is_a_lower_bound() -> None:
    service = Service(FLEET)
    for _ in range(2):
        leased(service, 3, 1, 1)
    window = Period(NINE, NINE + 4 * HOUR)
    for description, least in ((described(6, 1, []), 3), (described(6, 2, ["apart"]), 1)):
        found = fit_described(service.env, TENANT, description, window)
        assert (found.additional, found.exact) == (least, False)
        assert found.limited_by
    before = Period(NINE, NINE + HOUR)
    assert fit_described(service.env, TENANT, described(6, 1, []), before).exact
    service.close()
