"""Explanations of random infeasible problems, judged by the exhaustive solver.

Setting all named conflicts aside, while policies mean what they mean in the whole, makes the
problem feasible, and no proper part of the collection does; within each conflict every proper
subset can hold; each relaxation, applied, is feasible.
"""

import itertools
from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.seeds import cases

from moorage.domain.explain import Element, EnsembleChange, Stage
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.requests import EnsembleRequest
from moorage.engine.explain.conflicts import any_placement
from moorage.engine.explain.elements import elements, part_of, without_elements
from moorage.engine.explain.refusal import RefusalExplanation, explain
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.problem import Problem, Verdict
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import random_built

CHUNKS, SEEDS = cases(4, 200), 40


def feasible(problem: Problem) -> bool:
    outcome = Exhaustive().solve(any_placement(problem), time_limit=SECOND, seed=0)
    return outcome.verdict is Verdict.FEASIBLE


def explained(built: BuiltProblem) -> RefusalExplanation:
    return explain(built, Portfolio(CpSat()), remaining=lambda: 30.0)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_conflicts_are_minimal_and_enough_and_relaxations_work(chunk: int) -> None:
    judged = 0
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        built = random_built(seed)
        if feasible(built.problem):
            continue
        found = explained(built)
        assert found.verdict == "infeasible", seed
        _check_collection(built, found, seed)
        for conflict in found.conflicts:
            assert conflict.minimal, seed
            assert len(conflict.needs) == len(conflict.elements)
            assert all(conflict.needs), seed
            _check_minimal(built, conflict.elements, seed)
        for one in found.relaxations:
            changed = build_on_terrain(applied(built.request, one.change), built.terrain)
            assert feasible(changed.problem), f"seed {seed}: {one.change}"
        judged += 1
    assert judged


def _check_collection(built: BuiltProblem, found: RefusalExplanation, seed: int) -> None:
    parts = [frozenset(one.elements) for one in found.conflicts]
    assert sum(map(len, parts)) == len(frozenset[Element]().union(*parts)), f"{seed}: overlap"
    for size in range(len(parts) + 1):
        for some in itertools.combinations(parts, size):
            aside = frozenset[Element]().union(*some)
            rest = part_of(built, aside, built.policy_view).problem
            assert feasible(rest) == (size == len(parts)), seed


def _check_minimal(built: BuiltProblem, core: tuple[Element, ...], seed: int) -> None:
    others = frozenset(elements(built)) - set(core)
    assert not feasible(without_elements(built, others).problem), (
        f"seed {seed}: {core} is no conflict"
    )
    for one in core:
        assert feasible(without_elements(built, others | {one}).problem), (
            f"seed {seed}: {one} unneeded"
        )


def applied(request: EnsembleRequest, change: EnsembleChange) -> EnsembleRequest:
    """Apply a change the way a caller would who only reads what it says."""
    if change.subject == "policy":
        return replace(
            request,
            policies=tuple(
                (
                    replace(one, weight=1)
                    if change.field == "strength"
                    else replace(
                        one,
                        parameters=MappingProxyType({**one.parameters, change.field: change.after}),
                    )
                )
                if one.name == change.name
                else one
                for one in request.policies
            ),
        )
    if change.field == "count":
        assert isinstance(change.after, int)
        mine = sorted(m for m in request.members if m.role == change.name)
        moving = [m for m in mine if m not in request.fixed]
        gone = set(moving[len(moving) - max(len(mine) - change.after, 0) :])
        more = range(mine[-1].index + 1, mine[-1].index + 1 + change.after - len(mine))
        members = (*request.members, *(MemberName(change.name, i) for i in more))
        return replace(request, members=tuple(m for m in members if m not in gone))
    assert isinstance(change.after, list)
    after = [frozenset(text.split("|")) for text in change.after]
    value = tuple(after) if change.field != "forbidden" else frozenset[str]().union(*after)
    roles = tuple(
        replace(role, **{change.field: value}) if role.name == change.name else role  # type: ignore[arg-type]
        for role in request.roles
    )
    return replace(request, roles=roles)


def test_every_stage_that_a_fleet_can_cause_is_seen() -> None:
    stages = set()
    for seed in range(120):
        built = random_built(seed)
        if not feasible(built.problem):
            stages.add(explained(built).stage)
    assert stages == {Stage.STATIC, Stage.CAPACITY, Stage.POLICY}
