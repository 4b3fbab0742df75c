"""Devices: the joint search against brute force over every assignment, and what it costs."""

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import MemberKind, Role
from moorage.domain.request_groups import Group
from moorage.engine.joint.build import build
from moorage.engine.joint.cost import satisfies
from moorage.engine.joint.counting import refuted
from moorage.engine.joint.device_cuts import learn_cuts
from moorage.engine.joint.instance import dumps, dumps_request, loads, loads_request
from moorage.engine.joint.problem import SupportsSolve, Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import WrongAnswer, device_faults, places, verify
from moorage.policies.primitives import NeverTogether, Pooled
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.trees import (
    Needed,
    Node,
    asked,
    edge_host,
    random_forest,
    snapshot,
    stated,
    vf,
)

LIMIT = 20_000_000

Givers = tuple[tuple[tuple[str, str, int], ...], ...]
"""Per slot: (provider, class, amount)."""


# --- the oracle: written again, by the words of the guide, without the engine --------------


class Oracle:
    """Every assignment of members to hosts and of slots to providers, one by one."""

    def __init__(self, nodes: Sequence[Node], roles: Sequence[Needed]) -> None:
        self.nodes = {one.name: one for one in nodes}
        self.hosts = tuple(dict.fromkeys(one.host for one in nodes if one.host))
        self.members = [role for role, count in roles for _ in range(count)]

    def placements(self) -> set[tuple[str, ...]]:
        """Hosts per member, for every placement that some assignment serves."""
        options = [list(self.options(role)) for role in self.members]
        found = set()
        for chosen in itertools.product(*options):
            hosts = tuple(host for host, _ in chosen)
            if hosts not in found and self.fits([taken for _, taken in chosen]):
                found.add(hosts)
        return found

    def options(self, role: Role) -> Iterator[tuple[str, Givers]]:
        if role.of_one_provider:
            yield from self.wholes(role)
            return
        for host in self.hosts:
            reach = [one for one in self.nodes.values() if one.host == host or host in one.lends_to]
            own = [((name, amount),) for name, amount in role.resources.items()]
            named = [tuple(group.resources.items()) for group in role.groups]
            for givers in itertools.product(reach, repeat=len(own) + len(named)):
                if self.right(role, host, givers):
                    yield (
                        host,
                        tuple(
                            tuple((giver.name, name, amount) for name, amount in wants)
                            for giver, wants in zip(givers, [*own, *named], strict=True)
                        ),
                    )

    def wholes(self, role: Role) -> Iterator[tuple[str, Givers]]:
        """Of a volume or port: one provider of the tree itself gives all."""
        for one in self.nodes.values():
            if self.gives_whole(one, role):
                taken = tuple((one.name, name, amount) for name, amount in role.resources.items())
                yield one.host or one.name, (taken,)

    def gives_whole(self, one: Node, role: Role) -> bool:
        has = all(
            name in one.free and amount <= one.max_unit for name, amount in role.resources.items()
        )
        fits = all(any_of & one.traits for any_of in role.required)
        computing = role.kind == MemberKind.VOLUME and self.of_servers(one)
        return has and fits and not role.forbidden & one.traits and not computing

    def of_servers(self, node: Node) -> bool:
        return any(one.free.get("VCPU") and self.above(node, one) for one in self.nodes.values())

    def right(self, role: Role, host: str, givers: Sequence[Node]) -> bool:
        own, named = givers[: len(role.resources)], givers[len(role.resources) :]
        taken: dict[tuple[str, str], int] = {}
        for (name, amount), giver in zip(role.resources.items(), own, strict=True):
            taken[giver.name, name] = taken.get((giver.name, name), 0) + amount
        for group, giver in zip(role.groups, named, strict=True):
            if not all(any_of & giver.traits for any_of in group.required):
                return False
            for name, amount in group.resources.items():
                taken[giver.name, name] = taken.get((giver.name, name), 0) + amount
        for (uuid, name), amount in taken.items():
            if name not in self.nodes[uuid].free or amount > self.nodes[uuid].max_unit:
                return False
        if not all(any(any_of & giver.traits for giver in own) for any_of in role.required):
            return False
        if role.isolate and len({one.name for one in named}) < len(named):
            return False
        by_name = dict(zip((group.name for group in role.groups), named, strict=True))
        if not all(self.together([by_name[n] for n in names]) for names in role.same_subtree):
            return False
        beside = [by_name[group.name] for group in role.groups if group.beside]
        in_tree = [one for one in own if one.host == host]
        low = [
            one
            for one in in_tree
            if not any(other is not one and self.above(one, other) for other in in_tree)
        ]
        return not beside or self.together([*low, *beside])

    def together(self, some: Sequence[Node]) -> bool:
        return any(all(self.above(top, one) for one in some) for top in some)

    def above(self, top: Node, one: Node) -> bool:
        """Whether `top` is or stands above the other."""
        if one is top:
            return True
        return one.parent is not None and self.above(top, self.nodes[one.parent])

    def fits(self, chosen: Sequence[Givers]) -> bool:
        taken: dict[tuple[str, str], int] = {}
        for givers in chosen:
            for giver, name, amount in (piece for slot in givers for piece in slot):
                taken[giver, name] = taken.get((giver, name), 0) + amount
        return all(
            amount <= self.nodes[giver].free.get(name, 0) for (giver, name), amount in taken.items()
        )


