"""A series is granted whole, or nothing of it is: kill -9 at any point, and others at work."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random
from threading import Barrier, Event, Thread, get_ident
from time import sleep
from typing import Any

import pytest

from moorage.domain.changes import Changeset, Committed, PutSeries
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Busy, SeriesInfeasible
from moorage.domain.period import HOUR
from moorage.domain.recurrence import parse_every
from moorage.store import Ledger
from moorage.testing.ledger_copy import new_database
from moorage.testing.service import TENANT, SeededIds, Service
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.effect_dispatch import OutwardActions, carry_out
from moorage.usecases.environment import UseCaseEnvironment
from moorage.usecases.offers.expiry import give_up_offer
from moorage.usecases.series.change import cancel_series
from moorage.usecases.series.create import create_series
from moorage.usecases.series.kept_occurrences import KEPT
from moorage.usecases.series.requests import Extent, SeriesRequest, SeriesResult

FLEET = """
fleet: small
hosts:
  - {name: "n{n}", count: 2, inventories: {VCPU: 32}}
"""
MEMBERS = {"name": "a", "members": [{"name": "a", "count": 2, "resources": {"VCPU": 30}}]}
ID = "00000000-0000-4000-8000-00000000005e"


def asked(first: int = 7, times: int = 3) -> SeriesRequest:
    """Both hosts, each day from a day of December on."""
    return SeriesRequest(
        name="shop",
        description=read_ensemble(MEMBERS),
        every=parse_every("daily"),
        duration=10 * HOUR,
        extent=Extent(times=times),
        start=datetime.fromisoformat(f"2026-12-{first:02}T08:00"),
    )


def created(env: UseCaseEnvironment, *, given: bool = False) -> SeriesResult:
    naming = RequestIdentity(ID, "the same request") if given else RequestIdentity(env.ids.uuid())
    return create_series(env, TENANT, asked(), naming)


def hurried(env: UseCaseEnvironment) -> UseCaseEnvironment:
    """The same, where pauses are no time."""
    passed = [0.0]

    def pause(seconds: float) -> None:
        passed[0] += seconds

    return replace(env, stopwatch=lambda: passed[0], pause=pause)


class Watched:
    """The store, with commits of which somebody else hears first."""

    def __init__(self, store: Ledger, commit: Callable[[Changeset], Committed]) -> None:
        self._store = store
        self.commit = commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def opened(database: str, seed: int) -> Service:
    """Another process' service: its ids are its own."""
    found = Service(database=database)
    found.env = replace(found.env, ids=SeededIds(Random(seed)))
    return found


def killed(database: str, number: int, done: bool) -> None:  # noqa: FBT001 - a process' argument
    """Ask for a series, and die just before the commit of this number, or just after."""
    service = opened(database, 1)
    made: list[Changeset] = []

    def commit(changeset: Changeset) -> Committed:
        made.append(changeset)
        if len(made) == number and not done:
            os.kill(os.getpid(), signal.SIGKILL)
        found = service.store.commit(changeset)
        if len(made) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    store: Any = Watched(service.store, commit)
    created(replace(service.env, store=store), given=True)


@pytest.fixture
def database(tmp_path: Path) -> str:
    found = new_database(tmp_path)
    Service(FLEET, database=found).close()
    return found


@pytest.mark.process
@pytest.mark.parametrize(
    ("number", "done", "granted"),
    # Three are kept by a commit each; the fourth makes leases of all.
    [(3, False, 0), (4, False, 0), (4, True, 3)],
)
def test_killed_at_any_point_it_is_whole_or_nothing_is_left(
    database: str,
    number: int,
    done: bool,  # noqa: FBT001 - a case
    granted: int,
) -> None:
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=killed, args=(database, number, done))
    with warnings.catch_warnings():
        # The child opens what it needs anew; a fresh interpreter would take seconds to begin.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    process.join(200)
    assert process.exitcode == -signal.SIGKILL
    with closing(opened(database, 2)) as service:
        store = service.store
        assert len(store.leases(project_id=None)) == granted
        kept = store.offers(project_id=None, series_id=ID)
        assert len(kept) == (0 if granted else number - 1)
        assert store.offers(project_id=None, over=True) == []
        if number == 4 and not done:
            check_that_it_lapses(service)
        # The same request again gets the series, whatever the one before has left: once it is
        # seen that nobody makes it any more.
        assert len(created(hurried(service.env), given=True).leases) == 3


