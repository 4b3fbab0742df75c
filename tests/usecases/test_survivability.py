"""What the fleet survives: the same as each loss by itself, and what is placed again fits."""

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.seeds import cases
from tests.usecases.test_simulations import (
    TWO_RACKS,
    boot,
    created,
    described,
    fleet,
    one,
    simulated,
)

from moorage.domain.period import Period
from moorage.engine.state.change_overlay import with_moved
from moorage.engine.state.host_states import host_states
from moorage.engine.state.hypothetical_hosts import with_hosts_down
from moorage.testing.service import OPERATOR, TENANT, Service
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.decide.member_places import consumer_of, locate_members
from moorage.usecases.simulations.fast_replacement import FastReplacement
from moorage.usecases.simulations.loss_replacement import moved_bookings


def survives(service: Service, **query: object) -> Any:
    answer = service.call("GET", "/survivability", caller=OPERATOR, query=query)
    assert answer.status_code == 200, answer.text
    return answer.json["survivability"]


def refused(service: Service, **query: object) -> tuple[str, str | None]:
    answer = service.call("GET", "/survivability", caller=OPERATOR, query=query)
    (error,) = answer.json["errors"]
    return error["code"], error.get("path")


def drawn(random: Random) -> Service:
    service = Service(fleet(random))
    for number in range(random.randint(1, 5)):
        found = created(service, described(random, f"e{number}"))
        if found is not None and random.random() < 0.7:
            boot(service, found, random)
    return service


def too_few(service: Service, gone: set[str], level: str) -> dict[str, set[tuple[str, int]]]:
    """Ensemble -> roles and policies of which too few are left, counted member by member."""
    snapshot = service.store.snapshot()
    found: dict[str, set[tuple[str, int]]] = {}
    for written in service.store.compliance.ensembles_by_id(
        service.store.compliance.every_ensemble()
    ):
        ensemble = written.ensemble
        hosts = {
            name: snapshot.names[snapshot.row_of[place.host]]
            for name, place in locate_members(snapshot, ensemble).places.items()
        }
        kept = [(f"role {role.name}", max(1, role.min_available)) for role in ensemble.roles]
        kept += [
            (f"policy {policy.name}", int(str(policy.parameters["keep"])))
            for policy in ensemble.policies
            if policy.type == "survive" and policy.parameters["level"] == level
        ]
        for name, needed in kept:
            left = sum(host not in gone for host in hosts.values())
            if hosts and left < needed <= len(hosts):
                found.setdefault(ensemble.id, set()).add((name, left))
    return found


@pytest.mark.parametrize("seed", range(cases(25, 300)))
def test_it_says_of_each_loss_what_a_simulation_says(seed: int) -> None:
    random = Random(seed)
    service = drawn(random)
    try:
        for level in ("rack", "host"):
            told = survives(service, level=level)
            names = service.store.snapshot().names
            by_domain: dict[str, set[str]] = {}
            for name in names:
                by_domain.setdefault(name if level == "host" else f"r{name[1]}", set()).add(name)
            assert told["considered"] == len(by_domain)
            losses = {loss["domains"][0]: loss for loss in told["losses"]}
            for domain, hosts in by_domain.items():
                expected = too_few(service, hosts, level)
                assert (domain in losses) == bool(expected)
                if not expected:
                    continue
                loss = losses[domain]
                assert loss["hosts"] == len(hosts)
                assert expected == {
                    lost["ensemble_id"]: {
                        (
                            f"role {some['role']}" if some["role"] else f"policy {some['policy']}",
                            some["left"],
                        )
                        for some in lost["too_few"]
                    }
                    for lost in loss["lost"]
                }
                if len(expected) == 1:
                    (lost,) = loss["lost"]
                    assert lost["again"] == alone(service, lost["ensemble_id"], domain, level)
    finally:
        service.close()


def alone(service: Service, ensemble: str, domain: str, level: str) -> str:
    """What a simulation says of the loss, in which this ensemble is placed before all others."""
    name = domain if level == "host" else f"rack/{domain}"
    told = simulated(service, {"lose": name})
    first = [loss for loss in told["losses"] if loss["ensemble_id"] == ensemble]
    others = [loss for loss in told["losses"] if loss["ensemble_id"] != ensemble]
    # A survive policy is no quorum of the simulation's: it may be placed after others there.
    if first[0] is not told["losses"][0] and others:
        pytest.skip("others are placed before it")
    verdict: str = first[0]["again"]["verdict"]
    return verdict


