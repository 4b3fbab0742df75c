"""Devices: the joint search against brute force over every assignment, and what it costs."""

import itertools
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.ensembles import Role
from moorage.engine.problem import Verdict
from moorage.engine.proved import solve
from moorage.engine.verify import verify
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.trees import Needed, Node, edge_host, random_forest, stated, vf

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
        for (giver, name), amount in taken.items():
            if name not in self.nodes[giver].free or amount > self.nodes[giver].max_unit:
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
        while True:
            if one is top:
                return True
            if one.parent is None:
                return False
            one = self.nodes[one.parent]

    def fits(self, chosen: Sequence[Givers]) -> bool:
        taken: dict[tuple[str, str], int] = {}
        for givers in chosen:
            for giver, name, amount in (piece for slot in givers for piece in slot):
                taken[giver, name] = taken.get((giver, name), 0) + amount
        return all(
            amount <= self.nodes[giver].free.get(name, 0) for (giver, name), amount in taken.items()
        )


SOLVERS = {"exhaustive": Exhaustive(), "portfolio": Portfolio(CpSat()), "greedy": Greedy()}


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


def sharing(nodes: Sequence[Node]) -> bool:
    return sum(one.host is None for one in nodes) > 1
