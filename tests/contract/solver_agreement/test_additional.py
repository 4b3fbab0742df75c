"""How many more fit, against trying every number with the exhaustive solver."""

from collections.abc import Sequence

import pytest
from tests.seeds import cases

from moorage.domain.ensembles import Role
from moorage.domain.period import SECOND
from moorage.solver.cpsat import CpSat
from moorage.solver.exhaustive import Exhaustive, TooLarge
from moorage.solver.portfolio import Portfolio
from moorage.testing.problems import random_built
from moorage.usecases.decide.max_additional import _Search, count_additional
from moorage.usecases.decide.solution import VerifiedPlacement, solve_and_verify

MOST = 4
LIMIT = 20 * SECOND

SKEW_OF_NONE = 343
"""Two more fit where one does not: only whole rounds keep a skew of none."""


def truth(found: VerifiedPlacement, roles: Sequence[Role]) -> int | None:
    search = _Search(Exhaustive(), found, roles, most=MOST, time_limit=LIMIT)
    try:
        return max(n for n in range(MOST + 1) if n == 0 or search.fits(n))
    except TooLarge:
        return None


@pytest.mark.parametrize("chunk", [range(cases(50, 300)), (SKEW_OF_NONE,)])
def test_exact_numbers_are_exact_and_others_are_not_too_high(chunk: range) -> None:
    solver = Portfolio(CpSat())
    exact = 0
    for seed in chunk:
        found = solve_and_verify(
            solver, random_built(seed, hosts=4, members=3), time_limit=LIMIT, seed=0
        )
        if found is None:
            continue
        every = found.built.request.roles
        for roles in {*((role.name,) for role in every), tuple(role.name for role in every)}:
            asked = [role for role in every if role.name in roles]
            best = truth(found, asked)
            if best is None:
                continue
            told = count_additional(solver, found, asked, most=MOST, time_limit=LIMIT)
            exact += told.exact
            assert told.count == best if told.exact else told.count <= best, (seed, roles)
    assert exact