@pytest.mark.parametrize("seed", range(cases(25, 300)))
def test_what_is_placed_again_fits_and_obeys(seed: int) -> None:
    random = Random(seed)
    service = drawn(random)
    try:
        store, snapshot = service.store, service.store.snapshot()
        fast = FastReplacement(snapshot, host_states(snapshot).in_service)
        rack = snapshot.domains_of_hosts(snapshot.topology.every_level[0])
        for number in range(int(rack.max()) + 1):
            lost_hosts = (rack == number) & (snapshot.parent < 0)
            loss, down = fast.loss(lost_hosts), np.flatnonzero(lost_hosts).tolist()
            then = with_hosts_down(snapshot, down)
            placed = []
            ids = store.compliance.every_ensemble()
            for written in store.compliance.ensembles_by_id(ids):
                ensemble = written.ensemble
                places = locate_members(snapshot, ensemble).places
                lost = frozenset(
                    name
                    for name, place in places.items()
                    if lost_hosts[snapshot.row_of[place.host]]
                )
                found = loss.place(ensemble, lost) if lost else None
                if found is not None:
                    assert found.keys() == lost
                    then = with_moved(then, moved_bookings(snapshot, ensemble, found))
                    placed.append(ensemble)
            vcpu = then.classes["VCPU"]
            assert (vcpu.peak_over(Period(then.taken_at)) <= vcpu.capacity).all()
            for ensemble in placed:
                judged = judge(then, ensemble)
                assert not judged.out_of_service
                assert not [one for one in judged.violations if one.required]
                consumers = {consumer_of(member) for member in ensemble.members}
                assert then.live_bookings(consumers).keys() == consumers
    finally:
        service.close()


@pytest.fixture
def racks() -> Any:
    made = Service(TWO_RACKS)
    yield made
    made.close()


def test_lost_members_of_one_domain_are_placed_together(racks: Service) -> None:
    for name in ("a", "b"):
        near = {"name": "near", "type": "affinity", "members": ["db"], "level": "rack"}
        assert created(racks, one(name, 1, 3, near))
    told = survives(racks, level="rack")
    assert (told["level"], told["lose"], told["ensembles"], told["already"]) == ("rack", 1, 2, 0)
    by_domain = {loss["domains"][0]: loss for loss in told["losses"]}
    for loss in by_domain.values():
        assert loss["placed"] + loss["refused"] == loss["without_quorum"]
    if set(by_domain) == {"r1"}:
        assert (by_domain["r1"]["placed"], by_domain["r1"]["refused"]) == (1, 1)


def test_two_domains_together(racks: Service) -> None:
    apart = {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "rack"}
    assert created(racks, one("a", 2, 1, apart))
    assert survives(racks, level="rack")["fatal"] == 0
    told = survives(racks, level="rack", lose=2)
    assert (told["considered"], told["fatal"]) == (1, 1)
    (loss,) = told["losses"]
    assert sorted(loss["domains"]) == ["r1", "r2"]
    assert (loss["hosts"], loss["members"], loss["refused"]) == (3, 2, 1)
    named = survives(racks, level="rack", domains="r2,r1")
    assert named["losses"] == told["losses"]
    assert survives(racks, level="rack", domains="r2")["fatal"] == 0


def test_counted_as_every_two_by_themselves() -> None:
    random = Random(5)
    service = drawn(random)
    try:
        hosts = sorted(service.store.snapshot().names)
        told = survives(service, level="host", lose=2)
        fatal = {
            tuple(sorted(loss["domains"])): {lost["ensemble_id"] for lost in loss["lost"]}
            for loss in told["losses"]
        }
        expected = {
            pair: set(found)
            for pair in combinations(hosts, 2)
            if (found := too_few_of_two(service, set(pair)))
        }
        assert fatal == expected
        assert told["fatal"] == len(expected)
    finally:
        service.close()


def too_few_of_two(service: Service, gone: set[str]) -> dict[str, Any]:
    """A policy of one loss says nothing of two."""
    found = too_few(service, gone, "nowhere")
    return {id_: some for id_, some in found.items() if any("role" in name for name, _ in some)}


def test_other_trees_and_the_default_level(racks: Service) -> None:
    assert created(racks, one("a", 1, 4, min_available=1))
    assert survives(racks)["level"] == "rack"
    assert survives(racks, level="power:feed")["level"] == "power:feed"
    assert survives(racks, level="feed", tree="power")["considered"] == 1
    assert survives(racks, level="host")["considered"] == 3


def test_who_is_without_quorum_already_is_told_apart(racks: Service) -> None:
    assert created(racks, one("a", 3, 4, min_available=3))
    down = {"service": {"status": "enabled", "state": "down"}}
    assert racks.call("PUT", "/hosts/g1/service", down, caller=OPERATOR).status_code == 200
    told = survives(racks, level="rack")
    assert (told["already"], told["fatal"], told["losses"]) == (1, 0, [])


def test_bad_input_is_refused(racks: Service) -> None:
    assert refused(racks, level="room") == ("ensemble.unknown_name", "level")
    assert refused(racks, level="water:rack") == ("ensemble.unknown_name", "level")
    assert refused(racks, level="rack", domains="r9") == ("ensemble.unknown_name", "domains")
    assert refused(racks, level="rack", lose=3) == ("ensemble.invalid_description", "lose")
    assert refused(racks, level="rack", lose="x") == ("ensemble.invalid_description", "lose")
    assert refused(racks, tree="power") == ("ensemble.invalid_description", "level")
    found = refused(racks, level="rack", lose=3, domains="r1,r2")
    assert found == ("ensemble.invalid_description", "lose")
    assert racks.call("GET", "/survivability", caller=TENANT).status_code == 403
