"""The commonest commit in few steps: allocations of a newcomer that plainly fit.

What a changeset of any kind needs to be applied and judged costs as much as all statements of a
claim together. But nearly every claim is of a consumer that nobody knows yet, on the usual terms,
and fits by mere addition. Such a one is judged and written here. Whatever is not plainly of that
kind is left to the general way, with nothing written: a refusal is always in its words. What is
written here is what it would write, which a property test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func, or_, select

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import OPEN, Committed, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory
from moorage.store import rows, tables
from moorage.store.answers import Turn
from moorage.store.apply.allocations import COME, INSERT, STANDING, consumer_columns
from moorage.store.batch import INSERT_BOOKINGS, only_chunk
from moorage.store.judge import BOOKED, EARLIER, STOCK, THEN
from moorage.store.moves import MOVE
from moorage.store.numbered import REVISION
from moorage.store.own import Added, Ended
from moorage.store.session import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.changes import Changeset
    from moorage.domain.period import Instant
    from moorage.domain.resources import Amounts
    from moorage.store.backends import Log
    from moorage.store.batch import Foreseen, Pair
    from moorage.store.session import Question, Session

_ALLOCATED: Final = BookingState.ALLOCATED.value
_b = tables.bookings.c
_TAKEN: Final = (
    select(func.sum(_b.amount))
    .where(
        _b.provider == tables.providers.c.uuid,
        _b.resource_class == tables.inventories.c.resource_class,
        _b.lapses_at > THEN,
        or_(_b.state == _ALLOCATED, _b.end_at > THEN),
    )
    .scalar_subquery()
)
"""All that lives, together, whenever it begins: what fits beside it always fits."""
ROOM: Final = STOCK.add_columns(_TAKEN.label("taken"), REVISION.scalar_subquery().label("newest"))
"""For a near database, where a question costs no round trip, so that those of the general way may
come later. There revisions count up: the newest comes along."""
_UNKNOWN: Final[tuple[Mapping[str, Any], Rows]] = {}, Rows()
_COMMON: Final = rows.booking_columns(Booking("", "", {"": 1}, Period(0, FOREVER)))[0]
"""What a newcomer's bookings have in common, each column of them."""
_FIRST: Final = 1
"""The generation of a consumer that has its first allocations, and how far its providers move."""


def newcomer_in(changeset: Changeset) -> ReplaceAllocations | None:
    """The only change of a changeset, if it may be a newcomer's on the usual terms."""
    if len(changeset.changes) != 1:
        return None
    (change,) = changeset.changes
    if type(change) is not ReplaceAllocations or not change.allocations:
        return None
    if not all(change.allocations.values()):
        return None
    usual = change.stay is OPEN and change.until is None
    new = change.generation is None or change.generation is ANY_GENERATION
    relies = changeset.relies_on or changeset.topology_revision is not None
    return change if usual and new and not relies and changeset.keepers_revision is None else None


def room_question(change: ReplaceAllocations, now: Instant) -> Sequence[Question]:
    """What `settle_newcomer` goes by on a near database; `now` need not be exact."""
    some = only_chunk(change.allocations)
    return ((ROOM, {"providers": some[0], "then": now - EARLIER}),) if some else ()


