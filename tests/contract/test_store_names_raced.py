"""Bookings have no foreign keys: no commit may leave one that names what another took away."""

import random
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Connection, text

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    CreateResourceClass,
    DeleteAllocations,
    DeleteInventories,
    DeleteProvider,
    DeleteResourceClass,
    DropBookings,
    PutBookings,
    PutInventories,
    RenameResourceClass,
    ReplaceAllocations,
    SwapHold,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import Busy, MoorageError, Unavailable
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store
from moorage.store.opening import connect

PROVIDERS = ("a", "b", "c")
CLASSES = ("CUSTOM_ONE", "CUSTOM_TWO", "CUSTOM_THREE")
CONSUMERS = tuple(f"consumer-{number}" for number in range(8))
THREADS = 6
TURNS = 60

ORPHANS = {
    "provider": "SELECT count(*) FROM bookings WHERE provider NOT IN (SELECT uuid FROM providers)",
    "consumer": "SELECT count(*) FROM bookings WHERE consumer NOT IN (SELECT uuid FROM consumers)",
    "class": "SELECT count(*) FROM bookings WHERE resource_class NOT IN"
    " (SELECT name FROM resource_classes)",
    "inventory": "SELECT count(*) FROM bookings WHERE NOT EXISTS (SELECT 1 FROM inventories"
    " WHERE inventories.provider = bookings.provider"
    " AND inventories.resource_class = bookings.resource_class)",
    "forgotten": "SELECT count(*) FROM consumers WHERE uuid NOT IN (SELECT consumer FROM bookings)",
}


def stocked(dice: random.Random, provider: str) -> PutInventories:
    stock = (Inventory(dice.choice(CLASSES), 1_000), Inventory("VCPU", 1_000))
    return PutInventories(provider, stock, None, replace_all=dice.random() < 0.3)


def booked(dice: random.Random) -> list[Change]:
    """Something that names a consumer, and perhaps providers and classes."""
    consumer = Consumer(dice.choice(CONSUMERS))
    place, amounts = dice.choice(PROVIDERS), {dice.choice((*CLASSES, "VCPU")): 1}
    hold = Booking(
        consumer.uuid, place, amounts, Period(0, FOREVER), BookingState.HELD, FOREVER, Binding.BOUND
    )
    choices: list[list[Change]] = [
        [ReplaceAllocations(consumer, {place: amounts}, ANY_GENERATION)],
        [ReplaceAllocations(consumer, {place: amounts}, ANY_GENERATION)],
        [PutBookings(consumer, (hold,))],
        [DropBookings(frozenset({consumer.uuid}))],
        [SwapHold(consumer.uuid, Consumer(dice.choice(CONSUMERS)))],
        [DeleteAllocations(consumer.uuid)],
    ]
    return dice.choice(choices)


def named(dice: random.Random) -> list[Change]:
    """Something that makes, renames or deletes what bookings name."""
    place = dice.choice(PROVIDERS)
    one, other = dice.sample(CLASSES, 2)
    choices: list[list[Change]] = [
        [DeleteProvider(place)],
        [CreateProvider(place, place), stocked(dice, place)],
        [stocked(dice, place)],
        [DeleteInventories(place, one)],
        [DeleteInventories(place)],
        [RenameResourceClass(one, other)],
        [DeleteResourceClass(one)],
        [CreateResourceClass(one)],
    ]
    return dice.choice(choices)


def restless(store: Ledger, seed: int, turns: int) -> tuple[int, list[str]]:
    """How many commits came through, and what failed otherwise than it may."""
    dice, done, odd = random.Random(seed), 0, []
    for _ in range(turns):
        changes = booked(dice) if dice.random() < 0.6 else named(dice)
        try:
            store.commit(Changeset(tuple(changes)))
            store.snapshot()
        except (Busy, Unavailable) as error:
            odd.append(repr(error))
        except MoorageError:
            continue
        else:
            done += 1
    return done, odd


def orphans(url: str) -> dict[str, int]:
    backend = connect(url)

    def count(connection: Connection) -> dict[str, int]:
        return {
            what: int(connection.execute(text(query)).scalar_one())
            for what, query in ORPHANS.items()
        }

    found = backend.read_schema(count)
    backend.close()
    return found


def standing(store: Ledger) -> dict[str, object]:
    """Every provider with what is booked there, as a snapshot has it."""
    return {
        state.provider.uuid: (
            state.provider,
            sorted(state.bookings, key=lambda one: (one.consumer, one.state, *one.amounts)),
        )
        for state in store.snapshot().states
        if state is not None
    }


def race(url: str, *, turns: int, seed: int) -> int:
    """Let threads loose on one ledger; how many commits came through."""
    store = open_store(url)
    store.commit(Changeset(tuple(map(CreateResourceClass, CLASSES))))
    with ThreadPoolExecutor(THREADS) as pool:
        runs = list(pool.map(lambda one: restless(store, seed + one, turns), range(THREADS)))
    assert [one for _, odd in runs for one in odd] == []
    assert orphans(url) == dict.fromkeys(ORPHANS, 0)
    # Whoever followed all along sees what whoever comes anew sees.
    fresh = open_store(url)
    assert standing(store) == standing(fresh)
    store.close()
    fresh.close()
    return sum(done for done, _ in runs)


def test_no_booking_names_what_another_commit_took_away(database_url: str) -> None:
    assert race(database_url, turns=TURNS, seed=1) > THREADS * TURNS // 8


def test_what_is_asked_sees_an_orphan(database_url: str) -> None:
    """The proof above can fail: a booking that names nothing is counted under each heading."""
    open_store(database_url).close()
    backend = connect(database_url)

    def smuggle(connection: Connection) -> None:
        connection.execute(
            text(
                "INSERT INTO bookings (consumer, provider, resource_class, amount, start_at,"
                " end_at, lapses_at, state, binding)"
                " VALUES ('x', 'y', 'CUSTOM_Z', 1, 0, 9, 9, 'held', 'bound')"
            )
        )

    backend.upgrade(smuggle)
    backend.close()
    assert orphans(database_url) == dict.fromkeys(ORPHANS, 1) | {"forgotten": 0}
