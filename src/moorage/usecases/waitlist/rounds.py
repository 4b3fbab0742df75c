"""A worker's rounds over the waitlist: grant entries that fit, expire those past their time."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.period import FOREVER, SECOND, Period
from moorage.domain.waitlist import WaitsFor
from moorage.usecases.waitlist.attempt import try_entry
from moorage.usecases.waitlist.estimates import EstimateWorker
from moorage.usecases.waitlist.queries import ESTIMATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.waitlist import WaitlistEntry
    from moorage.usecases.environment import UseCaseEnvironment

TRIED: Final = 1_000
"""How many entries one round reads, from the first."""
_QUOTAS: Final = 20
"""How many entries that wait for a quota are checked in one round, in turns."""

_log = logging.getLogger(__name__)


@dataclass
class WaitlistWorker:
    """Runs in one worker. Its cache only saves work."""

    env: UseCaseEnvironment
    _quota_checked: str = ""
    """The last entry whose quota was checked."""
    _estimates: EstimateWorker = field(init=False)

    def __post_init__(self) -> None:
        self._estimates = EstimateWorker(self.env)

    def run_round(self) -> bool:
        """Try entries for which capacity was freed, in the list's order; True if time ran out.

        Raises:
            MoorageError: the ledger is out of reach.
        """
        env = self.env
        entries = env.store.waiting_entries(Period(0, FOREVER), TRIED)
        if not entries:
            env.waitlist_memory.forget()
            return False
        until = env.stopwatch() + env.limits.waitlist_time / SECOND
        env.waitlist_memory.see(env.store.snapshot())
        left = False
        for one in self._due(entries):
            if env.stopwatch() >= until:
                return True
            left |= self._tried(one, until - env.stopwatch())
        if left:
            entries = env.store.waiting_entries(Period(0, FOREVER), ESTIMATED)
        self._estimates.run_round(entries[:ESTIMATED])
        return False

    def _due(self, entries: Sequence[WaitlistEntry]) -> list[WaitlistEntry]:
        """Entries past their time, that may fit, and the next few that wait for a quota."""
        env, now = self.env, self.env.store.now()
        quotas = [one.id for one in entries if one.waits_for is WaitsFor.QUOTA]
        begin = quotas.index(self._quota_checked) + 1 if self._quota_checked in quotas else 0
        some = (quotas[begin:] + quotas[:begin])[:_QUOTAS]
        self._quota_checked = some[-1] if some else ""
        return [
            one
            for one in entries
            if one.over_at(now)
            or one.id in some
            or (
                one.waits_for is WaitsFor.CAPACITY and env.waitlist_memory.due(one, env.stopwatch())
            )
        ]

    def _tried(self, entry: WaitlistEntry, seconds: float) -> bool:
        try:
            return try_entry(self.env, entry, seconds)
        except (ConcurrentUpdate, NotFound):
            return True  # somebody else was quicker
        except MoorageError:
            _log.exception("could not try waitlist entry %s", entry.id)
            return False
