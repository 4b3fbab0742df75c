"""Leases whose hosts fail: members placed anew, or what is missing said with a proposal."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.usecases.leases.conftest import World, described, named

from moorage.domain.bookings import Binding
from moorage.domain.changes import (
    Changeset,
    DeleteAllocations,
    PutInventories,
    PutLease,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import DecisionState
from moorage.domain.effects import EffectKind
from moorage.domain.errors import ConcurrentUpdate, Infeasible, WrongState
from moorage.domain.explain import Explanation
from moorage.domain.leases import Lease, reservation_class
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, MINUTE, Duration
from moorage.domain.providers import Inventory
from moorage.testing.service import TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.ensembles.change import ChangeRequest, change_ensemble
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.leases.requests import LeaseResult
from moorage.usecases.ledger.allocations import allocate
from moorage.usecases.relocation.lease_health import write_health
from moorage.usecases.relocation.repair import BUDGET, SHORTEST_BACKOFF, repair_lease
from moorage.usecases.shared.limits import Limits

Worlds = Callable[..., World]


@dataclass
class Watch:
    """A stopwatch that somebody else moves, or that moves with every look at it."""

    seconds: float = 0.0
    step: float = 0.0

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds


@dataclass
class Overtaken:
    """Names things; while it does, another worker looks around."""

    world: World

    def uuid(self) -> str:
        LeaseSweeper(self.world.service.env).run_round()
        return self.world.service.env.ids.uuid()

    def salt(self) -> str:
        return self.world.service.env.ids.salt()


def set_disabled(world: World, host: int, *, disabled: bool = True) -> None:
    traits = frozenset({"COMPUTE_STATUS_DISABLED"} if disabled else ())
    change = PutTraits(world.hosts[host], traits, None)
    world.service.store.commit(Changeset((change,)))


def resize(world: World, host: int, vcpu: int) -> None:
    change = PutInventories(world.hosts[host], (Inventory("VCPU", vcpu),), None)
    world.service.store.commit(Changeset((change,)))


def now(world: World, lease: Lease) -> Lease:
    return world.service.store.lease(lease.id)


def hosts(world: World, lease: Lease) -> dict[str, int]:
    """Member -> the number of its host, by the ledger and by the decision alike."""
    store = world.service.store
    stored = store.lease(lease.id)
    member_places = locate_members(store.snapshot(), store.ensemble(lease.ensemble_id))
    booked = {
        str(name): world.hosts.index(place.host) for name, place in member_places.places.items()
    }
    places = store.decision(stored.decision_id).places
    assert booked == {str(name): world.hosts.index(one.host) for name, one in places.items()}
    return booked


def told(world: World, lease: Lease) -> list[dict[str, Any]]:
    """What the owner has been told of places, in the order of its writing."""
    return [
        dict(one.details)
        for one in world.service.store.effects(lease.id)
        if one.kind is EffectKind.NOTIFY and "missing" in one.details
    ]


def drawn(world: World, made: LeaseResult, host: int, number: int = 7) -> str:
    """A server that Nova has created in the lease, on one of its hosts."""
    server = named(number)
    name = reservation_class(made.lease.reservations[0].id)
    owner = Consumer(server, TENANT.project_id, "nova", "INSTANCE")
    write = ReplaceAllocations(owner, {world.hosts[host]: {"VCPU": 1, name: 1}}, None)
    allocate(world.service.store, [write], ids=world.service.env.ids)
    return server


def move(world: World, server: str, host: int) -> None:
    """It is migrated, and its allocations with it."""
    found = world.service.store.consumer(server)
    assert found is not None
    there = ReplaceAllocations(found[0], {world.hosts[host]: {"VCPU": 1}}, found[0].generation)
    allocate(world.service.store, [there], ids=world.service.env.ids)


def spread(members: int, **more: Any) -> dict[str, Any]:
    apart = {"name": "apart", "type": "anti-affinity", "members": ["web"], "level": "host"}
    return described(members=members, policies=[apart | more])


# --- placed anew ------------------------------------------------------------------------------


@pytest.mark.parametrize("grace", [0, 15 * MINUTE])
def test_a_member_on_a_failed_host_gets_another_and_its_owner_hears_of_it(
    world: Worlds, grace: Duration
) -> None:
    here = world(1, 1, 1, limits=Limits(grace=grace))
    made = here.lease(3, 5, members=2)
    before = hosts(here, made.lease)
    failed = before["web[0]"]
    (spare,) = {0, 1, 2} - set(before.values())
    set_disabled(here, failed)
    LeaseSweeper(here.service.env).run_round()
    lease = now(here, made.lease)
    assert hosts(here, made.lease) == {"web[0]": spare, "web[1]": before["web[1]"]}
    assert (lease.degraded, lease.missing, lease.proposal) == (False, 0, {})
    assert lease.terms == made.lease.terms
    (said,) = told(here, made.lease)
    assert (said["moved"], said["missing"], said["degraded"]) == (["web[0]"], 0, False)
    assert here.service.store.decision(made.decision.id).state is DecisionState.SUPERSEDED


def test_members_that_stay_on_sound_hosts_move_too_where_that_alone_helps(world: Worlds) -> None:
    here = world(2, 2)
    together = {"name": "near", "type": "affinity", "members": ["web"], "level": "host"}
    made = here.lease(3, 5, body=described(members=2, policies=[together]))
    (host,) = set(hosts(here, made.lease).values())
    resize(here, host, 1)
    LeaseSweeper(here.service.env).run_round()
    assert set(hosts(here, made.lease).values()) == {1 - host}
    assert not now(here, made.lease).degraded
    assert told(here, made.lease)[0]["moved"] == ["web[0]", "web[1]"]


def test_a_claimed_place_is_never_moved(world: Worlds) -> None:
    here = world(2, 2, 2)
    together = {"name": "near", "type": "affinity", "members": ["web"], "level": "host"}
    made = here.lease(0, 5, body=described(members=2, policies=[together]))
    (host,) = set(hosts(here, made.lease).values())
    here.begin(made.lease.id)
    naming = here.naming()
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 1}})
    claim(here.service.env, TENANT, made.decision.id, second, naming)
    set_disabled(here, host)
    LeaseSweeper(here.service.env).run_round()
    lease = now(here, made.lease)
    assert set(hosts(here, made.lease).values()) == {host}
    assert (lease.degraded, lease.missing) == (True, 2)
    assert here.service.store.claim(naming.id).decision_id == lease.decision_id


def test_the_terms_of_an_active_lease_go_on(world: Worlds) -> None:
    here = world(1, 1)
    made = here.lease(0, 8, expiry=2 * HOUR, cleaning=HOUR)
    here.begin(made.lease.id)
    store = here.service.store
    bound = store.lease(made.lease.id)
    put = PutLease(replace(bound, binding=Binding.BOUND), bound.generation)
    store.commit(Changeset((put,)))
    here.go_to(1)
    set_disabled(here, hosts(here, made.lease)["web[0]"])
    LeaseSweeper(here.service.env).run_round()
    after = store.decision(now(here, made.lease).decision_id)
    assert after.id != made.decision.id
    assert (after.period, after.expires_at) == (made.decision.period, made.decision.expires_at)
    booking = here.booking(made.ensemble.members[0].uuid)
    assert (booking.binding, booking.lapses_at) == (Binding.BOUND, after.expires_at)


def test_who_yields_is_displaced_where_nothing_is_free(world: Worlds) -> None:
    here = world(1, 1)
    made = here.lease(3, 5)
    host = hosts(here, made.lease)["web[0]"]
    server = here.server(1, 1 - host, preemptible=True)
    set_disabled(here, host)
    LeaseSweeper(here.service.env).run_round()
    assert hosts(here, made.lease) == {"web[0]": 1 - host}
    assert here.booking(server).yields_to == made.lease.id


def test_as_many_move_as_have_room(world: Worlds) -> None:
    here = world(3, 2)
    here.server(2, 1)
    made = here.lease(3, 5, members=3)
    assert set(hosts(here, made.lease).values()) == {0}
    resize(here, 1, 4)
    set_disabled(here, 0)
    lookout = LeaseSweeper(here.service.env)
    lookout.run_round()
    lookout.run_round()
    lease = now(here, made.lease)
    assert sorted(hosts(here, made.lease).values()) == [0, 1, 1]
    assert (lease.degraded, lease.missing) == (True, 1)
    assert lease.proposal["after"] == 2
    assert [(one["moved"], one["missing"]) for one in told(here, made.lease)] == [
        (["web[0]", "web[1]"], 1),
        ([], 1),
    ]


def test_who_stays_too_long_gets_some_time_before_anybody_moves(world: Worlds) -> None:
    here = world(1, 1)
    made = here.lease(3, 5)
    host = hosts(here, made.lease)["web[0]"]
    server = here.server(1, host, until=2)
    lookout = LeaseSweeper(here.service.env)
    here.go_to(2)
    lookout.run_round()
    assert hosts(here, made.lease) == {"web[0]": host}
    assert now(here, made.lease).missing == 1
    here.service.clock.pass_by(here.service.env.limits.notice)
    lookout.run_round()
    assert hosts(here, made.lease) == {"web[0]": 1 - host}
    assert now(here, made.lease).missing == 0
    assert here.booking(server).provider == here.hosts[host]


# --- what is missing --------------------------------------------------------------------------


def test_what_is_missing_is_said_with_a_change_that_helps(world: Worlds) -> None:
    here = world(2, 2, 2)
    made = here.lease(3, 5, body=spread(3))
    host = hosts(here, made.lease)["web[2]"]
    set_disabled(here, host)
    LeaseSweeper(here.service.env).run_round()
    lease = now(here, made.lease)
    assert (lease.degraded, lease.missing) == (True, 1)
    assert lease.proposal == {
        "subject": "policy",
        "name": "apart",
        "field": "max_per_domain",
        "before": 1,
        "after": 2,
        "places": lease.proposal["places"],
    }
    places = dict(lease.proposal["places"])  # type: ignore[call-overload] # as JSON has it
    assert places.keys() == {"web[2]"}
    assert places["web[2]"] in set(here.hosts) - {here.hosts[host]}
    (said,) = told(here, made.lease)
    # The owner is told of the change, and not of hosts.
    changed = {name: of for name, of in lease.proposal.items() if name != "places"}
    assert (said["missing"], said["proposal"]) == (1, changed)


def test_the_change_that_is_proposed_helps_once_its_owner_makes_it(world: Worlds) -> None:
    here = world(2, 2, 2)
    made = here.lease(3, 5, body=spread(3))
    set_disabled(here, hosts(here, made.lease)["web[2]"])
    lookout = LeaseSweeper(here.service.env)
    lookout.run_round()
    proposal = now(here, made.lease).proposal
    policy = {"name": proposal["name"], str(proposal["field"]): proposal["after"]}
    change = ChangeRequest(policies=[policy])
    env = here.service.env
    change_ensemble(env, TENANT, made.ensemble.id, change, None)
    assert now(here, made.lease).degraded
    lookout.run_round()
    lease = now(here, made.lease)
    assert (lease.degraded, lease.missing, lease.proposal) == (False, 0, {})
    assert len(set(hosts(here, made.lease).values())) == 2


def test_members_of_a_lease_are_not_changed_behind_its_back(world: Worlds) -> None:
    here = world(2, 2, 2)
    made = here.lease(3, 5, body=spread(2))
    change = ChangeRequest(members=[{"name": "web", "count": 3}])
    with pytest.raises(WrongState):
        change_ensemble(here.service.env, TENANT, made.ensemble.id, change, None)
    tighter = ChangeRequest(policies=[{"name": "apart", "max_per_domain": 2}])
    change_ensemble(here.service.env, TENANT, made.ensemble.id, tighter, None)
    assert hosts(here, made.lease).keys() == {"web[0]", "web[1]"}
    after = here.service.store.decision(now(here, made.lease).decision_id)
    assert (after.period, after.lease_id) == (made.decision.period, made.lease.id)


def test_a_server_on_a_disabled_host_is_missing_until_it_is_elsewhere(world: Worlds) -> None:
    """Drained or failed: its owner hears of it, and once it has been moved, of that."""
    here = world(1, 1, 1)
    made = here.lease(0, 5, members=2, cleaning=HOUR)
    before = hosts(here, made.lease)
    here.begin(made.lease.id)
    server = drawn(here, made, before["web[0]"])
    here.change(made.lease.id, end=4)
    lookout = LeaseSweeper(here.service.env)
    lookout.run_round()
    assert told(here, made.lease) == []
    for host in (before["web[1]"], before["web[0]"]):
        set_disabled(here, host)
    lookout.run_round()
    (spare,) = {0, 1, 2} - set(before.values())
    lease = now(here, made.lease)
    assert hosts(here, made.lease) == {"web[0]": before["web[0]"], "web[1]": spare}
    assert (lease.degraded, lease.missing, lease.proposal) == (True, 1, {})
    (said,) = told(here, made.lease)
    assert (said["moved"], said["missing"], said["servers"]) == (["web[1]"], 1, [server])
    lookout.run_round()
    assert len(told(here, made.lease)) == 1

    set_disabled(here, before["web[1]"], disabled=False)
    move(here, server, before["web[1]"])
    lookout.run_round()
    assert (now(here, made.lease).degraded, now(here, made.lease).missing) == (False, 0)
    assert [one["missing"] for one in told(here, made.lease)] == [1, 0]


def test_other_servers_that_are_missing_are_told_of_though_they_are_as_many(
    world: Worlds,
) -> None:
    here = world(1, 1)
    made = here.lease(0, 5, members=2, body=spread(2))
    here.begin(made.lease.id)
    servers = {host: drawn(here, made, host, 70 + host) for host in (0, 1)}
    lookout = LeaseSweeper(here.service.env)
    set_disabled(here, 0)
    lookout.run_round()
    set_disabled(here, 0, disabled=False)
    set_disabled(here, 1)
    lookout.run_round()
    LeaseSweeper(here.service.env).run_round()
    said = [(one["missing"], one["servers"]) for one in told(here, made.lease)]
    assert said == [(1, [servers[0]]), (1, [servers[1]])]


def test_nobody_misses_a_server_of_a_lease_that_is_over(world: Worlds) -> None:
    here = world(1)
    made = here.lease(0, 2, cleaning=HOUR)
    here.begin(made.lease.id)
    drawn(here, made, 0)
    here.go_to(1)
    cancel_lease(here.service.env, TENANT, made.lease.id)
    set_disabled(here, 0)
    LeaseSweeper(here.service.env).run_round()
    assert write_health(here.service.env, made.lease.id, 1), "nothing is left to be looked at again"
    assert now(here, made.lease).missing == 0
    assert told(here, made.lease) == []


def test_it_is_mended_when_the_host_is_back_and_its_owner_hears_of_it(world: Worlds) -> None:
    here = world(1)
    made = here.lease(3, 5)
    lookout = LeaseSweeper(here.service.env)
    for disabled, missing in ((True, 1), (False, 0)):
        set_disabled(here, 0, disabled=disabled)
        lookout.run_round()
        lease = now(here, made.lease)
        assert (lease.degraded, lease.missing) == (disabled, missing)
        assert told(here, made.lease)[-1]["missing"] == missing
    lease = now(here, made.lease)
    assert lease.proposal == {}
    assert lease.decision_id == made.decision.id
    lookout.run_round()
    assert len(told(here, made.lease)) == 2


def test_another_worker_finds_nothing_left_to_do(world: Worlds) -> None:
    here = world(1, 1)
    one, other = here.lease(3, 5), here.lease(3, 5)
    lookouts = [LeaseSweeper(here.service.env) for _ in range(2)]
    for lookout in lookouts:
        lookout.run_round()
    set_disabled(here, hosts(here, one.lease)["web[0]"])
    for lookout in (*lookouts, *lookouts):
        lookout.run_round()
    assert now(here, one.lease).missing == 1
    assert len(told(here, one.lease)) == 1
    assert told(here, other.lease) == []


def test_a_slower_worker_changes_nothing(world: Worlds) -> None:
    here = world(1, 1)
    made = here.lease(3, 5)
    member = made.ensemble.members[0].uuid
    set_disabled(here, hosts(here, made.lease)["web[0]"])

    slow = replace(here.service.env, ids=Overtaken(here))
    with pytest.raises(ConcurrentUpdate):
        repair_lease(slow, made.lease.id, frozenset({member}))
    assert len(told(here, made.lease)) == 1
    assert not now(here, made.lease).degraded


def test_places_are_looked_for_again_after_a_rest_when_the_ledger_has_moved(world: Worlds) -> None:
    here = world(1, 1)
    made = here.lease(3, 5)
    host = hosts(here, made.lease)["web[0]"]
    server = here.server(1, 1 - host)
    watch = Watch()
    lookout = LeaseSweeper(replace(here.service.env, stopwatch=lambda: watch.seconds))
    set_disabled(here, host)
    lookout.run_round()
    assert now(here, made.lease).missing == 1
    here.service.store.commit(Changeset((DeleteAllocations(server),)))
    lookout.run_round()
    assert now(here, made.lease).missing == 1
    watch.seconds += SHORTEST_BACKOFF
    lookout.run_round()
    assert hosts(here, made.lease) == {"web[0]": 1 - host}
    assert now(here, made.lease).missing == 0


def test_what_is_missing_is_known_before_everybody_has_had_a_turn(world: Worlds) -> None:
    here = world(3)
    leases = [here.lease(3, 5).lease for _ in range(3)]
    watch = Watch(step=BUDGET)
    set_disabled(here, 0)
    lookout = LeaseSweeper(replace(here.service.env, stopwatch=watch))
    assert lookout.run_round()
    assert [now(here, one).missing for one in leases] == [1, 1, 1]
    proposed = [bool(told(here, one)) for one in leases]
    assert proposed == [True] * 3


# --- decisions leave failed hosts out ---------------------------------------------------------


def test_nothing_is_placed_on_a_disabled_host(world: Worlds) -> None:
    here = world(4, 1)
    set_disabled(here, 0)
    made = here.ensemble(1)
    assert made.decision is not None
    (place,) = made.decision.places.values()
    assert place.host == here.hosts[1]
    for ask in (lambda: here.ensemble(1), lambda: here.lease(3, 5, vcpu=2)):
        with pytest.raises(Infeasible) as caught:
            ask()
        assert isinstance(caught.value.explanation, Explanation)
        assert caught.value.explanation.rejected["disabled"] == 1


def test_who_stands_on_a_disabled_host_stays_and_the_ensemble_grows_elsewhere(
    world: Worlds,
) -> None:
    here = world(4, 4)
    made = here.ensemble(1, 2, body=spread(2, max_per_domain=2))
    assert made.decision is not None
    before = {str(name): place.host for name, place in made.decision.places.items()}
    set_disabled(here, 0)
    change = ChangeRequest(members=[{"name": "web", "count": 3}])
    grown = change_ensemble(here.service.env, TENANT, made.ensemble.id, change, None)
    assert grown.decision is not None
    after = {str(name): place.host for name, place in grown.decision.places.items()}
    assert after == before | {"web[2]": here.hosts[1]}


def test_no_lease_is_moved_onto_a_disabled_host_to_let_others_in(world: Worlds) -> None:
    here = world(2, 2)
    first = here.lease(3, 5)
    second = here.lease(3, 5)
    assert hosts(here, first.lease) == hosts(here, second.lease) == {"web[0]": 0}
    set_disabled(here, 1)
    with pytest.raises(Infeasible):
        here.lease(3, 5, vcpu=2)
    assert hosts(here, first.lease) == {"web[0]": 0}
    assert hosts(here, second.lease) == {"web[0]": 0}
