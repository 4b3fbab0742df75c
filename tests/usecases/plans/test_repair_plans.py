"""Plans that nobody requests: once for each violation, and applied only where settings say so."""

from dataclasses import replace

import pytest
from tests.usecases.plans import clouds
from tests.usecases.plans.clouds import APART, Cloud

from moorage.domain.ensembles import OnViolation
from moorage.domain.period import HOUR, MINUTE
from moorage.domain.plans import AutomaticPlans, Plan, PlanKind, PlanState
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.compliance.monitor import ComplianceMonitor
from moorage.usecases.paging import Page
from moorage.usecases.plans.lifecycle import cancel_plan
from moorage.usecases.plans.repair_plans import PlanWatch

FLEET = clouds.FLEET
ASKING = {**APART, "on_violation": "plan_repair"}


@pytest.fixture
def cloud(service: Service) -> Cloud:
    return Cloud(service)


def watch(
    cloud: Cloud,
    *kinds: PlanKind,
    hourly: int = 4,
    default: OnViolation = OnViolation.REFUSE,
) -> PlanWatch:
    env = replace(cloud.service.env, moves_servers=True)
    return PlanWatch(env, AutomaticPlans(frozenset(kinds), hourly), default)


def judged(cloud: Cloud) -> None:
    limits = replace(cloud.service.env.limits, compliance_settle=0)
    ComplianceMonitor(replace(cloud.service.env, limits=limits), lambda _: None).run_round()


def plans(cloud: Cloud) -> list[Plan]:
    return list(cloud.service.store.plans.page(Page(limit=100)))


def report(cloud: Cloud, host: str, state: str) -> None:
    body = {"service": {"status": "enabled", "state": state}}
    answer = cloud.service.call("PUT", f"/hosts/{host}/service", body, caller=OPERATOR)
    assert answer.status_code == 200, answer.text


def test_a_policy_that_asks_for_it_gets_a_plan_once(cloud: Cloud) -> None:
    shop = cloud.ensemble("shop", ["a1", "a1", "b1"], ASKING)
    cloud.ensemble("silent", ["a2", "a2"], APART)
    judged(cloud)
    watching = watch(cloud)
    assert watching.run_round()
    (plan,) = plans(cloud)
    assert (plan.kind, plan.ensemble_id, plan.state) == (PlanKind.REPAIR, shop, PlanState.READY)
    assert len(plan.moves) == 1
    assert not watching.run_round()
    assert not watch(cloud).run_round(), "another process makes none either"
    assert len(plans(cloud)) == 1


def test_one_that_was_canceled_is_not_made_again_for_the_same_violation(cloud: Cloud) -> None:
    cloud.ensemble("shop", ["a1", "a1"], ASKING)
    judged(cloud)
    cloud.service.clock.pass_by(MINUTE)
    watch(cloud).run_round()
    (plan,) = plans(cloud)
    cancel_plan(cloud.service.env, OPERATOR, plan.id)
    assert not watch(cloud).run_round()
    (move,) = plan.moves
    cloud.make(move)
    judged(cloud)
    assert not watch(cloud).run_round()


def test_settings_may_ask_for_all_policies(cloud: Cloud) -> None:
    cloud.ensemble("shop", ["a1", "a1"], APART)
    judged(cloud)
    assert not watch(cloud).run_round()
    assert watch(cloud, default=OnViolation.PLAN_REPAIR).run_round()


def test_repairs_are_applied_within_the_bound_of_an_hour(cloud: Cloud) -> None:
    for number, host in enumerate(("a1", "b1", "c1")):
        cloud.ensemble(f"shop{number}", [host, host], ASKING)
    judged(cloud)
    watching = watch(cloud, PlanKind.REPAIR, hourly=2)
    assert watching.run_round()
    states = [one.state for one in plans(cloud)]
    assert sorted(states) == [PlanState.READY, PlanState.RUNNING, PlanState.RUNNING]
    cloud.service.clock.pass_by(HOUR + MINUTE)
    cloud.ensemble("late", ["a2", "a2"], ASKING)
    judged(cloud)
    watching.run_round()
    late = next(one for one in plans(cloud) if one.subject == "late")
    assert late.state is PlanState.RUNNING


def test_failed_hosts_are_evacuated_only_if_settings_say_so(cloud: Cloud) -> None:
    cloud.stranger("a1")
    cloud.stranger("a2")
    for host in ("a1", "a2", "a3"):
        report(cloud, host, "down")
    assert not watch(cloud).run_round()
    watching = watch(cloud, PlanKind.EVACUATE)
    assert watching.run_round()
    (plan,) = plans(cloud)
    assert (plan.kind, plan.state) == (PlanKind.EVACUATE, PlanState.RUNNING)
    assert sorted(one.source_name for one in plan.moves) == ["a1", "a2"], "a3 has no server"
    assert not watching.run_round()
    assert len(plans(cloud)) == 1


def test_a_host_is_given_time_to_come_back(cloud: Cloud) -> None:
    cloud.stranger("a1")
    report(cloud, "a1", "down")
    waiting = watch(cloud, PlanKind.EVACUATE)
    waiting.settings = replace(waiting.settings, settle=5 * MINUTE)
    assert not waiting.run_round()
    cloud.service.clock.pass_by(4 * MINUTE)
    report(cloud, "a1", "up")
    report(cloud, "a1", "down")
    cloud.service.clock.pass_by(4 * MINUTE)
    assert not waiting.run_round()
    cloud.service.clock.pass_by(MINUTE)
    assert waiting.run_round()


def test_what_cannot_be_repaired_is_stored_with_the_reasons(cloud: Cloud) -> None:
    for host in ("a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3"):
        cloud.stranger(host, 8)
    cloud.ensemble("shop", ["a1", "a1"], ASKING)
    judged(cloud)
    watch(cloud, PlanKind.REPAIR).run_round()
    (plan,) = plans(cloud)
    assert (plan.moves, plan.state) == ((), PlanState.READY)
    assert plan.unmoved
