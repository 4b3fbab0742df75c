"""Who ends servers in a simulation, where none run: what is left of one is in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.errors import MoorageError, NotFound
from moorage.usecases.allocate import release
from moorage.usecases.effects import OutwardFailure

if TYPE_CHECKING:
    from moorage.usecases.effects import Message
    from moorage.usecases.ports import Store


@dataclass(frozen=True, slots=True)
class Simulated:
    """Ends a server as Nova does, as far as Placement hears of it: its allocations go."""

    store: Store

    def __call__(self, message: Message) -> str:
        """See `Act`.

        Raises:
            OutwardFailure: others kept changing its allocations.
        """
        try:
            release(self.store, message.subject)
        except NotFound:
            return "there is no such server"
        except MoorageError as error:
            raise OutwardFailure(error.message) from error
        return "its allocations are deleted"
