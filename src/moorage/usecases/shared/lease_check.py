"""The operator's own check of leases: the port by which it is asked, and what its silence means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.errors import MoorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

CREATE: Final = "check-create"
UPDATE: Final = "check-update"
END: Final = "on-end"


class CheckFailed(MoorageError):
    """The check was not reached, took too long, or answered what is no answer."""


class AskCheck(Protocol):
    """Asks the operator's check, within a bounded time."""

    def __call__(self, what: str, body: Mapping[str, object]) -> str | None:
        """Why not; None: it may be.

        Raises:
            CheckFailed: there is no answer.
        """


@dataclass(frozen=True, slots=True)
class LeaseCheck:
    """The operator's check of leases, and the default without an answer."""

    ask: AskCheck
    else_allow: bool = False
