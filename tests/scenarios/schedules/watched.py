"""The ledger with somebody beside it who adds up all bookings before and after each commit."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from moorage.domain.actors import Actor
from moorage.domain.bookings import BookingState
from moorage.domain.period import FOREVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Changeset, Committed
    from moorage.domain.period import Instant
    from moorage.store import Ledger

Where = tuple[str, str]
"""A provider and one of its resource classes."""


@dataclass(frozen=True)
class Taken:
    """How much is taken of one inventory from now on, from the rows alone."""

    spans: tuple[tuple[Instant, Instant, int], ...]

    def at(self, instant: Instant) -> int:
        """The sum at an instant."""
        return sum(amount for start, end, amount in self.spans if start <= instant < end)

    def edges(self, now: Instant) -> Iterator[Instant]:
        """Every instant from `now` on at which the sum may rise, and those where it falls."""
        yield now
        for start, end, _ in self.spans:
            yield from (edge for edge in (start, end) if now < edge < FOREVER)


NOTHING = Taken(())
DISABLED = "COMPUTE_STATUS_DISABLED"


def taken(bookings: Iterable[Booking], now: Instant) -> Mapping[Where, Taken]:
    """What is taken of each inventory. Who is past its end and there still never ends."""
    found: dict[Where, list[tuple[Instant, Instant, int]]] = defaultdict(list)
    for one in bookings:
        overrun = one.state is BookingState.ALLOCATED and one.period.end <= now
        end = FOREVER if overrun else one.period.end
        for name, amount in one.amounts.items():
            found[one.provider, name].append((one.period.start, end, amount))
    return {where: Taken(tuple(spans)) for where, spans in found.items()}


def everything(store: Watched) -> list[Booking]:
    """All live bookings; read anew only after a commit or at another instant."""
    when = (store.commits, store.now())
    if store.read is None or store.read[0] != when:
        found = [one for _, one in store.bookings()]
        assert len(found) < 1000, "a page is too short for this test"
        store.read = when, found
    return store.read[1]


class Watched:
    """The ledger; fails whoever makes an overage worse at any instant."""

    def __init__(self, store: Ledger) -> None:
        self._store = store
        self.room: dict[Where, int] = {}
        """How much there is, as it was said last."""
        self.commits = 0
        self.judged = 0
        """Sums compared."""
        self.read: tuple[tuple[int, Instant], list[Booking]] | None = None

    def commit(self, changeset: Changeset) -> Committed:
        """As the ledger does, with a look before and after."""
        now = self._store.now()
        before = taken(everything(self), now)
        done = self._store.commit(changeset)
        self.commits += 1
        after = taken(everything(self), now)
        for where, sums in after.items():
            had = before.get(where, NOTHING)
            if sums == had:
                continue
            room = self.room[where]
            for edge in {*sums.edges(now), *had.edges(now)}:
                self.judged += 1
                level = sums.at(edge)
                assert level <= max(room, had.at(edge)), (
                    f"{where} is worse at {edge}: {level} of {room}, it was {had.at(edge)}:"
                    f" {changeset}"
                )
        return done

    def by(self, actor: Actor) -> Self:
        """This one, whoever acts."""
        del actor
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
