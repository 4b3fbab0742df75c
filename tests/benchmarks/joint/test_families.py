"""The generators: what they plant is true, and the same for a seed."""

import numpy as np
import pytest
from benchmarks.joint import engine
from benchmarks.joint.bounds import least_hops
from benchmarks.joint.checker import faults, hops
from benchmarks.joint.draft import Instance
from benchmarks.joint.families import FAMILIES, SETS, make
from benchmarks.joint.fleet import VCPU, Fleet, after_a_commit, make_fleet, snapshot_of
from benchmarks.joint.refusals import REFUSALS

from moorage.domain.ensembles import PolicyStatement
from moorage.engine.joint.problem import Verdict

HOSTS = 600


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return make_fleet(HOSTS, load=0.75, seed=3)


@pytest.mark.parametrize("load", [0.6, 0.75, 0.9])
def test_a_fleet_is_as_full_as_asked(load: float) -> None:
    fleet = make_fleet(1000, load=load, seed=1)
    assert fleet.used[:, 0].sum() / fleet.capacity[:, 0].sum() == pytest.approx(load, abs=0.01)
    assert (fleet.free >= 0).all()
    assert (fleet.used[:, 0] == 0).any()


def test_the_snapshot_says_what_the_columns_say(fleet: Fleet) -> None:
    snapshot = snapshot_of(fleet)
    assert snapshot.names == fleet.names
    np.testing.assert_array_equal(snapshot.classes[VCPU].used, fleet.used[:, 0])
    for row in (0, 17, HOSTS - 1):
        foreign = bool(fleet.strangers[row] or fleet.relatives[row])
        assert bool(snapshot.occupants(row)) is foreign
    changed, following = after_a_commit(fleet, snapshot, 1, avoid=())
    assert following.revision == snapshot.revision + 1
    np.testing.assert_array_equal(following.classes[VCPU].used, changed.used[:, 0])
    assert changed.used.sum() == fleet.used.sum() + 1


@pytest.mark.parametrize("members", [10, 60])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("number", range(4))
def test_a_planted_answer_holds(fleet: Fleet, family: str, members: int, number: int) -> None:
    instance = make(family, fleet, members, SETS["tune"] + number)
    assert instance.planted is not None
    assert len(instance.request.members) == members
    assert faults(fleet, instance.request, instance.planted) == []
    again = make(family, fleet, members, SETS["tune"] + number)
    assert again.planted == instance.planted
    assert again.request == instance.request


@pytest.mark.parametrize("family", REFUSALS)
@pytest.mark.parametrize("number", [*range(2), 7])
def test_a_refusal_ends_with_any_part_of_its_conflict(
    fleet: Fleet, family: str, number: int
) -> None:
    instance = make(family, fleet, 20, SETS["tune"] + number)
    assert instance.conflict
    assert instance.planted is None
    snapshot = snapshot_of(fleet)
    for kind, name in instance.conflict:
        request = engine.without_part(instance.request, kind, name)
        decided = engine.first_answer(snapshot, request)
        assert decided.hosts is not None
        hosts = {member: fleet.row_of[host] for member, host in decided.hosts.items()}
        assert faults(fleet, request, hosts) == []


@pytest.mark.parametrize("family", ["too-many", "zone-missing", "capacity"])
def test_the_engine_refuses_for_the_known_conflict(fleet: Fleet, family: str) -> None:
    instance = make(family, fleet, 20, SETS["tune"])
    decided = engine.first_answer(snapshot_of(fleet), instance.request)
    assert decided.verdict is Verdict.INFEASIBLE
    refused = engine.refusal(decided)
    assert refused.conflicts == (instance.conflict,)
    assert refused.relaxations


@pytest.mark.parametrize("number", range(5))
def test_no_answer_has_fewer_hops_than_the_bound(fleet: Fleet, number: int) -> None:
    instance = make("tight", fleet, 60, SETS["tune"] + number)
    assert instance.planted is not None
    least = least_hops(fleet, instance)
    assert 0 < least <= hops(fleet, instance.teams, instance.planted)


def test_a_wrong_answer_is_found(fleet: Fleet) -> None:
    """The judge has to see one member moved to a host of another."""
    instance = make("high-availability", fleet, 20, SETS["tune"])
    assert instance.planted is not None
    hosts = dict(instance.planted)
    first, second = [member for member in hosts if member.role == "web"][:2]
    hosts[second] = hosts[first]
    assert any(fault.startswith("web-apart") for fault in faults(fleet, instance.request, hosts))


def test_sets_share_no_seed() -> None:
    """Thirty or a thousand instances of one set are none of the other's."""
    assert SETS["held-out"] - SETS["tune"] > 10**6


def policies(instance: Instance) -> dict[str, PolicyStatement]:
    return {one.name: one for one in instance.request.policies}


def test_groups_that_fill_all_exclusive_hosts_are_placed_and_one_more_is_refused() -> None:
    """As many members as there is room for on hosts without foreigners, and then one more."""
    fleet = make_fleet(400, load=0.75, seed=5)
    instance = make("exclusive", fleet, 40, SETS["tune"] + 3)
    assert set(policies(instance)) == {"alone", "quiet-few"}
    request, room = engine.with_count(instance.request, "quiet", 1), 0
    for row in np.flatnonzero(~(fleet.strangers | fleet.relatives)).tolist():
        demand = [request.roles[0].resources[name] for name in fleet.classes]
        most = policies(instance)["quiet-few"].parameters["max_per_domain"]
        assert isinstance(most, int)
        room += min(most, int((fleet.free[row] // demand).min()))
    snapshot = snapshot_of(fleet)
    for count, verdict in ((room, Verdict.FEASIBLE), (room + 1, Verdict.INFEASIBLE)):
        asked = engine.with_count(instance.request, "quiet", count)
        assert engine.first_answer(snapshot, asked).verdict is verdict
