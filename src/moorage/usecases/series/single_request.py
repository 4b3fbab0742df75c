"""One request at a time creates or extends a series; a repeat waits for its result.

A client that gave up waiting may repeat its request while the service still works on it. Two
requests for the same series would hold the same places and withdraw each other's holds. A lock
excludes requests of one process. A request of another process is detected by the ledger: while more
and more of a series is held, another request is working on it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from moorage.domain import deadline
from moorage.domain.errors import Busy
from moorage.domain.period import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.leases import Lease
    from moorage.usecases.environment import UseCaseEnvironment

LONGEST: Final = 60.0
"""Seconds that one request waits for another."""
_QUIET: Final = 15 * SECOND
"""A request of another process counts as ended if nothing more was held for this long, or for twice
the time of one occurrence."""
_LOOK: Final = 0.2


@contextmanager
def exclusive_series(env: UseCaseEnvironment, series_id: str) -> Iterator[None]:
    """A lock on a series within this process.

    Raises:
        Busy: another request is working on the series, or too many are waiting.
    """
    making = env.series_in_progress
    if not making.begin(series_id):
        if not making.wait():
            raise _busy()
        try:
            until = env.stopwatch() + LONGEST
            while not making.begin(series_id):
                _pause(env, until)
        finally:
            making.leave()
    try:
        yield
    finally:
        making.end(series_id)


def abandoned_offers(env: UseCaseEnvironment, series_id: str) -> Sequence[Lease]:
    """The offers left by an interrupted request; waits until no request works on the series.

    Raises:
        Busy: another request is still working on the series.
    """
    store, limits = env.store, env.limits
    quiet = max(_QUIET, 2 * (limits.time_limit + limits.explanation_budget))
    until = env.stopwatch() + LONGEST
    known, since = frozenset[str](), env.stopwatch()
    while kept := store.offers(project_id=None, series_id=series_id):
        now, found = env.stopwatch(), frozenset(one.id for one in kept)
        if found != known:
            known, since = found, now
        newest = max(one.created_at for one in kept)
        if store.now() - newest >= quiet or now - since >= quiet / SECOND:
            break
        _pause(env, until)
    return kept


def _pause(env: UseCaseEnvironment, until: float) -> None:
    if env.stopwatch() >= until or deadline.passed():
        raise _busy()
    env.pause(_LOOK)


def _busy() -> Busy:
    return Busy(
        "the series is being made by another request; repeat this one for its result", retry_after=5
    )
