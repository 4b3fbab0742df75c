"""Hosts, claims of them, and what readers see: for the tests of stores and databases."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from moorage.domain.changes import Changeset, CreateProvider, PutInventories, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store
from moorage.store.read import provider_states


@contextmanager
def opened(url: str) -> Iterator[Ledger]:
    """A ledger, for a while."""
    with closing(open_store(url)) as store:
        yield store


def host(store: Ledger, name: str, total: int = 1_000_000) -> None:
    """Add a host with so many VCPU."""
    stock = PutInventories(name, (Inventory("VCPU", total),), None)
    store.commit(Changeset((CreateProvider(name, name), stock)))


def claim(consumer: str, provider: str = "a") -> Changeset:
    """One VCPU of a host for a new consumer."""
    change = ReplaceAllocations(Consumer(consumer), {provider: {"VCPU": 1}}, None)
    return Changeset((change,))


def used(store: Ledger) -> int:
    """How many VCPU are taken."""
    return int(store.snapshot().classes["VCPU"].used.sum())


def generations(store: Ledger) -> dict[str, int]:
    """The hosts' generations, as a snapshot says."""
    snapshot = store.snapshot()
    return {name: int(snapshot.generation[row]) for name, row in snapshot.row_of.items()}


def said(store: Ledger) -> dict[str, object]:
    """What a snapshot says of each host: generation, revision, use and consumers."""
    snapshot = store.snapshot()
    columns = snapshot.classes["VCPU"]
    return {
        uuid: (
            int(snapshot.generation[row]),
            int(snapshot.revisions[row]),
            int(columns.used[columns.position[row]]),
            sorted(booking.consumer for booking in snapshot.bookings_of(row)),
        )
        for uuid, row in snapshot.row_of.items()
    }


def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes whenever everything is loaded."""
    found: list[str] = []
    load = provider_states.every_state

    def watched(connection: object) -> object:
        found.append("everything")
        return load(connection)  # type: ignore[arg-type]

    monkeypatch.setattr(provider_states, "every_state", watched)
    return found
