"""Where a member is placed after its server was deleted while its decision is held."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.usecases.leases.conftest import World, build, described, named

from moorage.domain.changes import ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import ClaimState, Decision, DecisionState
from moorage.domain.effects import EffectKind, Lane
from moorage.domain.member_names import MemberName
from moorage.domain.period import MINUTE
from moorage.domain.tickets import ticket_class
from moorage.testing.service import TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.outcome import activate
from moorage.usecases.effect_dispatch import EffectResult, OutwardActions, carry_out
from moorage.usecases.ledger.allocations import allocate, release
from moorage.usecases.shared.limits import Limits

SERVER = named(1)
FIRST = MemberName("web", 0)
NOVA = Consumer(SERVER, TENANT.project_id, "nova", "INSTANCE")
APART = [{"name": "apart", "type": "anti-affinity", "members": ["*"]}]


@pytest.fixture
def here() -> Iterator[World]:
    """Three hosts with room for two members each."""
    world = build(4, 4, 4)
    elsewhere(world)
    yield world
    world.service.close()


def elsewhere(here: World, *, builds_elsewhere: bool = True) -> None:
    limits = Limits(builds_elsewhere=builds_elsewhere)
    here.service.env = replace(here.service.env, limits=limits)


def held(here: World, members: int = 2) -> Decision:
    made = here.ensemble(body=described(vcpu=2, members=members, policies=APART))
    assert made.decision is not None
    return made.decision


def newest(here: World, decision: Decision) -> Decision:
    (found, *_) = here.service.store.decisions(project_id=None, ensemble_id=decision.ensemble_id)
    return found


def boot(here: World, decision: Decision, how: str = "ticket") -> str:
    """Nova writes the allocations of a server in the place of the first member; its host."""
    env, host = here.service.env, decision.places[FIRST].host
    amounts, naming = {"VCPU": 2}, here.naming()
    if how == "ticket":
        amounts[ticket_class(decision.ticket, "web", 0)] = 1
    else:
        second = SecondDescription(FIRST, {"resources": {"VCPU": 2}})
        claim(env, TENANT, decision.id, second, naming)
    if how == "told":
        activate(env, TENANT, naming.id, SERVER)
    else:
        write = ReplaceAllocations(NOVA, {host: amounts}, None)
        allocate(env.store, [write], ids=env.ids, request_id=f"req-{naming.id}")
    return host


def fail_build(here: World, *, emptied: bool = False) -> None:
    """What Nova does when a build fails: it deletes the allocations, or writes none."""
    store = here.service.store
    if emptied:
        allocate(store, [ReplaceAllocations(NOVA, {}, 1)], ids=here.service.env.ids)
    else:
        release(store, SERVER)


def work(here: World) -> list[EffectResult]:
    due = here.service.store.due_effects(10, Lane.LIFE)
    return [carry_out(here.service.env, OutwardActions(), one) for one in due]


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("how", ["ticket", "presented", "told"])
def test_the_member_is_placed_on_another_host_and_the_others_stay(
    here: World, how: str, *, emptied: bool
) -> None:
    decision = held(here)
    host = boot(here, decision, how)
    fail_build(here, emptied=emptied)
    assert work(here) == [EffectResult.DONE]
    now = newest(here, decision)
    assert (now.state, now.expires_at, now.ticket) == (
        DecisionState.HELD,
        decision.expires_at,
        decision.ticket,
    )
    assert now.places[FIRST].host not in {host, decision.places[MemberName("web", 1)].host}
    assert now.places[MemberName("web", 1)] == decision.places[MemberName("web", 1)]
    (ended,) = here.service.store.claims(decision_id=decision.id)
    assert (ended.state, ended.server_id) == (ClaimState.ENDED, SERVER)
    assert boot(here, now) == now.places[FIRST].host, "the next server gets the new place"


def test_no_host_is_tried_twice(here: World) -> None:
    decision = held(here, 1)
    hosts = []
    for _ in here.hosts:
        hosts.append(boot(here, newest(here, decision)))
        fail_build(here)
        assert work(here) == [EffectResult.DONE]
    assert sorted(hosts) == sorted(here.hosts)
    now = newest(here, decision)
    assert (now.places[FIRST].host, now.state) == (hosts[-1], DecisionState.HELD)
    *_, last = here.service.store.effects(decision.ensemble_id)
    assert last.outcome.startswith("there is no other place")


def test_without_the_setting_the_place_is_kept(here: World) -> None:
    elsewhere(here, builds_elsewhere=False)
    decision = held(here)
    boot(here, decision)
    fail_build(here)
    assert work(here) == [EffectResult.DONE]
    now = newest(here, decision)
    assert (now.id, now.places) == (decision.id, decision.places)


@pytest.mark.parametrize("what", ["booted again", "confirmed", "lapsed", "deleted"])
def test_what_is_settled_meanwhile_stays(here: World, what: str) -> None:
    decision = held(here)
    boot(here, decision)
    fail_build(here)
    if what == "booted again":
        boot(here, decision)
    elif what == "confirmed":
        assert here.service.call("POST", f"/decisions/{decision.id}/confirm").status_code == 200
    elif what == "lapsed":
        here.service.clock.pass_by(60 * MINUTE)
    else:
        path, any_ = f"/ensembles/{decision.ensemble_id}", {"If-Match": "*"}
        assert here.service.call("DELETE", path, headers=any_).status_code == 204
    assert work(here) == [EffectResult.DONE]
    assert newest(here, decision).id == decision.id
    kinds = {one.kind for one in here.service.store.effects(decision.ensemble_id)}
    assert kinds == {EffectKind.PLACE_ANEW}