SOLVERS: dict[str, SupportsSolve] = {
    "exhaustive": Exhaustive(),
    "portfolio": Portfolio(CpSat()),
    "greedy": Greedy(),
}


@pytest.mark.parametrize("solver", sorted(SOLVERS))
@given(seed=st.integers(0, 10**6))
def test_every_solver_agrees_with_all_assignments(solver: str, seed: int) -> None:
    nodes, roles = random_forest(seed)
    built = stated(nodes, roles)
    possible = Oracle(nodes, roles).placements()
    outcome = solve(SOLVERS[solver], built.problem, time_limit=LIMIT, seed=0)
    if outcome.hosts is None:
        assert not possible or outcome.verdict is Verdict.UNKNOWN
        assert solver == "greedy" or outcome.verdict is Verdict.INFEASIBLE or sharing(nodes)
        return
    verify(built, outcome.hosts)
    assert tuple(built.problem.hosts[row] for row in outcome.hosts) in possible
    if solver == "exhaustive" and outcome.proven:
        least = min(len(one) - len(set(one)) for one in possible)
        assert outcome.value == least


@given(seed=st.integers(0, 10**6))
def test_a_ledger_shows_the_same_trees(seed: int) -> None:
    """Cut from a snapshot, the devices lead to the same answers as when they are written down."""
    nodes, roles = random_forest(seed)
    built = build(asked(roles), snapshot(nodes))
    possible = Oracle(nodes, roles).placements()
    outcome = solve(Exhaustive(), built.problem, time_limit=LIMIT, seed=0)
    if outcome.hosts is None:
        assert not possible or outcome.verdict is Verdict.UNKNOWN
        return
    verify(built, outcome.hosts)
    assert tuple(built.problem.hosts[row] for row in outcome.hosts) in possible
    for place in places(built, outcome.hosts).values():
        assert place.host in built.problem.hosts


def sharing(nodes: Sequence[Node]) -> bool:
    """Whether hosts share a pool: what each may take of it the search may leave undecided."""
    return any(one.host is None for one in nodes)


# --- what is proved, and what is caught -----------------------------------------------------


def upf(**more: object) -> Role:
    groups = (vf("a", "A", beside=True), vf("b", "B"))
    return Role("upf", {"VCPU": 8, "MEMORY_MB": 512}, groups=groups, **more)  # type: ignore[arg-type]  # fields of a role


def fleet(count: int) -> list[Node]:
    return [node for number in range(count) for node in edge_host(f"h{number}")]


def test_counts_alone_say_how_many_one_host_takes() -> None:
    """Two beside node 0, whatever else: eight processors each, and there are sixteen."""
    built = stated(fleet(1), [(upf(), 3)])
    assert solve(Portfolio(CpSat()), built.problem, time_limit=LIMIT, seed=0).solver == "counting"
    two = stated(fleet(1), [(upf(), 2)])
    assert solve(Portfolio(CpSat()), two.problem, time_limit=LIMIT, seed=0).hosts is not None


