"""Cuts (what devices cannot serve) as CP-SAT constraints over the counts per host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.policies.primitives import NeverTogether, Pooled
    from moorage.solver.cpsat_model import Model


def add_cuts(model: Model) -> None:
    """Add every cut of the problem; hosts that are no candidates have no members."""
    for cut in model.numbers.never_together:
        _never_together(model, cut)
    for pool in model.numbers.pools:
        _pooled(model, pool)


def _never_together(model: Model, cut: NeverTogether) -> None:
    hosts = [row for row in model.rows.tolist() if row in cut.hosts]
    for group in [hosts] if cut.jointly else [[row] for row in hosts]:
        reached = []
        for role, number in cut.counts:
            counts = list(_counts(model, role, group))
            if not counts:
                break
            if len(cut.counts) == 1:
                model.cp.add(sum(counts) <= number - 1)
                break
            most = len(model.numbers.to_place)
            full = model.cp.new_bool_var("")
            model.cp.add(sum(counts) <= number - 1 + most * full)
            reached.append(full)
        if len(reached) == len(cut.counts):
            model.cp.add(sum(reached) <= len(reached) - 1)


def _pooled(model: Model, pool: Pooled) -> None:
    hosts = [row for row in model.rows.tolist() if row in pool.hosts]
    taken = [
        amount * count for role, amount in pool.amounts for count in _counts(model, role, hosts)
    ]
    if taken:
        model.cp.add(sum(taken) <= pool.limit)


def _counts(model: Model, role: str, hosts: Iterable[int]) -> Iterable[Any]:
    """The variables that count placed members of a role on these hosts."""
    problem = model.numbers.problem
    for kind, variables in zip(model.numbers.interchangeable, model.count, strict=True):
        if problem.roles[int(problem.role_of[kind[0]])] == role:
            yield from (variables[row] for row in hosts if row in variables)
