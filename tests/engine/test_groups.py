"""Groups and policies between them: against every placement, by the policies' meanings."""

import random
from collections import Counter
from dataclasses import replace
from types import MappingProxyType

from tests.engine.test_alternatives import best
from tests.seeds import cases

from moorage.domain.ensembles import PolicyStatement, Selector
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Verdict
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.greedy import Greedy
from moorage.solver.portfolio import Portfolio
from moorage.testing.policy_checks import check_meaning, check_weaker_forms
from moorage.testing.problems import random_built, random_level
from moorage.testing.solver_checks import check_answer

CASES = cases(50, 150)
PATHS = (
    {"a": "g/0/w", "b": "g/1/w", "c": "h/w"},
    {"a": "g/0/w", "b": "g/0/d", "c": "g/1/w"},
    {"a": "s/g/0/w", "b": "s/g/1/w", "c": "l"},
    {"a": "s/0/g/w", "b": "s/1/g/w", "c": "s/1/d"},
)
SELECTORS = ("g", "g[0]", "g/1", "g/w", "h", "s", "s/g", "s/g[1]", "s[1]", "s/1/g", "s/g/w", "l")
SIDES = (
    [["g[0]"], ["g[1]", "h"]],
    [["g"], ["h"]],
    [["s/g[0]"], ["s/g[1]"], ["l"]],
    [["s[0]"], ["s/1/g"], ["s/d"]],
    [["g/w"], ["g/d", "l"]],
    [["g[0]", "ensemble:x"], ["g[1]"], ["ensemble:y", "h"]],
    [["s"], ["ensemble:x", "ensemble:y"]],
)
NEAR = (
    [["g"], ["ensemble:x"]],
    [["s/g", "h"], ["ensemble:x"], ["ensemble:y"]],
    [["g"], ["h"]],
    [["g/d", "l"], ["g/w"], ["ensemble:x"]],
    [["s/g[0]"], ["s/g[1]"], ["l"]],
    [["s/d", "h"], ["s/g", "g[1]"]],
)


def nested(seed: int, *, partial: bool = False) -> BuiltProblem:
    """A random problem whose roles are in groups, with policies of groups and between them."""
    built = random_built(seed, hosts=4, members=4, partial=partial)
    dice = random.Random(seed + 7)
    paths = dice.choice(PATHS)

    def renamed(name: MemberName) -> MemberName:
        return MemberName(paths[name.role], name.index)

    def selector(old: Selector) -> Selector:
        if old.member is not None:
            return Selector(member=renamed(old.member))
        return old if old.role is None else Selector(role=paths[old.role])

    def policy(old: PolicyStatement) -> PolicyStatement:
        chosen = dice.random()
        if chosen < 0.4:
            return replace(old, members=tuple(map(selector, old.members)))
        if chosen < 0.6:
            words = dice.sample(SELECTORS, k=dice.choice((1, 2, 3)))
            return replace(old, members=tuple(map(Selector.parse, words)), zip=False)
        members: tuple[Selector, ...]
        far = dice.choice((random_level(dice), {"min_distance": dice.randint(1, 3)}))
        if chosen < 0.7:
            near = dice.choice(NEAR)
            own = [name for side in near for name in side if ":" not in name]
            members = tuple(map(Selector.parse, own))
            far = dice.choice((random_level(dice), {"max_distance": dice.randint(0, 3)}))
            parameters = {**far, "between": near}
            return replace(old, type="proximity", members=members, zip=False, parameters=parameters)
        if chosen < 0.8:
            between: object = "groups"
            members = (Selector(everyone=True),)
        else:
            between = dice.choice(SIDES)
            own = [name for side in between for name in side if ":" not in name]
            members = tuple(map(Selector.parse, own))
        return replace(
            old,
            type="separation",
            members=members,
            zip=False,
            parameters={**far, "between": between},
        )

    request = built.request
    request = replace(
        request,
        roles=tuple(replace(role, name=paths[role.name]) for role in request.roles),
        members=tuple(map(renamed, request.members)),
        fixed=MappingProxyType({renamed(one): host for one, host in request.fixed.items()}),
        policies=tuple(map(policy, request.policies)),
        references=MappingProxyType(
            {
                name: frozenset(dice.sample(built.terrain.uuids, k=count))
                for name, count in (
                    ("x", 1),
                    ("y", dice.choice((0, min(2, len(built.terrain.uuids))))),
                )
            }
        ),
    )
    return build_on_terrain(request, built.terrain)


def test_the_answer_is_what_the_policies_mean() -> None:
    counts: Counter[bool] = Counter()
    for seed in range(CASES):
        built = nested(seed)
        check_meaning(built, seed)
        check_weaker_forms(built)
        if built.request.fixed:
            continue
        expected = best(built)
        found = Exhaustive().solve(built.problem, time_limit=SECOND, seed=0)
        assert (found.verdict is Verdict.FEASIBLE) == (expected is not None), seed
        counts[expected is not None] += 1
        if expected is not None:
            assert found.value == expected, seed
    assert min(counts.values()) > CASES // 15


def test_every_solver_agrees() -> None:
    for seed in range(CASES):
        built = nested(seed, partial=seed % 2 == 1)
        truth = Exhaustive().solve(built.problem, time_limit=SECOND, seed=0)
        check_answer(Greedy(), built, seed, exact=False, truth=truth)
        check_answer(CpSat(), built, seed, exact=True, truth=truth)
        check_answer(Portfolio(CpSat()), built, seed, exact=True, truth=truth)