def check_that_it_lapses(service: Service) -> None:
    """What is kept goes without anybody doing anything, and all that was made for it."""
    store = service.store
    with pytest.raises(SeriesInfeasible):
        created(service.env)
    service.clock.pass_by(KEPT)
    made = created(service.env)
    assert len(made.leases) == 3
    while due := store.due_effects(1):
        carry_out(service.env, OutwardActions(), due[0])
    assert store.offers(project_id=None, series_id=ID) == []
    assert len(store.ensembles(project_id=None)) == 3
    cancel_series(service.env, TENANT, made.series.id)


def test_of_two_that_race_for_the_same_places_one_is_granted(database: str) -> None:
    found: list[object] = []
    start = Barrier(2)

    def ask(first: int) -> None:
        with closing(opened(database, first)) as service:
            naming = RequestIdentity(service.env.ids.uuid())
            start.wait()
            try:
                found.append(create_series(service.env, TENANT, asked(first, 4), naming))
            except SeriesInfeasible as refused:
                found.append(refused)

    threads = [Thread(target=ask, args=(first,)) for first in (7, 9)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(type(one).__name__ for one in found) == ["SeriesInfeasible", "SeriesResult"]
    with closing(Service(database=database)) as service:
        store = service.store
        assert len(store.leases(project_id=None)) == 4
        (series,) = store.all_series(project_id=None)
        assert store.offers(project_id=None, series_id=series.id) == []


def test_who_asks_for_the_same_meanwhile_waits_and_gets_it(database: str) -> None:
    """Whoever stopped waiting may ask again, and disturbs nothing."""
    with closing(Service(database=database)) as service:
        found: list[SeriesResult] = []
        others = [
            Thread(target=lambda: found.append(created(service.env, given=True))) for _ in range(4)
        ]
        waiting: set[int] = set()
        all_wait = Event()

        def pause(_seconds: float) -> None:
            waiting.add(get_ident())
            if len(waiting) == len(others):
                all_wait.set()
            sleep(0.01)

        def watched(changeset: Changeset) -> Committed:
            if not others[0].ident:
                for one in others:
                    one.start()
                assert all_wait.wait(60)
                with pytest.raises(Busy, match="is being made"):
                    created(service.env, given=True)
            return commit(changeset)

        commit = service.store.commit
        store: Any = Watched(service.store, watched)
        service.env = replace(service.env, pause=pause)
        found.append(created(replace(service.env, store=store), given=True))
        for one in others:
            one.join()
        check_once(service, found)


def test_who_asks_for_the_same_elsewhere_waits_and_gets_it(database: str) -> None:
    """Another process sees that ever more is kept."""
    with closing(opened(database, 1)) as here, closing(opened(database, 2)) as there:
        found: list[SeriesResult] = []
        second = Thread(target=lambda: found.append(created(there.env, given=True)))
        waits = Event()

        def pause(_seconds: float) -> None:
            waits.set()
            sleep(0.01)

        def watched(changeset: Changeset) -> Committed:
            done = commit(changeset)
            if not second.ident:
                second.start()
                assert waits.wait(60)
            return done

        commit = here.store.commit
        store: Any = Watched(here.store, watched)
        there.env = replace(there.env, pause=pause)
        found.append(created(replace(here.env, store=store), given=True))
        second.join()
        check_once(here, found)


def check_once(service: Service, found: list[SeriesResult]) -> None:
    """All have the same series, and nothing was made besides."""
    assert len(found) > 1
    assert {made.series.id for made in found} == {ID}
    assert len({frozenset(one.id for one in made.leases) for made in found}) == 1
    assert sorted(one.handle for one in found[0].leases) == ["L1", "L2", "L3"]
    assert len(service.store.ensembles(project_id=None)) == 3


def test_what_somebody_takes_away_is_kept_anew(database: str) -> None:
    """Should what is kept be gone when all is there, all is kept once more."""
    with closing(Service(database=database)) as service:
        gone: list[str] = []

        def take(changeset: Changeset) -> Committed:
            if not gone and any(isinstance(one, PutSeries) for one in changeset.changes):
                (first, *_) = service.store.offers(project_id=None, series_id=ID)
                gone.append(first.id)
                give_up_offer(service.env, first.id)
            return commit(changeset)

        commit = service.store.commit
        store: Any = Watched(service.store, take)
        made = created(replace(service.env, store=store), given=True)
        assert gone
        assert len(made.leases) == 3
        assert gone[0] not in {one.id for one in made.leases}
        assert len(service.store.leases(project_id=None)) == 3
