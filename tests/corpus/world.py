"""The whole application over a ledger in memory, with a clock that is set and ids that count."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import RLock
from typing import Final

from moorage.app import Monitoring, assemble
from moorage.client.fleet_file import read_fleet
from moorage.domain.fleet_expansion import expand
from moorage.domain.fleet_parts import parts
from moorage.http.wsgi import Application
from moorage.service_environment import make_environment, solver_in_this_process
from moorage.service_workers import background_work, plan_worker
from moorage.settings import configure, read
from moorage.store.settable_clock import SettableClock, create
from moorage.telemetry.instruments import Metrics
from moorage.testing.ledger_copy import private_ledger
from moorage.testing.service import NINE
from moorage.usecases.next_deadline import next_edge
from moorage.workers.simulated_time import SimulatedTime

_SETTINGS: Final = {
    "database": "sqlite://",
    "solve_time_limit": "1m",
    "workers": "1",
}
"""Time enough for every search, however busy the machine is: its end is then always a proof."""


@dataclass
class CountedIds:
    """Identifiers in the order of their making: those made later sort behind."""

    first: int = 1
    _ids: Iterator[int] = field(init=False)
    _salts: Iterator[int] = field(default_factory=partial(itertools.count, 1))
    """Counted apart, so that labels made of salts do not depend on how many ids there were."""

    def __post_init__(self) -> None:
        self._ids = itertools.count(self.first)

    def uuid(self) -> str:
        """See `Ids`."""
        return f"c0de0000-0000-4000-8000-{next(self._ids):012x}"

    def salt(self) -> str:
        """See `Ids`."""
        return f"{next(self._salts):032x}"


@dataclass(frozen=True, slots=True)
class World:
    """An application, and the ids of its fleet's providers."""

    app: Application
    fleet_ids: frozenset[str]


def _clock() -> SettableClock:
    """A simulation's clock at the instant where stories begin."""
    with NamedTemporaryFile(prefix="moorage-clock-") as file:
        create(Path(file.name), NINE)
        return SettableClock(file.name)  # it maps the file, which may go


@contextmanager
def opened(
    fleet: str | None, settings: Mapping[str, str], first_id: int = 1, *, judges: bool = False
) -> Iterator[World]:
    """A world of its own: a ledger with this fleet, and every dialect over it.

    With `judges` ensembles are judged whenever the clock is set.

    The stopwatch stands: no search reports progress, and nothing is given up for lateness.
    """
    clock = _clock()
    configured = configure(read({**_SETTINGS, **settings}, {}, files=()))
    # Without a clock's file this is none of the settings: every world is a simulation.
    moving = replace(configured.outward, move_servers="simulated")
    configured = replace(configured, outward=moving)
    store = private_ledger(clock, fleet or "")
    try:
        solver = solver_in_this_process(configured.pool.strategies)
        env = replace(
            make_environment(configured, store=store, solver=solver),
            ids=CountedIds(first_id),
            stopwatch=lambda: 0.0,
        )
        metrics = Metrics()
        plans = plan_worker(env, configured, metrics)
        assert plans is not None
        work = background_work(env, configured, metrics, plans, judges=judges)
        simulated = SimulatedTime(clock, partial(next_edge, env, plans.ends), work, RLock())
        monitoring = Monitoring(metrics, lambda: metrics.page({}), {"database": store.snapshot})
        known: set[str] = set()
        for part in parts(expand(read_fleet(fleet))) if fleet else ():
            known |= {one.uuid for one in part.providers} | {one.consumer.uuid for one in part.load}
        app = assemble(configured, env, monitoring, simulated=simulated)
        yield World(app, frozenset(known))
    finally:
        store.close()
