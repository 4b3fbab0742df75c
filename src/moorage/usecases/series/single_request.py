"""One request at a time makes a series; who asks for the same waits for what comes of it.

Whoever stopped waiting for an answer may ask again while the service goes on. Two that make the
same series keep the same places, and would give up what the other keeps. Requests of one process
know of each other. Of other processes the ledger tells: as long as ever more of a series is kept,
somebody makes it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy
from moorage.domain.period import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.leases import Lease
    from moorage.usecases.environment import UseCaseEnvironment

LONGEST: Final = 60.0
"""Seconds that one request waits for another."""
_QUIET: Final = 15 * SECOND
"""So long nothing more is kept before whoever made the series counts as gone; or twice the time
for one occurrence."""
_LOOK: Final = 0.2


@contextmanager
def exclusive_series(env: UseCaseEnvironment, series_id: str) -> Iterator[None]:
    """A lock on a series within this process.

    Raises:
        Busy: somebody makes it still, or too many wait already.
    """
    making = env.under_way
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
    """What is kept for a series by a request that was cut off; once nobody makes it elsewhere.

    Raises:
        Busy: somebody makes it still.
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
    if env.stopwatch() >= until:
        raise _busy()
    env.pause(_LOOK)


def _busy() -> Busy:
    return Busy("the same series is being made: ask again for what came of it", retry_after=5)