def test_what_cannot_be_served_together_becomes_a_cut() -> None:
    """Each role alone fits once, and the sums fit, but no node has room for both."""
    nodes = [
        Node("h", "h", {}),
        Node("n0", "h", {"VCPU": 5}, "h"),
        Node("n1", "h", {"VCPU": 5}, "h"),
    ]
    roles = [(Role("a", {"VCPU": 3}), 2), (Role("b", {"VCPU": 4}), 1)]
    built = stated(nodes, roles)
    assigned = built.problem.proof
    assert assigned is not None
    first = Greedy().solve(built.problem, time_limit=LIMIT, seed=0)
    assert first.hosts is not None, "sums and counts allow it"
    with pytest.raises(WrongAnswer, match="devices of h cannot serve the members there"):
        verify(built, first.hosts)
    found = solve(Portfolio(CpSat()), built.problem, time_limit=LIMIT, seed=0)
    assert found.verdict is Verdict.INFEASIBLE
    (learned,) = learn_cuts(
        built.problem,
        assigned,
        first.hosts,
        assigned.assign(built.problem.role_of, built.problem.to_place, first.hosts).conflicts[0],
    ).cuts
    assert learned == NeverTogether(hosts=frozenset({0}), counts=(("a", 2), ("b", 1)))
    with_cut = replace(built.problem, cuts=(learned,))
    assert not satisfies(with_cut, first.hosts[None, :])[0]
    assert loads(dumps(with_cut)).cuts == (learned,)
    assert Exhaustive().solve(with_cut, time_limit=LIMIT, seed=0).verdict is Verdict.INFEASIBLE


def test_a_pool_is_counted_once_however_many_hosts_draw_on_it() -> None:
    nodes = [
        *(Node(f"h{n}", f"h{n}", {"VCPU": 8}) for n in range(3)),
        Node("pool", None, {"DISK": 250}, lends_to=("h0", "h1", "h2")),
    ]
    role = Role("db", {"VCPU": 1, "DISK": 100})
    two, three = (stated(nodes, [(role, count)]).problem for count in (2, 3))
    found = solve(Portfolio(CpSat()), two, time_limit=LIMIT, seed=0)
    assert found.verdict is Verdict.FEASIBLE
    assert refuted(three), "counting alone knows"
    assert three.cuts == (Pooled(hosts=frozenset({0, 1, 2}), amounts=(("db", 100),), limit=250),)


def test_two_pools_do_not_add_up_for_one_member() -> None:
    """150 are left of the sum, and no pool has 60 more: only a joint proof sees that."""
    nodes = [
        *(Node(f"h{n}", f"h{n}", {"VCPU": 8}) for n in range(3)),
        *(Node(f"pool{n}", None, {"DISK": 100}, lends_to=("h0", "h1", "h2")) for n in range(2)),
    ]
    built = stated(nodes, [(Role("db", {"VCPU": 1, "DISK": 60}), 3)])
    found = solve(Portfolio(CpSat()), built.problem, time_limit=LIMIT, seed=0)
    assert found.verdict is Verdict.INFEASIBLE


def test_a_pool_is_its_own_for_volumes_and_lends_beside() -> None:
    """Of two pools that share with each other's rows, the servers need the smaller one."""
    need = frozenset({"T"})
    nodes = [
        Node("h", "h", {"VCPU": 1}),
        Node("large", None, {"DISK": 10}, lends_to=("h", "small")),
        Node("small", None, {"DISK": 4}, traits=need, lends_to=("h", "large")),
    ]
    disk = Group("disk", {"DISK": 2}, required=(need,))
    server = Role("s", {"VCPU": 1}, groups=(disk,))
    volume = Role("v", {"DISK": 8}, kind=MemberKind.VOLUME)
    built = build(asked([(server, 1), (volume, 1)]), snapshot(nodes))
    assert built.problem.cuts == ()
    found = solve(Exhaustive(), built.problem, time_limit=LIMIT, seed=0)
    assert found.hosts is not None
    assert {place.host for place in places(built, found.hosts).values()} == {"h", "large"}
    more = build(asked([(server, 1), (volume, 1), (replace(volume, name="w"), 1)]), snapshot(nodes))
    assert refuted(more.problem)


def test_places_name_who_serves_each_group() -> None:
    built = stated(fleet(1), [(upf(), 1)])
    (place,) = places(built, [0]).values()
    assert place.allocations == {
        "h0": {"MEMORY_MB": 512},
        "h0-numa0": {"VCPU": 8},
        "h0-pf0": {"SRIOV_NET_VF": 2},
        "h0-pf1": {"SRIOV_NET_VF": 2},
    }
    assert place.groups == {"a": "h0-pf0", "b": "h0-pf1"}


