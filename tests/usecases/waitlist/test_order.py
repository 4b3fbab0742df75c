"""The promised order, under random schedules: whoever gets something, nobody before could have it.

One host with a few units, so what fits is plain arithmetic and the promise can be checked by trying
every start. Who is granted in a step is compared with those who wait after it and stand before.
"""

import contextlib
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build, described, named

from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible
from moorage.domain.leases import LeaseState, Terms
from moorage.domain.period import FOREVER, HOUR, Period
from moorage.domain.waitlist import EntryState, WaitlistEntry
from moorage.testing.service import TENANT
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseRequest
from moorage.usecases.waitlist.enter import WaitRequest, create_or_wait
from moorage.usecases.waitlist.estimates import EstimateWorker
from moorage.usecases.waitlist.rounds import WaitlistWorker

UNITS = 3
FIRST, LAST = 10, 16
"""Hours in which windows start."""


@dataclass(frozen=True)
class Asked:
    """A lease of so many units; `waits` hours of starts, or None: granted now or refused."""

    start: int
    length: int
    units: int
    priority: int
    waits: int | None


REQUESTS = st.builds(
    Asked,
    start=st.integers(FIRST, LAST),
    length=st.integers(1, 4),
    units=st.integers(1, UNITS),
    priority=st.sampled_from((0, 0, 0, 5)),
    waits=st.sampled_from((None, 0, 0, 2)),
)
STEPS = st.lists(st.one_of(REQUESTS, st.just("look"), st.integers(0, 9)), min_size=4, max_size=14)
"""A request, a worker's round, or the end of the n-th lease there is."""


@dataclass
class Model:
    """The ledger as intervals of units."""

    world: World
    names: int = field(default=5000)

    def leases(self) -> dict[str, tuple[Period, int]]:
        """Those that are not over."""
        found = self.world.service.store.leases(project_id=None)
        return {
            one.id: (one.terms.period, one.units)
            for one in found
            if one.state is not LeaseState.CLOSED
        }

    def line(self) -> list[WaitlistEntry]:
        return list(self.world.service.store.waiting_entries(Period(0, FOREVER), 100))

    def ask(self, asked: Asked) -> None:
        self.names += 1
        world, start = self.world, self.world.at(asked.start)
        ask = LeaseRequest(
            name="l",
            terms=Terms(Period(start, start + asked.length * HOUR), priority=asked.priority),
            description=read_ensemble(described(members=asked.units)),
            any_priority=True,
        )
        naming, env = RequestIdentity(named(self.names)), world.service.env
        if asked.waits is None:
            with contextlib.suppress(Infeasible):
                create_lease(env, TENANT, ask, naming)
        else:
            wait = WaitRequest(latest=start + asked.waits * HOUR)
            create_or_wait(env, TENANT, ask, wait, naming)


def fits(there: dict[str, tuple[Period, int]], period: Period, units: int) -> bool:
    """Whether so many are free at every instant of a period: levels rise at starts alone."""
    at = [period.start, *(p.start for p, _ in there.values() if period.covers(p.start))]
    return all(
        sum(n for p, n in there.values() if p.covers(instant)) + units <= UNITS for instant in at
    )


def first_start(there: dict[str, tuple[Period, int]], one: WaitlistEntry, last: int) -> int | None:
    """The first hour up to `last` at which an entry fits, by trying each."""
    begin, length = one.terms.period.start, one.length
    hours = range(begin, last + 1, HOUR)
    return next((s for s in hours if fits(there, Period(s, s + length), one.units)), None)


def check_nobody_was_overtaken(
    before: dict[str, tuple[Period, int]], model: Model, order: list[WaitlistEntry]
) -> None:
    """Of those granted in a step, none had what an entry before it could have had."""
    after = model.leases()
    assert all(fits({k: v for k, v in after.items() if k != name}, *after[name]) for name in after)
    place = {one.id: number for number, one in enumerate(order)}
    priorities = {name: model.world.service.store.lease(name).terms.priority for name in after}
    fresh = after.keys() - before.keys()
    for number, one in enumerate(order):
        if one.id in after:
            continue
        behind = {
            name
            for name in fresh
            if place.get(name, len(order)) > number
            and (name in place or priorities[name] <= one.terms.priority)
        }
        if any(after[name][0].overlaps(one.whole) for name in behind):
            without = {name: one for name, one in after.items() if name not in behind}
            assert first_start(without, one, one.latest) is None, (one, behind)


@settings(max_examples=8)
@given(STEPS)
def test_nobody_gets_what_one_before_could_have_had(steps: list[Asked | str | int]) -> None:
    model = Model(build(UNITS))
    env = model.world.service.env
    worker = WaitlistWorker(env)
    try:
        for step in steps:
            before, order = model.leases(), model.line()
            if isinstance(step, Asked):
                model.ask(step)
            elif isinstance(step, int):
                if before:
                    cancel_lease(env, TENANT, sorted(before)[step % len(before)], None)
                continue
            else:
                worker.run_round()
                # Nobody is left who could be granted.
                for one in model.line():
                    assert first_start(model.leases(), one, one.latest) is None
            check_nobody_was_overtaken(before, model, order)
        worker.run_round()
        check_estimates(model)
    finally:
        model.world.service.close()


def check_estimates(model: Model) -> None:
    """Each is the earliest start beside those before it, in theirs."""
    EstimateWorker(model.world.service.env).run_round(model.line())
    there = model.leases()
    for one in model.line():
        assert one.state is EntryState.WAITING
        start = first_start(there, one, model.world.at(200))
        assert one.estimate is not None
        assert (one.estimate.start, one.estimate.proved) == (start, True)
        there[one.id] = (Period(one.estimate.start, one.estimate.end), one.units)
