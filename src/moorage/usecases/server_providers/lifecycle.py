"""Follow servers that offer something: when they move, lose their place, have one again, are gone.

A server without allocations has no place, as a shelved one, and its server provider is suspended:
slices stay booked. If it has none for longer than the grace period, its server provider ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutEvent, PutServerProvider
from moorage.domain.errors import ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.events import DerivedEvent
from moorage.domain.period import FOREVER
from moorage.engine.state.server_locations import NOWHERE, host_of_server
from moorage.usecases.server_providers.end import OfferEnd, end_changeset
from moorage.usecases.server_providers.queries import has_place
from moorage.usecases.shared.lookup import every_record

if TYPE_CHECKING:
    from moorage.domain.period import Instant
    from moorage.domain.server_providers import ServerProvider
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment


@dataclass
class ServerProviderSweeper:
    """Runs in one worker. Several workers may see the same; the first to commit tells it."""

    env: UseCaseEnvironment
    _revision: int = -1
    """The ledger's at the last round that saw everything."""
    _due: Instant = 0
    """When time alone changes something next."""

    def run_round(self) -> bool:
        """Look once; always False: there is never more at once.

        Raises:
            MoorageError: the ledger is out of reach, or one of them could not be changed; all
                others have been looked at.
        """
        store = self.env.store
        snapshot = store.snapshot()
        now = snapshot.taken_at
        if not snapshot.offered_by or (snapshot.revision == self._revision and now < self._due):
            return False
        failed: MoorageError | None = None
        grace, due = self.env.limits.server_provider_grace, FOREVER
        every = every_record(store.server_providers)
        for record in [one for one in every if one.id in snapshot.row_of]:
            try:
                changeset = self._step(snapshot, record)
                if changeset is not None:
                    store.commit(changeset)
            except (ConcurrentUpdate, NotFound):
                due = now  # changed or deleted meanwhile: read it again in the next round
            except MoorageError as error:
                failed, due = error, now
            if record.suspended_at is not None:
                due = min(due, record.suspended_at + grace)
        self._revision, self._due = snapshot.revision, due
        if failed is not None:
            raise failed
        return False

    def _step(self, snapshot: Snapshot, record: ServerProvider) -> Changeset | None:
        """The next step of one; None: nothing has changed."""
        now, server = snapshot.taken_at, record.server_id
        if not has_place(snapshot, server):
            if record.suspended_at is None:
                return _changed(replace(record, suspended_at=now), "suspended")
            if record.suspended_at + self.env.limits.server_provider_grace <= now:
                return end_changeset(self.env.store, record, OfferEnd.SERVER_GONE)
            return None
        row = host_of_server(snapshot, server)
        # While a server is between two hosts it is nowhere: it has moved once it is on one.
        host = record.host if row == NOWHERE else snapshot.uuids[row]
        if record.suspended_at is None and host == record.host:
            return None
        word = None if record.host is None else "moved"
        if record.suspended_at is not None:
            word = "resumed"
        return _changed(replace(record, suspended_at=None, host=host), word)


def _changed(record: ServerProvider, word: str | None) -> Changeset:
    put = PutServerProvider(record, record.generation)
    if word is None:
        return Changeset((put,))
    body = {"server": record.server_id}
    told = DerivedEvent(f"server_provider.{word}", record.project_id, record.id, 0, body)
    return Changeset((put, PutEvent(told)))