def settle_newcomer(
    connection: Session,
    turn: Turn,
    now: Instant,
    change: ReplaceAllocations,
    foreseen: Foreseen,
    log: Log,
) -> tuple[Committed, Ended] | None:
    """Write the allocations, and the end of the books, if they plainly fit.

    `foreseen` has the answers to `room_question`, or to what `foresight` asks of such a change;
    `now` is the instant of the commit.

    Returns:
        As `commit`; None, and nothing is written, if that takes a closer look.
    """
    room = _room(foreseen, now, near=connection.near)
    if not room:
        return None
    generations = _generations(change.allocations, room, now)
    if generations is None or not _comes(connection, change, foreseen):
        return None
    if connection.near:
        turn = Turn(turn.at, room[0].newest + 1)
    consumer = change.consumer
    common = {**_COMMON, "consumer": consumer.uuid, "start_at": now}
    written: list[Mapping[str, object]] = []
    for provider, amounts in change.allocations.items():
        for name, amount in sorted(amounts.items()):
            own = {"provider": provider, "resource_class": name, "amount": amount}
            written.append({**common, **own})
    connection.do(INSERT_BOOKINGS, written)
    connection.do(MOVE, {"providers": sorted(generations), "bump": _FIRST, "at": now})
    revision = log.append(connection, turn, dict.fromkeys(change.allocations, True))
    committed = Committed(
        revision=revision,
        at=now,
        provider_generations=MappingProxyType(generations),
        consumer_generations=MappingProxyType({consumer.uuid: _FIRST}),
    )
    return committed, Ended((revision, turn.at), _Came(change, now), len(change.allocations))


class _Came(Mapping[str, Added]):
    """What came to each provider, made once somebody asks: most is read by other processes."""

    __slots__ = ("_change", "_now")

    def __init__(self, change: ReplaceAllocations, now: Instant) -> None:
        self._change, self._now = change, now

    def __getitem__(self, provider: str) -> Added:
        consumer, amounts = self._change.consumer, self._change.allocations[provider]
        period = Period(self._now, FOREVER)
        booking = Booking(consumer.uuid, provider, dict(sorted(amounts.items())), period)
        came = Occupant(consumer.uuid, consumer.project_id)
        return Added((booking,), (came,), _FIRST, self._now)

    def __iter__(self) -> Iterator[str]:
        return iter(self._change.allocations)

    def __len__(self) -> int:
        return len(self._change.allocations)


def _room(foreseen: Foreseen, now: Instant, *, near: bool) -> Sequence[Any]:
    """The rows of `ROOM`, but for the newest revision where it is not asked for."""
    given, found = foreseen.get(ROOM if near else BOOKED, _UNKNOWN)
    if not given or given["then"] > now:  # see `judge.ground`
        return ()
    if near:
        return found
    taken: dict[Pair, int] = {}
    for provider, name, _, end, lapses_at, state, amount in found:
        if now < lapses_at and (now < end or state == _ALLOCATED):
            taken[provider, name] = taken.get((provider, name), 0) + int(amount)
    return [(*row, taken.get(row[0:3:2]), None) for row in foreseen[STOCK][1]]


def _generations(
    allocations: Mapping[str, Amounts], room: Sequence[Any], now: Instant
) -> dict[str, int] | None:
    """The wire generations that the providers get; None unless all of the amounts plainly fit."""
    found: dict[str, int] = {}
    fitting: set[Pair] = set()
    for provider, generation, name, *rules, _, away_until, taken, _ in room:
        if away_until is not None and away_until > now:
            return None
        found[provider] = generation + _FIRST
        amount = allocations[provider].get(name)
        if amount is None or (provider, name) in fitting:  # the same again with another absence
            continue
        capacity = _capacity(amount, name, *rules)
        if capacity is None or (taken or 0) + amount > capacity:
            return None
        fitting.add((provider, name))
    wanted = sum(map(len, allocations.values()))
    return found if len(fitting) == wanted else None


@lru_cache(maxsize=4096)
def _capacity(amount: int, *inventory: Any) -> int | None:  # noqa: ANN401 - its columns
    """What the inventory holds, if it gives such amounts; a fleet has few kinds of either."""
    known = Inventory(*inventory)
    return known.capacity if amount >= 1 and known.rule_broken_by(amount) is None else None


def _comes(connection: Session, change: ReplaceAllocations, foreseen: Foreseen) -> bool:
    """Write the consumer if there is none of its UUID; whether there was none."""
    if connection.near:
        return connection.execute(COME, consumer_columns(change.consumer, _FIRST)).rowcount == 1
    if STANDING not in foreseen or foreseen[STANDING][1]:
        return False
    connection.do(INSERT, consumer_columns(change.consumer, _FIRST))
    return True