@pytest.mark.parametrize(
    ("slot", "wrong", "fault"),
    [
        (0, "h1", "512 MEMORY_MB from h1"),
        (1, "h0-numa1", "of another subtree than the member's own resources"),
        (2, "h0-pf1", "2 SRIOV_NET_VF with CUSTOM_PHYSNET_A from h0-pf1"),
    ],
    ids=["of-another-host", "beside-the-wrong-node", "on-the-wrong-network"],
)
def test_a_search_that_errs_is_caught(slot: int, wrong: str, fault: str) -> None:
    built = stated(fleet(2), [(upf(), 1)])
    problem, proof = built.problem, built.problem.proof
    assert proof is not None
    rows = np.array([0])
    givers = list(proof.assign(problem.role_of, problem.to_place, rows).providers[0])
    assert not list(device_faults(problem, proof, rows, {0: tuple(givers)}))
    givers[slot] = proof.devices.position_of[wrong]
    faults = list(device_faults(problem, proof, rows, {0: tuple(givers)}))
    assert any(fault in one for one in faults), faults
    assert list(device_faults(problem, proof, rows, {}))


def test_taking_too_much_of_one_device_is_caught() -> None:
    built = stated(fleet(1), [(upf(isolate=True), 2)])
    problem, proof = built.problem, built.problem.proof
    assert proof is not None
    rows = np.array([0, 0])
    givers = proof.assign(problem.role_of, problem.to_place, rows).providers
    poor = replace(proof, devices=replace(proof.devices, free=proof.devices.free // 4))
    faults = list(device_faults(problem, poor, rows, givers))
    assert any("taken 16, free 4" in one for one in faults), faults


@given(seed=st.integers(0, 10**6))
def test_an_instance_keeps_its_devices(seed: int) -> None:
    nodes, roles = random_forest(seed)
    built = stated(nodes, roles)
    again = loads_request(dumps_request(built))
    assert dumps_request(again) == dumps_request(built)
    first, second = (
        solve(Portfolio(CpSat()), one.problem, time_limit=LIMIT, seed=0) for one in (built, again)
    )
    assert first.verdict is second.verdict
    assert (first.hosts is None) == (second.hosts is None)
    if first.hosts is not None and second.hosts is not None:
        assert places(built, first.hosts) == places(again, second.hosts)


# --- what it costs ---------------------------------------------------------------------------


def children(count: int, per: int) -> list[Node]:
    top = Node("h", "h", {"VCPU": 64})
    return [top, *(Node(f"d{n}", "h", {"VF": per}, "h") for n in range(count))]


def many(count: int, **more: object) -> Role:
    groups = tuple(Group(f"g{n}", {"VF": 1}) for n in range(count))
    return Role("x", {"VCPU": 1}, groups=groups, **more)  # type: ignore[arg-type]  # fields of a role


def under_numa(count: int, groups: int) -> tuple[list[Node], Role]:
    nodes = [Node("h", "h", {"VCPU": 64})]
    for numa in ("n0", "n1"):
        nodes.append(Node(numa, "h", {"CPU": 8}, "h"))
        nodes += [Node(f"{numa}d{n}", "h", {"VF": 1}, numa) for n in range(count // 2)]
    role = many(groups)
    cpu = Group("cpu", {"CPU": 4})
    names = frozenset({"cpu", *(one.name for one in role.groups)})
    return nodes, replace(role, groups=(cpu, *role.groups), same_subtree=(names,))


SEARCHES = {
    "8-children-6-groups": (children(8, 1), many(6), 1),
    "8-children-9-groups": (children(8, 1), many(9), 1),
    "64-children-16-groups": (children(64, 1), many(16), 4),
    "64-children-16-groups-isolated": (children(64, 2), many(16, isolate=True), 4),
    "64-children-16-groups-one-too-many": (children(63, 1), many(16), 4),
    "64-children-16-groups-one-node": (*under_numa(64, 16), 4),
    "30-children-16-groups-one-node": (*under_numa(30, 16), 1),
}


@pytest.mark.parametrize("search", sorted(SEARCHES))
def test_equal_devices_do_not_explode(search: str) -> None:
    """Far below a second of processor time; trying every device in every order takes ages."""
    nodes, role, count = SEARCHES[search]
    started = time.process_time()
    built = stated(nodes, [(role, count)])
    solve(Portfolio(CpSat()), built.problem, time_limit=LIMIT, seed=0)
    assert time.process_time() - started < 0.5


def test_four_members_on_a_thousand_hosts() -> None:
    nodes = fleet(1_000)
    stated(nodes[:5], [(upf(), 1)])
    started = time.process_time()
    built = stated(nodes, [(upf(), 4)])
    outcome = solve(Portfolio(CpSat()), built.problem, time_limit=LIMIT, seed=0)
    assert outcome.hosts is not None
    verify(built, outcome.hosts)
    assert time.process_time() - started < 0.5
