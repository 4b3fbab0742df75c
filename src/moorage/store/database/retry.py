"""Retries: how long a database is waited for, how often a failed transaction is repeated."""

from __future__ import annotations

import logging
import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

from moorage.domain import deadline
from moorage.domain.errors import Busy, Unavailable
from moorage.domain.retry_policy import Retries, RetryPolicy
from moorage.logs import Lasting

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_log = logging.getLogger(__name__)
_lasting: Final = Lasting()

WAIT: Final = 30.0
"""Seconds a writer waits for its turn before it is refused as Busy."""
AWAY: Final = 5.0
"""Seconds to wait for a database that is away before telling the caller to come again."""
CONFLICT: Final = RetryPolicy(0.02, growth=1.0, jitter=1.0, attempts=8)
"""Of a transaction that loses against others."""
NODE_CONFLICT: Final = RetryPolicy(0.02, 0.3, jitter=1.0, limit=WAIT)
"""The same between the nodes of a cluster, where there is no queue."""


class DatabaseRetries:
    """The retries of one transaction."""

    def __init__(self) -> None:
        self._made: defaultdict[RetryPolicy, Retries] = defaultdict(Retries)

    def pause(self, policy: RetryPolicy) -> bool:
        """Sleep before the next attempt under a policy; whether there is to be one.

        There is none past the deadline of the request.
        """
        if deadline.passed():
            return False
        chance = random.random()  # noqa: S311 - only to part those who collided
        pause = self._made[policy].next_pause(policy, time.monotonic(), chance)
        time.sleep(max(deadline.left(pause or 0.0), 0.0))
        return pause is not None

    def wait_for_database(self, error: DBAPIError) -> None:
        """Sleep before the next attempt; a broken connection is replaced at once.

        Raises:
            Busy: it has been away for too long.
        """
        if self.pause(RetryPolicy(0.02, 0.5, at_once=True, limit=AWAY)):
            return
        # Where it is and what it said is for the log: the client may be a tenant.
        said = message(error)
        if _lasting.is_news("away", said):
            _log.error("the database is away: %s", said)
        raise Busy("the database is away", retry_after=2) from error


def retry(
    attempt: Callable[[], T], pause_or_raise: Callable[[DBAPIError, DatabaseRetries], None]
) -> T:
    """What the attempt returns at last; `pause_or_raise` returns if an error is worth another.

    Raises:
        Busy: no connection is free, or `pause_or_raise` says so.
    """
    retries = DatabaseRetries()
    while True:
        try:
            return attempt()
        except DBAPIError as error:
            pause_or_raise(error, retries)
        except NoConnection as error:
            raise Busy("the ledger has too many requests at once") from error


def unavailable(error: DBAPIError, why: str) -> Unavailable:
    """What to raise where no repetition helps; the log has what the database said, once."""
    if _lasting.is_news(why):
        _log.error("the database cannot go on: %s", message(error))
    return Unavailable(f"the ledger cannot be used: {why}")


def message(error: DBAPIError) -> str:
    """What the database said, on one line."""
    return " ".join(str(error.orig).split())
