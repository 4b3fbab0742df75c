"""The store contract as a machine: random commits against a model that looks at every instant.

After each step: the commit went through exactly if no instant got worse, the bookings are the
model's, sums are sums of bookings, and the snapshot kept in step says the same as a new one.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    DeleteAllocations,
    DropBookings,
    PutBookings,
    PutInventories,
    PutTraits,
    ReplaceAllocations,
    SwapHold,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import CapacityExceeded, ConsumerConflict, HoldExpired, NotFound
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory
from moorage.engine.state.snapshot import Snapshot
from moorage.store import Ledger, open_store
from moorage.store.backend import Backend
from moorage.store.database.session import Session
from moorage.store.opening import connect

PROVIDERS = ("a", "b")
CLASSES = ("VCPU", "DISK_GB")
CONSUMERS = ("c0", "c1", "c2", "c3")
TRAITS = ("HW_CPU_X86_AVX", "HW_CPU_X86_AVX2")

names = st.sampled_from(CONSUMERS)
amounts = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 6), min_size=1)
spread = st.dictionaries(st.sampled_from(PROVIDERS), amounts, max_size=2)


@cache
def empty_ledger() -> bytes:
    """A migrated database to copy: migrating takes longer than a whole run of the machine."""
    with TemporaryDirectory() as folder:
        open_store(f"sqlite:///{folder}/ledger").close()
        return Path(folder, "ledger").read_bytes()


class SetClock:
    instant = 100

    def now(self) -> int:
        return self.instant


def level(bookings: Iterable[Booking], now: int, where: tuple[str, str], at: int) -> int:
    provider, name = where
    return sum(
        one.amounts.get(name, 0)
        for one in bookings
        if one.provider == provider
        and one.live(now)
        and one.period.start <= at < one.occupies_until(now)
    )


def content(snapshot: Snapshot) -> dict[str, object]:
    """All a snapshot says, by provider instead of row."""
    found: dict[str, object] = {"revision": snapshot.revision, "until": snapshot.valid_until}
    for row in np.flatnonzero(snapshot.alive).tolist():
        found[snapshot.uuids[row]] = (
            snapshot.state(row).provider,
            int(snapshot.generation[row]),
            int(snapshot.revisions[row]),
            snapshot.bookings_of(row),
            frozenset(snapshot.occupants(row)),
            {name for name, mask in snapshot.traits.items() if mask[row]},
            {
                name: tuple(
                    int(getattr(columns, field)[at])
                    for field in ("capacity", "used", "base", "peak")
                )
                for name, columns in snapshot.classes.items()
                if (at := columns.position[row]) >= 0
            },
        )
    return found


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = SetClock()
        self.backend = self.emptied()
        self.store = Ledger(self.backend, self.clock)
        self.capacity = {(p, c): 8 for p in PROVIDERS for c in CLASSES}
        self.bookings: list[Booking] = []
        for name in PROVIDERS:
            stock = tuple(Inventory(one, 8) for one in CLASSES)
            self.commit(CreateProvider(name, name), PutInventories(name, stock, None))

    def emptied(self) -> Backend:
        """The database to work on, without any rows of before."""
        self.folder = TemporaryDirectory()
        path = Path(self.folder.name, "ledger")
        path.write_bytes(empty_ledger())
        return connect(f"sqlite:///{path}")

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def commit(self, *changes: Change) -> None:
        self.store.commit(Changeset(changes))

    def worsens(self, after: list[Booking], touched: set[tuple[str, str]]) -> bool:
        now = self.clock.instant
        return any(
            level(after, now, where, at)
            > max(self.capacity[where], level(self.bookings, now, where, at))
            for where in touched
            for at in range(now, now + 80)
        )

    def attempt(self, *changes: Change, after: list[Booking], written: list[Booking]) -> None:
        """Commit; it must be refused exactly when an inventory written to gets worse."""
        touched = {(one.provider, name) for one in written for name in one.amounts}
        expected = self.worsens(after, touched)
        try:
            self.commit(*changes)
        except CapacityExceeded:
            assert expected, "refused though no instant gets worse"
        else:
            assert not expected, "some instant got worse"
            self.bookings = after

    def without(self, consumer: str, *, allocated: bool) -> list[Booking]:
        return [
            one
            for one in self.bookings
            if one.consumer != consumer or (one.state is BookingState.ALLOCATED) != allocated
        ]

    def stay(self, consumer: str) -> Period:
        """From when to when it has what it gets: a declared end stays, and then the start too."""
        own = [
            one.period
            for one in self.bookings
            if one.consumer == consumer and one.state is BookingState.ALLOCATED
        ]
        if not own or own[0].end == FOREVER:
            return Period(self.clock.instant)
        return Period(min(one.start for one in own), own[0].end)

    # --- rules ------------------------------------------------------------------------------

    @rule(wait=st.integers(1, 15))
    def time_passes(self, wait: int) -> None:
        self.clock.instant += wait
        now = self.clock.instant
        self.bookings = [one for one in self.bookings if one.live(now)]

    @rule(name=st.sampled_from(PROVIDERS), total=st.integers(1, 12))
    def an_operator_changes_an_inventory(self, name: str, total: int) -> None:
        self.commit(PutInventories(name, (Inventory("VCPU", total),), None))
        self.capacity[name, "VCPU"] = total

    @rule(name=st.sampled_from(PROVIDERS), traits=st.frozensets(st.sampled_from(TRAITS)))
    def traits_change(self, name: str, traits: frozenset[str]) -> None:
        self.commit(PutTraits(name, traits, None))

    @rule(consumer=names, allocations=spread)
    def allocate(self, consumer: str, allocations: dict[str, dict[str, int]]) -> None:
        period = self.stay(consumer)
        written = [Booking(consumer, name, one, period) for name, one in allocations.items()]
        self.attempt(
            ReplaceAllocations(Consumer(consumer), allocations, ANY_GENERATION),
            after=[*self.without(consumer, allocated=True), *written],
            written=written,
        )

    @rule(pair=st.lists(names, min_size=2, max_size=2, unique=True), where=spread)
    def move(self, pair: list[str], where: dict[str, dict[str, int]]) -> None:
        source, target = pair
        period = self.stay(target)
        written = [Booking(target, name, one, period) for name, one in where.items()]
        gone = self.without(source, allocated=True)
        self.attempt(
            ReplaceAllocations(Consumer(target), where, ANY_GENERATION),
            ReplaceAllocations(Consumer(source), {}, ANY_GENERATION),
            after=[
                *(
                    one
                    for one in gone
                    if one.consumer != target or one.state is not BookingState.ALLOCATED
                ),
                *written,
            ],
            written=written,
        )

    @rule(consumer=names)
    def delete(self, consumer: str) -> None:
        there = any(
            one.consumer == consumer and one.state is BookingState.ALLOCATED
            for one in self.bookings
        )
        try:
            self.commit(DeleteAllocations(consumer))
        except NotFound:
            assert not there
        else:
            assert there
            self.bookings = self.without(consumer, allocated=True)

    @rule(
        consumer=names,
        name=st.sampled_from(PROVIDERS),
        amounts=amounts,
        delay=st.integers(0, 20),
        length=st.integers(1, 30) | st.none(),
        lapse=st.integers(1, 20) | st.none(),
    )
    def hold(
        self,
        consumer: str,
        name: str,
        amounts: dict[str, int],
        delay: int,
        length: int | None,
        lapse: int | None,
    ) -> None:
        now = self.clock.instant
        start = now + delay
        booking = Booking(
            consumer,
            name,
            amounts,
            Period(start, FOREVER if length is None else start + length),
            BookingState.RESERVED if delay else BookingState.HELD,
            FOREVER if lapse is None else now + lapse,
        )
        self.attempt(
            PutBookings(Consumer(consumer), (booking,)),
            after=[*self.without(consumer, allocated=False), booking],
            written=[booking],
        )

    @rule(consumers=st.frozensets(names))
    def drop(self, consumers: frozenset[str]) -> None:
        self.commit(DropBookings(consumers))
        for one in consumers:
            self.bookings = self.without(one, allocated=False)

    @precondition(
        lambda self: any(one.state is not BookingState.ALLOCATED for one in self.bookings)
    )
    @rule(member=names, server=names)
    def swap(self, member: str, server: str) -> None:
        held = [
            one
            for one in self.bookings
            if one.consumer == member and one.state is not BookingState.ALLOCATED
        ]
        taken = any(
            one.consumer == server and one.state is BookingState.ALLOCATED for one in self.bookings
        )
        holding = any(one.consumer == server for one in self.bookings) and not taken
        try:
            self.commit(SwapHold(member, Consumer(server)))
        except HoldExpired:
            assert not held
        except NotFound:
            assert held
            assert holding
        except ConsumerConflict:
            assert held
            assert taken
        else:
            assert held
            assert not taken
            assert not holding
            self.bookings = self.without(member, allocated=False) + [
                Booking(server, one.provider, one.amounts, one.period) for one in held
            ]

    # --- invariants ---------------------------------------------------------------------------

    @invariant()
    def the_bookings_are_the_models(self) -> None:
        stored = {
            (one.consumer, one.provider, one.period, one.state, tuple(one.amounts.items()))
            for _, one in self.store.bookings()
        }
        assert stored == {
            (one.consumer, one.provider, one.period, one.state, tuple(sorted(one.amounts.items())))
            for one in self.bookings
        }

    @invariant()
    def usage_is_the_sum_of_allocations(self) -> None:
        snapshot = self.store.snapshot()
        for name in PROVIDERS:
            row = snapshot.row(name)
            generation, there = self.store.allocations_of_provider(name)
            assert generation == snapshot.generation[row]
            for one in CLASSES:
                columns = snapshot.classes[one]
                total = sum(booking.amounts.get(one, 0) for _, booking in there)
                assert columns.used[columns.position[row]] == total

    @invariant()
    def the_snapshot_in_step_equals_a_new_one(self) -> None:
        new = Ledger(self.backend, self.clock)
        assert content(self.store.snapshot()) == content(new.snapshot())

    @invariant()
    def nobody_is_remembered_without_bookings(self) -> None:
        now = self.clock.instant
        for consumer in CONSUMERS:
            allocated = any(
                one.consumer == consumer and one.state is BookingState.ALLOCATED and one.live(now)
                for one in self.bookings
            )
            assert (self.store.consumer(consumer) is not None) == allocated


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


EMPTYING = {
    "postgres": ("TRUNCATE providers, consumers, bookings, changes CASCADE",),
    "mariadb": tuple(
        f"DELETE FROM {table}"
        for table in ("bookings", "consumers", "inventories", "provider_traits", "providers")
    ),
}
"""What takes away the hosts and consumers of the run before."""


@pytest.mark.parametrize("kind", EMPTYING)
def test_ledger_machine_on_a_server(kind: str, request: pytest.FixtureRequest) -> None:
    backend = connect(request.getfixturevalue(f"{kind}_url"))

    def empty(session: Session) -> None:
        for statement in EMPTYING[kind]:
            session.exec_driver_sql(statement)

    class OnServer(LedgerMachine):
        def emptied(self) -> Backend:
            backend.write(empty)
            return backend

        def teardown(self) -> None:
            """The database serves the next run."""

    try:
        run_state_machine_as_test(
            OnServer, settings=settings(max_examples=12, stateful_step_count=25, deadline=None)
        )
    finally:
        backend.close()
