"""Who makes room for leases that recur: they end once, and get back what is not needed."""

from collections.abc import Callable

import pytest
from tests.usecases.leases.conftest import World, described

from moorage.domain.describe import read_ensemble
from moorage.domain.effects import EffectKind
from moorage.domain.errors import SeriesInfeasible
from moorage.domain.period import FOREVER, HOUR, MINUTE, to_datetime
from moorage.domain.recurrence import parse_every
from moorage.testing.service import TENANT
from moorage.usecases.series.change import cancel_series
from moorage.usecases.series.create import create_series
from moorage.usecases.series.requests import Extent, SeriesRequest, SeriesResult

Make = Callable[..., World]


def series(here: World, vcpu: int, times: int = 3) -> SeriesResult:
    """Of one member, an hour each day from tomorrow on."""
    asked = SeriesRequest(
        name="daily",
        description=read_ensemble(described(vcpu=vcpu)),
        every=parse_every("daily"),
        duration=HOUR,
        extent=Extent(times=times),
        start=to_datetime(here.at(24)),
    )
    return create_series(here.service.env, TENANT, asked, here.naming())


def warned(here: World, server: str) -> list[EffectKind]:
    return [one.kind for one in here.service.store.effects(server)]


def test_a_preemptible_server_ends_before_the_first_of_them(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    made = series(here, 16)
    booking = here.booking(server)
    assert booking.period.end == here.at(24) - 5 * MINUTE
    assert booking.yields_to == made.leases[0].id
    assert warned(here, server) == [EffectKind.WARN, EffectKind.EVICT]
    cancel_series(here.service.env, TENANT, made.series.id)
    assert here.booking(server).period.end == FOREVER


def test_one_that_is_refused_warns_nobody_and_gives_all_back(world: Make) -> None:
    here = world(16)
    server = here.server(10, preemptible=True)
    here.lease(72, 73, vcpu=10)
    before = here.booking(server).period.end
    with pytest.raises(SeriesInfeasible):
        series(here, 16)
    assert here.booking(server).period.end == before
    told = [one for one in warned(here, server) if one is EffectKind.WARN]
    assert len(told) == 1, "for the lease alone"
