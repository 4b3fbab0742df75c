"""A stay with an end is bounded as a lease is."""

from collections.abc import Callable

import pytest
from tests.usecases.leases.conftest import World

from moorage.domain.errors import LimitExceeded
from moorage.domain.period import DAY
from moorage.testing.service import TENANT
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.decide import decide_ensemble
from moorage.usecases.shared.limits import Limits

Make = Callable[..., World]
MONTH = 30 * 24.0


def test_no_stay_ends_beyond_the_horizon_and_nothing_is_written_of_one(world: Make) -> None:
    here = world(16, limits=Limits(horizon=30 * DAY))
    for preemptible in (False, True):
        with pytest.raises(LimitExceeded) as refused:
            here.ensemble(1, until=MONTH + 0.01, preemptible=preemptible)
        assert (refused.value.limit, refused.value.requested) == (30, 31)
    assert not here.service.store.ensembles(project_id=None)
    made = here.ensemble(1, until=MONTH)
    ask = DecisionOptions(until=here.at(MONTH + 1))
    with pytest.raises(LimitExceeded):
        decide_ensemble(here.service.env.in_dry_run(), TENANT, made.ensemble.id, ask, here.naming())
    here.ensemble(1)  # one without an end is another matter
