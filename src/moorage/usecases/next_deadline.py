"""When time alone changes something next: a booking's edge, an effect, an expiry.

A simulation's clock stops at each of these instants, so that what is due in a long jump takes
effect in its order and at its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.period import FOREVER, Period
from moorage.usecases.shared.lookup import every_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.usecases.environment import UseCaseEnvironment

_READ: Final = 1_000
"""Waitlist entries, and servers past their end, that are read."""


def next_edge(env: UseCaseEnvironment, ends: Callable[[], Iterable[Instant]] = tuple) -> Instant:
    """The next instant after now at which something is due; FOREVER if there is none.

    `ends` are those of moves that a simulation makes.

    Raises:
        MoorageError: the ledger is out of reach.
    """
    store = env.store
    snapshot, waiting = store.snapshot(), store.waiting_entries(Period(0, FOREVER), _READ)
    edges = (
        snapshot.valid_until,
        store.next_due(),
        *map(_over, waiting),
        *_grace_ends(env),
        *ends(),
    )
    now = store.now()
    return min((one for one in edges if one > now), default=FOREVER)


def _over(entry: WaitlistEntry) -> Instant:
    """The first instant at which the entry is over."""
    return min(entry.until, entry.latest - entry.terms.lead + 1)


def _grace_ends(env: UseCaseEnvironment) -> Iterator[Instant]:
    """The ends of grace periods: of servers past their end, and of offers of servers that left."""
    store, limits = env.store, env.limits
    for one in store.overrun((0, ""), _READ):
        yield one.end + (limits.grace if one.yields_to is None else limits.notice)
    for record in every_record(store.server_providers):
        if record.suspended_at is not None:
            yield record.suspended_at + limits.server_provider_grace
