"""A hyperedge that comes into being with a decision must hold, whatever was broken before."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.placement import Place, Placement
from moorage.domain.requests import Objective
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.cost import satisfies
from moorage.engine.joint.verify import WrongAnswer, verify
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import every_placement
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import Host, statement, terrain
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.decide.member_places import MemberPlaces
from moorage.usecases.decide.solution import edges_before, request_for

if TYPE_CHECKING:
    from moorage.domain.ensembles import PolicyStatement
    from moorage.policies.contract import Edge

FLEET = """
fleet: one-host-in-no-rack
topology:
  location:
    levels: [rack]
    domains: [{name: r1, level: rack}, {name: r2, level: rack}]
hosts:
  - {name: h0, inventories: {VCPU: 8}, place: {location: r1}}
  - {name: h1, inventories: {VCPU: 8}, place: {location: r1}}
  - {name: h2, inventories: {VCPU: 8}, place: {location: r2}}
  - {name: h3, inventories: {VCPU: 8}}
"""
NEAR = {"name": "near", "type": "proximity", "zip": ["a", "c"], "level": "rack"}
OUTSIDE = {"name": "f", "type": "fence", "members": ["a[1]"], "domains": ["h3"]}


@pytest.fixture
def path(service: Service) -> str:
    """Two of role a, the second in no rack, and one of c beside the first."""
    made = service.call(
        "POST",
        "/ensembles",
        {
            "ensemble": {
                "name": "pairs",
                "members": [
                    {"name": "a", "count": 2, "resources": {"VCPU": 5}},
                    {"name": "c", "count": 1, "resources": {"VCPU": 1}},
                ],
                "policies": [NEAR, OUTSIDE],
                "decide": {"max_additional": ["c"]},
            }
        },
        caller=OPERATOR,
    )
    assert made.status_code == 201, made.text
    assert made.json["decision"]["max_additional"]["c"]["count"] == 0
    return f"/ensembles/{made.json['ensemble']['id']}"


def sent(service: Service, method: str, path: str, body: Any) -> Any:
    return service.call(method, path, body, caller=OPERATOR, headers={"If-Match": "*"})


@pytest.mark.parametrize(
    ("method", "under", "body"),
    [
        ("POST", "/extend", {"extend": {"role": "c", "count": 1}}),
        ("POST", "/extend", {"extend": {"role": "c", "count": 3, "least": 1}}),
        ("PATCH", "", {"ensemble": {"members": [{"name": "c", "count": 2}]}}),
        ("PUT", "/headroom", {"headroom": {"role": "c", "count": 1}}),
    ],
)
def test_a_pair_that_comes_into_being_must_hold(
    service: Service, path: str, method: str, under: str, body: Any
) -> None:
    refused = sent(service, method, f"{path}{under}", body)
    assert refused.status_code == 409, refused.text
    body = {"fit": {"ensemble_id": path.removeprefix("/ensembles/"), "role": "c"}}
    told = service.call("POST", "/capacity/fit", body, caller=OPERATOR)
    assert told.json["fit"]["additional"] == 0, told.text


def test_what_is_asked_at_once_and_one_after_the_other_is_judged_alike(
    service: Service, path: str
) -> None:
    """The pair whose member stands in no rack is refused; another role grows as ever."""
    more = {"ensemble": {"members": [{"name": "b", "count": 2, "resources": {"VCPU": 1}}]}}
    assert sent(service, "PATCH", path, more).status_code == 200
    assert sent(service, "POST", f"{path}/extend", {"extend": {"role": "a", "count": 1}})
    ok = sent(service, "POST", f"{path}/extend", {"extend": {"role": "b", "count": 1}})
    assert ok.status_code == 200, ok.text
    refused = sent(service, "POST", f"{path}/extend", {"extend": {"roles": {"b": 1, "c": 1}}})
    assert refused.status_code == 409, refused.text


RACKS = {"h0": "r1", "h1": "r1", "h2": "r2", "h3": None}
TYPES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("proximity", {"level": "rack"}),
    ("proximity", {"max_distance": 1}),
    ("affinity", {"level": "host"}),
    ("separation", {"level": "rack"}),
    ("separation", {"level": "host"}),
    ("anti-affinity", {"level": "rack", "max_per_domain": 1}),
    ("anti-affinity", {"level": "host", "max_per_domain": 2}),
)
FENCES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fence", {"domains": frozenset({"r1"})}),
    ("ban", {"domains": frozenset({"h0"})}),
)
PAIRED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("spread", {"level": "rack", "min_domains": 2}),
    ("spread", {"level": "host", "max_skew": 0}),
)
SELECTORS = ("a", "c", "g", "tag:t", "*", "g[0]", "a[0]", "c[1]")
ROLES = ("a", "c", "g/0/x", "g/1/x")


def selected(dice: Random, count: int) -> tuple[str, ...]:
    return tuple(dice.sample(SELECTORS[:5] if count == 2 else SELECTORS, count))


def random_policies(dice: Random) -> list[PolicyStatement]:
    found = []
    for number in range(dice.randint(1, 3)):
        if dice.random() < 0.6:
            kind, values = dice.choice((*TYPES, *PAIRED))
            found.append(statement(f"p{number}", kind, *selected(dice, 2), zip_=True, **values))
        else:
            kind, values = dice.choice((*TYPES, *FENCES))
            found.append(statement(f"p{number}", kind, *selected(dice, 1), **values))
    return found


class Growth:
    """An ensemble whose members stand anywhere, and the same with one to three more."""

    def __init__(self, seed: int) -> None:
        dice = Random(seed)
        roles = tuple(
            Role(name, {"VCPU": dice.randint(1, 3)}, tags=frozenset({"t"} if name != "c" else ()))
            for name in ROLES
        )
        names = [
            MemberName(role, index)
            for role in ROLES
            for index in range(dice.randint(0, 3))
            if dice.random() < 0.8  # the others left
        ]
        self.hosts = {name: dice.choice(tuple(RACKS)) for name in names if dice.random() < 0.7}
        members = tuple(Member(name, str(name)) for name in names)
        self.before = Ensemble(
            "e", "p", "u", "e", roles, members, policies=tuple(random_policies(dice))
        )
        free = [MemberName(role, i) for role in ROLES for i in range(4)]
        free = [one for one in free if one not in names]
        self.fresh = frozenset(dice.sample(free, dice.randint(1, 2)))
        fresh = tuple(Member(name, str(name)) for name in sorted(self.fresh))
        self.after = replace(self.before, members=(*members, *fresh))

    def built(self) -> BuiltProblem:
        places = {
            name: Place(host, MappingProxyType({host: self.before.role(name.role).resources}))
            for name, host in self.hosts.items()
        }
        nothing: MappingProxyType[Any, Any] = MappingProxyType({})
        known = MemberPlaces(0, places, nothing, nothing, frozenset(), nothing)
        asked = request_for(self.after, known, self.fresh, Period(0), Objective.SPREAD)
        asked = replace(asked, former_edges=edges_before(self.before, self.after, known))
        topology = Topology.build(
            {"location": ("rack",)},
            [Domain(one, "rack") for one in ("r1", "r2")],
            [Attachment(host, rack) for host, rack in RACKS.items() if rack is not None],
        )
        used = dict.fromkeys(RACKS, 0)
        for name, host in self.hosts.items():
            used[host] += self.before.role(name.role).resources["VCPU"]
        hosts = [Host(host, {"VCPU": 9}, used={"VCPU": used[host]}) for host in RACKS]
        return build_on_terrain(asked, terrain(hosts, topology))

    def stands_broken(self, built: BuiltProblem, one: PolicyStatement) -> dict[Edge, int]:
        """Edge before -> by how much its members break it; of a zip only whole edges count."""
        (rule,) = (rule for rule in built.rules if rule.statement == one)
        found = {}
        for edge in self.before.edges(one):
            there = tuple(name for name in edge if name in self.hosts)
            if there and (there == edge or not one.zip):
                rows = {name: tuple(RACKS).index(self.hosts[name]) for name in there}
                placed = Placement(built.policy_view, rows)
                found[there] = sum(v.amount for v in rule.policy.violations(there, placed))
        return found

    def good(self, built: BuiltProblem, rows: dict[MemberName, int]) -> bool:
        """Whether all new edges hold, and no former one is broken more than it was."""
        free = built.problem.free.copy()
        for name in self.fresh:
            free[rows[name]] -= self.before.role(name.role).resources["VCPU"]
        if (free[[rows[name] for name in self.fresh]] < 0).any():
            return False
        placement = Placement(built.policy_view, rows)
        for rule in built.rules:
            stood = self.stands_broken(built, rule.statement)
            for whole in self.after.edges(rule.statement):
                edge = tuple(name for name in whole if name in rows)
                if not edge or (edge != whole and rule.statement.zip):
                    continue
                amount = sum(v.amount for v in rule.policy.violations(edge, placement))
                accepted = [
                    was
                    for former, was in stood.items()
                    if {*former} == {*edge} or (not rule.statement.zip and {*former} <= {*edge})
                ]
                if amount > sum(accepted):
                    return False
        return True


@pytest.mark.parametrize("chunk", range(4))
def test_growth_is_granted_exactly_if_new_edges_hold_and_nothing_gets_worse(chunk: int) -> None:
    """Against every placement there is, by the policies' meanings."""
    solver = Portfolio(CpSat())
    refused = broken = 0
    for seed in range(chunk * 300, chunk * 300 + 300):
        growth = Growth(seed)
        built = growth.built()
        names = built.problem.members
        right = []
        for chosen in itertools.product(range(len(RACKS)), repeat=len(growth.fresh)):
            at = {name: tuple(RACKS).index(host) for name, host in growth.hosts.items()}
            at |= dict(zip(sorted(growth.fresh), chosen, strict=True))
            row = np.array([[at[name] for name in names]])
            right.append(growth.good(built, at))
            if not right[-1]:
                with pytest.raises(WrongAnswer):
                    verify(built, row[0])
            else:
                verify(built, row[0])
        every = every_placement(built.problem)
        assert int(satisfies(built.problem, every).sum()) == sum(right), seed
        found = solver.solve(built.problem, time_limit=5_000_000, seed=0)
        assert (found.hosts is not None) == any(right), seed
        refused += not any(right)
        broken += bool(built.standing) and any(right)
    assert refused > 30
    assert broken > 30
