"""Moves servers where none run: writes allocations as Nova does, and ends after some time.

A migration takes what the server has, the server gets its target, and the migration gives its
part up once the memory is copied. All of a move's state is in the ledger, so any process can go on.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import MoorageError, NotFound
from moorage.domain.period import FOREVER, SECOND, Duration, Instant
from moorage.domain.plan_progress import MoveProgress, MoveReport
from moorage.domain.plans import MoveKind
from moorage.domain.resources import total
from moorage.usecases.ledger.allocations import allocate, release
from moorage.usecases.ledger.plan_targets import host_of
from moorage.usecases.plan_ports import MoveRefused, MoverUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.plans import Move
    from moorage.domain.resources import Amounts
    from moorage.usecases.ports import Ids, Store
    from moorage.usecases.shared.allocation_write import WriteSettings

_MIGRATIONS: Final = uuid.UUID("6d6f6f72-6167-4000-8000-6d6f76650000")
"""Ids of migrations are made with it, so that they are found again."""
_BASE: Final[Mapping[MoveKind, Duration]] = MappingProxyType(
    {MoveKind.LIVE: 2 * SECOND, MoveKind.COLD: 10 * SECOND, MoveKind.EVACUATE: 20 * SECOND}
)
"""What a move takes beside the copy of memory."""
_MIB_PER_SECOND: Final = 1024


def duration_of(move: Move) -> Duration:
    """How long a simulated move takes."""
    copied = 0 if move.kind is MoveKind.EVACUATE else move.memory_mb
    return _BASE[move.kind] + copied * SECOND // _MIB_PER_SECOND


@dataclass(frozen=True, slots=True)
class SimulatedMoves:
    """A `ServerMover` over the ledger alone."""

    store: Store
    ids: Ids
    settings: WriteSettings
    patience: Duration = 0

    def begin(self, move: Move) -> None:
        """See `ServerMover`.

        Raises:
            MoveRefused: the target has no room, or policies forbid the move.
        """
        found = self.store.consumer(move.server)
        try:
            if move.kind is MoveKind.EVACUATE:
                if found is None:
                    raise NotFound("server", move.server)
                self._write(move, found[0])
                return
            if found is not None:
                self._give_to_migration(move, *found)
            self._enter(move)
        except MoorageError as error:
            raise MoveRefused(error.message) from error

    def report(self, move: Move) -> MoveReport:
        """See `ServerMover`. A move whose time is over ends by this.

        Raises:
            MoverUnreachable: the ledger is out of reach.
        """
        try:
            return self._report(move)
        except MoorageError as error:
            raise MoverUnreachable(error.message) from error

    def next_end(self, move: Move) -> Instant:
        """See `ServerMover`."""
        return FOREVER if move.began_at is None else move.began_at + duration_of(move)

    def _report(self, move: Move) -> MoveReport:
        migration = _migration(move)
        moving = self.store.consumer(migration) is not None
        stands = host_of(self.store.snapshot(), move.server)
        if stands is None and moving:
            self._enter(move)  # whoever began it ended in between
            stands = move.target
        if stands is None:
            return MoveReport(MoveProgress.GONE, "the server is deleted")
        if stands == move.target:
            if self.store.now() < self.next_end(move):
                return MoveReport(MoveProgress.RUNNING)
            if moving:
                release(self.store, migration)
            return MoveReport(MoveProgress.DONE)
        if stands == move.source:
            return MoveReport(MoveProgress.IDLE)
        return MoveReport(MoveProgress.FAILED, "the server was moved to another host")

    def _give_to_migration(self, move: Move, server: Consumer, bookings: Iterable[Booking]) -> None:
        taker = Consumer(_migration(move), server.project_id, server.user_id, "MIGRATION")
        given = ReplaceAllocations(server, {}, server.generation)
        taken = ReplaceAllocations(taker, _amounts(bookings), None)
        allocate(self.store, (given, taken), ids=self.ids, settings=self.settings)

    def _enter(self, move: Move) -> None:
        """Write the server's allocations on its target; if they are refused it gets its own back.

        Raises:
            MoorageError: they are refused.
        """
        found = self.store.consumer(_migration(move))
        if found is None:
            raise NotFound("server", move.server)
        migration, bookings = found
        server = Consumer(move.server, migration.project_id, migration.user_id, "INSTANCE")
        try:
            self._write(move, server)
        except MoorageError:
            back = ReplaceAllocations(server, _amounts(bookings), None)
            given = ReplaceAllocations(migration, {}, migration.generation)
            allocate(self.store, (given, back), ids=self.ids, settings=self.settings)
            raise

    def _write(self, move: Move, server: Consumer) -> None:
        allocate(
            self.store,
            (ReplaceAllocations(server, move.allocations, ANY_GENERATION),),
            ids=self.ids,
            settings=self.settings,
            request_id=f"req-{move.server}",
        )


def _migration(move: Move) -> str:
    return str(uuid.uuid5(_MIGRATIONS, f"{move.id} {move.began_at}"))


def _amounts(bookings: Iterable[Booking]) -> Mapping[str, Amounts]:
    found: dict[str, list[Booking]] = {}
    for one in bookings:
        found.setdefault(one.provider, []).append(one)
    return {uuid_: total(one.amounts for one in some) for uuid_, some in found.items()}
