"""Conflicts that are called minimal, with each part asked as a request of its own.

An exhaustive search judges the parts.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, combinations
from types import MappingProxyType

import pytest
from tests.seeds import cases

from moorage.domain.ensembles import Role
from moorage.domain.explain import Element
from moorage.domain.period import SECOND
from moorage.domain.requests import EnsembleRequest
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.explain.conflicts import any_placement
from moorage.engine.explain.elements import elements
from moorage.engine.explain.refusal import explain
from moorage.engine.joint.build import BuiltProblem, build, build_on_terrain
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import (
    PARAMETERS,
    Host,
    random_built,
    request,
    statement,
    terrain,
)
from moorage.testing.trees import random_members, snapshot

Build = Callable[[EnsembleRequest], BuiltProblem]
Case = tuple[BuiltProblem, Build]
EVEN = MappingProxyType({name: PARAMETERS[name] for name in ("spread", "fence", "ban")})
"""The policies of which one changes what another means."""


def of_hosts(seed: int) -> Case:
    built = random_built(seed, partial=seed % 3 == 0)
    return built, lambda one: build_on_terrain(one, built.terrain)


def of_even_domains(seed: int) -> Case:
    built = random_built(seed, parameters=EVEN, hosts=4, members=4, policies=3)
    return built, lambda one: build_on_terrain(one, built.terrain)


def _uneven(dice: random.Random) -> Mapping[str, object]:
    counted = {"fenced_domains": "count"} if dice.random() < 0.3 else {}
    return {"level": dice.choice(("host", "rack")), "max_skew": dice.choice((0, 0, 1)), **counted}


def of_narrowed_domains(seed: int) -> Case:
    """Traits and aggregates of most roles, fences and bans narrow what a required skew counts."""
    dice = random.Random(seed)
    known = {**EVEN, "spread": _uneven}
    drawn = random_built(seed, parameters=known, members=4, policies=3, fixed=0.05)

    def narrowed(role: Role) -> Role:
        which, trait = dice.random(), frozenset({dice.choice(("CUSTOM_A", "CUSTOM_B"))})
        role = replace(
            role,
            required=(trait,) if which < 0.4 else (),
            forbidden=trait if 0.4 < which < 0.6 else frozenset(),
        )
        aggregate = frozenset({dice.choice(("agg-1", "agg-2"))})
        return replace(role, member_of=(aggregate,)) if dice.random() < 0.3 else role

    request = replace(
        drawn.request,
        roles=tuple(map(narrowed, drawn.request.roles)),
        policies=tuple(replace(one, weight=None) for one in drawn.request.policies),
    )

    def ask(one: EnsembleRequest) -> BuiltProblem:
        return build_on_terrain(one, drawn.terrain)

    return ask(request), ask


def of_fenced_slices(seed: int) -> Case:
    built = random_built(seed, parameters=EVEN, hosts=3, members=4, servers=1 + seed % 4)
    return built, lambda one: build_on_terrain(one, built.terrain)


def of_slices(seed: int) -> Case:
    built = random_built(seed, hosts=3, members=4, policies=3, servers=1 + seed % 4)
    return built, lambda one: build_on_terrain(one, built.terrain)


def of_devices(seed: int) -> Case:
    nodes, request, topology = random_members(seed)
    # Some ask for what no provider has.
    roles = tuple(
        replace(one, required=(*one.required, frozenset({"T", "U"} if seed % 4 else {"V"})))
        if one.resources and (seed + number) % 5 == 0
        else one
        for number, one in enumerate(request.roles)
    )
    ledger = snapshot(nodes, topology)
    built = build(replace(request, roles=roles), ledger)

    def ask(one: EnsembleRequest) -> BuiltProblem:
        # Nobody can ask for members that take nothing.
        takes = all(each.resources or each.groups for each in one.every_choice)
        return build(one, ledger) if takes else build_on_terrain(one, built.terrain)

    return built, ask


def feasible(built: BuiltProblem) -> bool | None:
    """None: the proof of devices gives up before every assignment is tried."""
    bare = any_placement(built.problem)
    for solver in (Exhaustive(), Portfolio(CpSat())):
        found = solve(solver, bare, time_limit=60 * SECOND, seed=0)
        if found.verdict is not Verdict.UNKNOWN:
            return found.verdict is Verdict.FEASIBLE
    return None


def asking(request: EnsembleRequest, part: frozenset[Element]) -> EnsembleRequest:
    """The request that asks for a part only."""
    return replace(
        request,
        roles=tuple(_asking_of(role, part) for role in request.roles),
        policies=tuple(
            one for one in request.policies if one.required and Element("policy", one.name) in part
        ),
    )


def _asking_of(role: Role, part: frozenset[Element]) -> Role:
    name, bare = role.name, Role("", MappingProxyType({}))
    of = {
        "resources": ("resources",),
        "traits": ("required", "forbidden", "root_required"),
        "aggregates": ("member_of",),
        "devices": ("groups", "same_subtree", "isolate"),
    }
    gone = [
        field for kind, fields in of.items() if Element(kind, name) not in part for field in fields
    ]
    changes = {field: getattr(bare, field) for field in gone}
    return replace(
        role, **changes, alternatives=tuple(replace(one, **changes) for one in role.alternatives)
    )


def proper_parts(core: tuple[Element, ...]) -> Iterator[frozenset[Element]]:
    sizes = (combinations(core, size) for size in range(len(core)))
    yield from map(frozenset, chain.from_iterable(sizes))


@pytest.mark.parametrize(
    ("case", "seeds"),
    [
        (of_hosts, cases(50, 150)),
        (of_even_domains, cases(50, 150)),
        (of_narrowed_domains, cases(50, 150)),
        (of_slices, cases(50, 150)),
        (of_fenced_slices, cases(50, 150)),
        (of_devices, cases(20, 60)),
    ],
)
def test_every_part_of_a_minimal_conflict_is_granted_alone(
    case: Callable[[int], Case], seeds: int
) -> None:
    said: Counter[bool] = Counter()
    kinds: set[str] = set()
    for seed in range(seeds):
        built, ask = case(seed)
        if feasible(built) is not False:
            continue
        found = explain(built, Portfolio(CpSat()), remaining=lambda: 60.0)
        for conflict in found.conflicts:
            core = conflict.elements
            assert set(core) <= set(elements(built))
            assert feasible(ask(asking(built.request, frozenset(core)))) is not True, (seed, core)
            said[conflict.minimal] += 1
            kinds |= {one.kind for one in core}
            for part in proper_parts(core) if conflict.minimal else ():
                assert feasible(ask(asking(built.request, part))) is not False, (seed, core, part)
    assert said[True] > 20 * said[False], said
    assert {"policy", "resources"} <= kinds


@pytest.mark.parametrize("case", [of_hosts, of_even_domains, of_narrowed_domains])
def test_no_request_that_asks_for_a_conflict_and_more_is_granted(
    case: Callable[[int], Case],
) -> None:
    """Also where what is asked besides narrows what a skew of the conflict counts."""
    told = 0
    for seed in range(cases(80, 300)):
        built, ask = case(seed)
        if feasible(built) is not False:
            continue
        left = set(elements(built))
        for conflict in explain(built, Portfolio(CpSat()), remaining=lambda: 60.0).conflicts:
            told += 1
            core = frozenset(conflict.elements)
            for more in proper_parts(tuple(sorted(left - core, key=str))):
                part = core | more
                assert feasible(ask(asking(built.request, part))) is False, (seed, core, more)
            left -= core
    assert told


def test_a_skew_that_the_traits_make_possible_is_no_conflict() -> None:
    """All racks together are uneven, the two with the trait are even: the room there is short."""
    racks = [Domain(one, "rack") for one in ("r0", "r1", "r2")]
    stands = [Attachment(f"h{n}", f"r{n}") for n in range(3)]
    topology = Topology.build({"location": ("rack",)}, racks, stands)
    fast = frozenset({"FAST"})
    hosts = [Host("h0", {"VCPU": 9}, traits=fast), Host("h1", {"VCPU": 1}, traits=fast)]
    fleet = terrain([*hosts, Host("h2", {"VCPU": 9})], topology)
    even = statement("even", "spread", "a", level="rack", max_skew=0)
    wanted = request({"a": (4, {"VCPU": 1})}, [even])
    (role,) = wanted.roles
    built = build_on_terrain(replace(wanted, roles=(replace(role, required=(fast,)),)), fleet)
    (conflict,) = explain(built, Portfolio(CpSat()), remaining=lambda: 60.0).conflicts
    named = {str(one) for one in conflict.elements}
    assert named == {"resources a", "traits a", "policy even"}
    # Without traits, the policy alone is refused, over three racks.
    assert not conflict.minimal


def test_a_skew_that_is_refused_with_and_without_the_ban_is_the_conflict() -> None:
    """Three members are not even over two hosts, and not over four: the ban is not to blame."""
    old = frozenset({"OLD"})
    hosts = [Host(f"h{n}", {"VCPU": 8}, traits=old if n > 1 else frozenset()) for n in range(4)]
    banned = statement("no-old", "ban", "a", traits=["OLD"])
    even = statement("even", "spread", "a", level="host", max_skew=0)
    wanted = request({"a": (3, {"VCPU": 1})}, [banned, even])
    built = build_on_terrain(wanted, terrain(hosts, Topology.build({}, [], [])))
    (conflict,) = explain(built, Portfolio(CpSat()), remaining=lambda: 60.0).conflicts
    assert conflict.elements == (Element("policy", "even"),)
    assert conflict.minimal
