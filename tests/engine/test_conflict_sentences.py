"""What conflicts say: numbers that contradict, of one kind of thing, and no empty words."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from benchmarks.joint.draft import NotPlantable
from benchmarks.joint.families import make
from benchmarks.joint.fleet import Fleet, make_fleet, snapshot_of
from benchmarks.joint.refusals import REFUSALS

from moorage.domain.ensembles import MemberKind, Role
from moorage.domain.explain import Conflict, Element, EnsembleChange
from moorage.domain.period import SECOND
from moorage.domain.requests import EnsembleRequest
from moorage.domain.topology import EMPTY
from moorage.engine.explain.conflicts import any_placement
from moorage.engine.explain.refusal import RefusalExplanation, explain
from moorage.engine.joint.build import BuiltProblem, build, build_on_terrain
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.state.snapshot import Snapshot
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import PARAMETERS, Host, random_built, request, statement, terrain
from moorage.testing.trees import asked, random_members, snapshot

SEEDS = 60
EVEN = "cannot be even"
LEADS = re.compile(
    r"^(disabled |servers on )?(hosts|racks|zones|power:feeds|servers|providers|places)"
    r" (that|with room for one|in the aggregates of|with the devices of one|usable for|for) "
)
LEVELS = re.compile(r"^((?:power:)?(?:zone|rack|feed|host|server))s usable for ")


def explained(built: BuiltProblem) -> RefusalExplanation:
    return explain(built, Portfolio(CpSat()), remaining=lambda: 60.0)


def of_hosts() -> Iterator[BuiltProblem]:
    yield from (random_built(seed) for seed in range(SEEDS))


def of_each_policy() -> Iterator[BuiltProblem]:
    """Requests of which every policy is of one type."""
    for name, parameters in PARAMETERS.items():
        known = {name: parameters}
        yield from (
            random_built(seed, parameters=known, fixed=0.0, partial=seed % 2 == 0)
            for seed in range(SEEDS // 2)
        )


def of_slices() -> Iterator[BuiltProblem]:
    yield from (random_built(seed, servers=2, fixed=0.0) for seed in range(SEEDS))


def of_devices() -> Iterator[BuiltProblem]:
    for seed in range(SEEDS):
        nodes, wanted, topology = random_members(seed)
        yield build(wanted, snapshot(nodes, topology))


@pytest.mark.parametrize("problems", [of_hosts, of_each_policy, of_slices, of_devices])
def test_a_conflict_says_why_its_parts_exclude_each_other(problems: Iterator[BuiltProblem]) -> None:
    told: Counter[str] = Counter()
    for built in problems():  # type: ignore[operator]  # a function that makes them
        for conflict in explained(built).conflicts:
            check(built, conflict)
            told.update("words" if one.have is None else "number" for one in conflict.facts)
    # Most conflicts are shown by a number.
    assert told["number"] > 2 * told["words"], told


def check(built: BuiltProblem, conflict: Conflict) -> None:
    texts = [*conflict.needs, *(one.text for one in conflict.facts)]
    for text in texts:
        assert text == " ".join(text.split()), text
        assert not re.search(r"with (for|or)\b|with ,|\[\]|, ,|\bof for\b|\(\)", text), text
        assert not text.startswith((",", ";")), text
    # What is told without a number needed leads to what contradicts a need.
    assert any(one.have is None or one.needed or EVEN in one.text for one in conflict.facts), (
        conflict
    )
    slices = {role.name for role in built.request.roles if role.kind == MemberKind.SLICE}
    for fact in conflict.facts:
        if fact.have is None:
            assert re.search(
                r"cannot be|ruled out|^the largest host gives one server ", fact.text
            ), fact
        elif fact.needed is None:
            assert EVEN in fact.text or LEADS.search(fact.text), fact
        else:
            assert 0 <= fact.have < fact.needed, fact
        noun = LEVELS.match(fact.text)
        if noun and fact.needed and fact.needed > 1 and not built.standing:
            assert any(f"{fact.needed} {noun[1]}" in need for need in conflict.needs), conflict
        if noun and noun[1] == "host" and fact.needed == 1 and len(conflict.elements) == 1:
            named = fact.text.partition(" for ")[2].split(" and ")
            assert not set(named) <= slices or conflict.elements[0].kind == "policy", conflict
        if (took := re.match(r"([A-Z_]+) (?:free on|of) ", fact.text)) and fact.needed:
            assert any(took[1] in need for need in conflict.needs), conflict


@pytest.fixture(scope="module")
def cloud() -> tuple[Fleet, Snapshot]:
    fleet = make_fleet(300, load=0.5, seed=7)
    return fleet, snapshot_of(fleet)


@pytest.mark.parametrize("family", REFUSALS)
def test_every_family_of_refusals_is_told_by_numbers_or_by_what_excludes_what(
    family: str, cloud: tuple[Fleet, Snapshot]
) -> None:
    fleet, ledger = cloud
    made = 0
    for seed in range(6):
        try:
            instance = make(family, fleet, 30, seed)
        except NotPlantable:
            continue
        made += 1
        built = build(instance.request, ledger)
        for conflict in explained(built).conflicts:
            check(built, conflict)
            for fact in conflict.facts:
                assert "ruled out" not in fact.text, conflict
    assert made


def test_two_policies_that_exclude_each_other_need_no_number_of_the_fleet() -> None:
    fleet = terrain([Host(f"h{n}", {"VCPU": 9}) for n in range(5)], EMPTY)
    near, far = statement("near", "affinity", "a"), statement("far", "spread", "a", min_domains=3)
    built = build_on_terrain(request({"a": (4, {"VCPU": 1})}, [near, far]), fleet)
    (conflict,) = explained(built).conflicts
    assert [one.text for one in conflict.facts] == ["4 x a cannot be in 1 host and in 3 hosts"]


def test_what_is_left_is_counted_and_not_what_there_is() -> None:
    """Two racks would do, but one of them has no room for the size."""
    hosts = [Host("h0", {"VCPU": 9}), Host("h1", {"VCPU": 2})]
    racks = statement("racks", "spread", "a", min_domains=2)
    built = build_on_terrain(request({"a": (2, {"VCPU": 3})}, [racks]), terrain(hosts, EMPTY))
    (conflict,) = explained(built).conflicts
    assert [str(one) for one in conflict.elements] == ["resources a", "policy racks"]
    assert [one[:3] for one in conflict.facts] == [("hosts usable for a", 1, 2)]


def test_every_alternative_is_named_and_one_without_traits_says_any() -> None:
    second = Role("a", {"VCPU": 6}, required=(frozenset({"CUSTOM_B"}),))
    role = Role("a", {"VCPU": 5}, alternatives=(second,))
    hosts = [Host("h0", {"VCPU": 4}, traits=frozenset({"CUSTOM_B"}))]
    built = build_on_terrain(asked([(role, 2)]), terrain(hosts, EMPTY))
    (conflict,) = explained(built).conflicts
    assert conflict.elements == (Element("resources", "a"),)
    assert conflict.needs == ("5 VCPU (alternative 0) or 6 VCPU (alternative 1) for each of 2 x a",)
    other = replace(second, required=(frozenset({"CUSTOM_C"}),), resources={"VCPU": 1})
    first = Role("a", {"VCPU": 1}, forbidden=frozenset({"CUSTOM_B"}), alternatives=(other,))
    built = build_on_terrain(asked([(first, 1)]), terrain(hosts, EMPTY))
    found = explained(built)
    assert found.conflicts[0].needs == (
        "hosts without CUSTOM_B (alternative 0) or hosts with CUSTOM_C (alternative 1) for 1 x a",
    )
    assert [str(one.change) for one in found.relaxations] == [
        "a alternative 0 forbidden ['CUSTOM_B']->[]",
        "a alternative 1 required ['CUSTOM_C']->[]",
    ]


def test_an_alternative_that_a_trait_keeps_out_needs_what_it_is_described_with() -> None:
    second = Role("a", {"MEMORY_MB": 4096})
    first = Role("a", {"VCPU": 1}, required=(frozenset({"CUSTOM_A"}),), alternatives=(second,))
    fleet = terrain([Host("h1", {"VCPU": 8, "MEMORY_MB": 1024})], EMPTY)
    [one] = explained(build_on_terrain(asked([(first, 1)]), fleet)).conflicts
    needs = dict(zip(one.elements, one.needs, strict=True))
    said = "1 VCPU (alternative 0) or 4096 MEMORY_MB (alternative 1) for each of 1 x a"
    assert needs[Element("resources", "a")] == said


def test_a_change_of_an_alternative_helps_as_it_is_told() -> None:
    told = 0
    for seed in range(SEEDS):
        nodes, wanted, topology = random_members(seed)
        # What no provider has, so that there is something to leave out.
        absent = frozenset({"V"})
        wanted = replace(
            wanted,
            roles=tuple(
                replace(
                    role,
                    required=(absent,) if role.resources else (),
                    alternatives=tuple(
                        replace(one, required=(*one.required, absent)) for one in role.alternatives
                    ),
                )
                if role.alternatives
                else role
                for role in wanted.roles
            ),
        )
        ledger = snapshot(nodes, topology)
        for one in explained(build(wanted, ledger)).relaxations:
            change = one.change
            if change.subject != "member" or change.field not in {"required", "forbidden"}:
                continue
            told += change.alternative is not None
            changed = build(applied(wanted, change), ledger)
            found = solve(
                Portfolio(CpSat()), any_placement(changed.problem), time_limit=9 * SECOND, seed=0
            )
            assert found.verdict is Verdict.FEASIBLE, (seed, change)
    assert told


def applied(wanted: EnsembleRequest, change: EnsembleChange) -> EnsembleRequest:
    """The request with a change of a filter, as a caller applies it who reads what it says."""
    role = next(one for one in wanted.roles if one.name == change.name)
    assert isinstance(change.after, list)
    texts = [frozenset(text.split("|")) for text in change.after]
    value = tuple(texts) if change.field == "required" else frozenset[str]().union(*texts)
    choices, number = list(role.choices), change.alternative or 0
    choices[number] = replace(choices[number], **{change.field: value})  # type: ignore[arg-type]
    others = tuple(choices[1:]) if number else role.alternatives
    changed = replace(choices[0], alternatives=others)
    return replace(wanted, roles=tuple(changed if one is role else one for one in wanted.roles))
