"""Slices decided while an absence of their servers' hosts is planned: the commit sees it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.api.native.test_slices import VMS, described, provider, service

from moorage.domain.capacity_windows import WindowKind
from moorage.domain.changes import Changeset, Committed
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible
from moorage.domain.period import DAY
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.capacity.planned import PlanRequest, plan_window
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.environment import UseCaseEnvironment

__all__ = ["service"]


def overtaken(service: Service, meanwhile: Callable[[], object]) -> UseCaseEnvironment:
    """The environment; before its first commit, `meanwhile` happens."""
    done: list[bool] = []

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(service.store, name)

        def commit(self, changeset: Changeset) -> Committed:
            if not done:
                done.append(True)
                meanwhile()
            return service.store.commit(changeset)

    return replace(service.env, store=Slow())


def plan(env: UseCaseEnvironment, *hosts: str) -> None:
    now = env.store.now()
    asked = PlanRequest(WindowKind.MAINTENANCE, hosts, (), now + DAY, now + 2 * DAY)
    plan_window(env, OPERATOR, asked, RequestIdentity(env.ids.uuid()))


def decide(env: UseCaseEnvironment, count: int) -> Any:
    body = read_ensemble(described(count=count))
    return create_ensemble(env, TENANT, body, DecisionOptions(), RequestIdentity(env.ids.uuid()))


def test_a_slice_is_not_committed_on_a_server_whose_host_will_be_away_by_then(
    service: Service,
) -> None:
    env = overtaken(service, lambda: plan(service.env, "h1"))
    found = decide(env, 2)
    hosts = {place.host for place in found.decision.places.values()}
    assert hosts == {provider(service, VMS[1])}


def test_where_all_hosts_will_be_away_none_is_committed(service: Service) -> None:
    env = overtaken(service, lambda: plan(service.env, "h1", "h2"))
    with pytest.raises(Infeasible):
        decide(env, 1)
    assert not [one for _, one in service.store.bookings() if one.decision is not None]
