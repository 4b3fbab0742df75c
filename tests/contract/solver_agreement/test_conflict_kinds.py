"""Conflicts of servers, bare metal, volumes and ports, with their parts judged without the engine.

Fences and bans name nodes, pools, their domains and traits. A member that asks for no resources, as
in a part without them, is where the guide says: see `Bare`.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from tests.contract.solver_agreement.test_conflict_parts import asking, feasible, proper_parts
from tests.contract.solver_agreement.test_member_kinds import cost, possible
from tests.engine.test_devices import Givers, Oracle
from tests.seeds import cases

from moorage.domain.ensembles import MemberKind, Role
from moorage.domain.requests import EnsembleRequest
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import BuiltProblem, build, build_on_terrain
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import statement
from moorage.testing.trees import Node, random_members, snapshot

SEEDS = cases(60, 150)
NODE = "CUSTOM_NODE"


class Bare(Oracle):
    """The oracle, for members without resources as well.

    Providers count that have any of the classes for which the request asks. A volume or port is on
    one of them that has its traits; a server on a host where one, or a lender, has each.
    """

    def __init__(self, nodes: list[Node], request: EnsembleRequest) -> None:
        super().__init__(nodes, [])
        asked = {name for one in request.every_choice for name in one.resources}
        asked |= {
            name for one in request.every_choice for group in one.groups for name in group.resources
        }
        self.counted = [one for one in nodes if any(one.free.get(name) for name in asked)]

    def options(self, role: Role) -> Iterator[tuple[str, Givers]]:
        if role.resources:
            yield from super().options(role)
        elif role.of_one_provider:
            giving = (one for one in self.counted if self.gives_whole(one, role))
            yield from ((host, ((),)) for host in {one.host or one.name for one in giving})
        else:
            for host, givers in super().options(replace(role, required=())):
                reach = [one for one in self.counted if one.host == host or host in one.lends_to]
                if all(any(some & one.traits for one in reach) for some in role.required):
                    yield host, givers


def _named(dice: random.Random) -> Mapping[str, object]:
    found: dict[str, object] = {}
    if dice.random() < 0.8:
        found["domains"] = dice.sample(["r0", "r1", "z0", "h0", "h1", "pool0"], k=2)
    if not found or dice.random() < 0.4:
        found["traits"] = [dice.choice(("T", "U"))]
    return found


def drawn(seed: int) -> tuple[list[Node], BuiltProblem]:
    """A request of members of all kinds with one or two fences or bans."""
    dice = random.Random(seed)
    nodes, request, topology = random_members(seed)
    whom = [*(one.name for one in request.roles), "*"]
    fences = (
        replace(
            statement(f"f{n}", dice.choice(("fence", "ban")), dice.choice(whom)),
            parameters=_named(dice),
        )
        for n in range(dice.choice((1, 2)))
    )
    roles = tuple(
        replace(one, kind=MemberKind.BAREMETAL, resources=MappingProxyType({NODE: 1}))
        if one.of_nova and not (one.groups or one.alternatives) and dice.random() < 0.4
        else one
        for one in request.roles
    )
    if any(one.kind == MemberKind.BAREMETAL for one in roles):
        nodes = [
            replace(one, free={**one.free, NODE: 1})
            if one.host == one.name and dice.random() < 0.6
            else one
            for one in nodes
        ]
    policies = (*(replace(one, weight=None) for one in request.policies), *fences)
    wanted = replace(request, roles=roles, policies=policies)
    return nodes, build(wanted, snapshot(nodes, topology))


def test_conflicts_of_all_kinds_of_members_hold_and_their_parts_do_not() -> None:
    said: Counter[str] = Counter()
    for seed in range(SEEDS):
        nodes, built = drawn(seed)
        oracle, whole = Bare(nodes, built.request), built.request

        def granted(
            one: EnsembleRequest, oracle: Oracle = oracle, built: BuiltProblem = built
        ) -> bool:
            asked = build_on_terrain(one, built.terrain)
            return any(cost(asked, placed) is not None for placed in possible(oracle, asked))

        if granted(whole):
            assert feasible(built) is not False, seed
            continue
        for conflict in explain(built, Portfolio(CpSat()), remaining=lambda: 60.0).conflicts:
            core = conflict.elements
            assert not granted(asking(whole, frozenset(core))), (seed, core)
            assert conflict.minimal, (seed, core)
            for part in proper_parts(core):
                assert granted(asking(whole, part)), (seed, core, part)
            kinds = {one.name: one.type for one in whole.policies}
            kinds |= {one.name: str(one.kind) for one in whole.roles}
            said.update(kinds[one.name] for one in core)
            said["alternatives"] += any(
                one.alternatives and one.name == element.name
                for one in whole.roles
                for element in core
            )
    wanted = {"fence", "ban", "volume", "port", "baremetal", "server", "alternatives"}
    assert all(said[one] for one in wanted), said
