"""Retries: how long a database is waited for, how often a failed transaction is repeated."""

from __future__ import annotations

import logging
import random
import time
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

from moorage.domain.errors import Busy, Unavailable
from moorage.logs import Lasting

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_log = logging.getLogger(__name__)
_lasting: Final = Lasting()

WAIT: Final = 30.0
"""Seconds a writer waits for its turn before it is told to come again."""
AWAY: Final = 5.0
"""Seconds to wait for a database that is away before telling the caller to come again."""
ATTEMPTS: Final = 8
"""How often a transaction is tried that loses against others."""


class Stubbornly(Protocol):
    """Does something again while the database is away, for a while."""

    def __call__(self, attempt: Callable[[], T]) -> T:
        """What the attempt returns.

        Raises:
            Busy: it is away for too long.
        """


class Patience:
    """How much of it is left: attempts against others, time for a database that is away."""

    def __init__(self) -> None:
        self._attempts = ATTEMPTS
        self._lost_at: float | None = None
        self._apart = 0.02
        self._deadline: float | None = None
        self._pause = 0.02

    def part(self) -> bool:
        """Sleep a little, for those who collided not to collide again; whether a try is left."""
        self._attempts -= 1
        if self._attempts:
            time.sleep(random.uniform(0, 0.02))  # noqa: S311 - only to part them
        return self._attempts > 0

    def part_farther(self) -> bool:
        """As `part`, where there is no queue: with every loss more, until a turn is overdue."""
        now = time.monotonic()
        if self._lost_at is None:
            self._lost_at = now
        time.sleep(random.uniform(0, self._apart))  # noqa: S311 - only to part them
        self._apart = min(self._apart * 2, 0.3)
        return now < self._lost_at + WAIT

    def wait_for_database(self, error: DBAPIError) -> None:
        """Sleep a little.

        Raises:
            Busy: it has been away for too long.
        """
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + AWAY  # a broken connection is replaced at once
            return
        if now >= self._deadline:
            # Where it is and what it said is for the log: whoever asked may be a tenant.
            told = sentence(error)
            if _lasting.is_news("away", told):
                _log.error("the database is away: %s", told)
            raise Busy("the database is away", retry_after=2) from error
        time.sleep(self._pause)
        self._pause = min(self._pause * 2, 0.5)


def stubbornly(attempt: Callable[[], T], bear: Callable[[DBAPIError, Patience], None]) -> T:
    """What the attempt returns at last; `bear` returns if an error is worth another one.

    Raises:
        Busy: no connection is free, or patience is at its end.
    """
    patience = Patience()
    while True:
        try:
            return attempt()
        except DBAPIError as error:
            bear(error, patience)
        except NoConnection as error:
            raise Busy("the ledger has too many requests at once") from error


def cannot_go_on(error: DBAPIError, why: str) -> Unavailable:
    """What to raise where no repetition helps; the log has what the database said, once."""
    told = sentence(error)
    if _lasting.is_news(why):
        _log.error("the database cannot go on: %s", told)
    return Unavailable(f"the ledger cannot be used: {why}")


def sentence(error: DBAPIError) -> str:
    """What the database said, on one line."""
    return " ".join(str(error.orig).split())
