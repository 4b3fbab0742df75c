"""The operator's external check of leases: its port, and the default if it does not answer."""

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
    """The check was not reached, took too long, or gave an invalid answer."""


class AskCheck(Protocol):
    """Calls the operator's check, within a bounded time."""

    def __call__(self, what: str, body: Mapping[str, object]) -> str | None:
        """The reason of a refusal; None: the check allows it.

        Raises:
            CheckFailed: there is no valid answer.
        """


@dataclass(frozen=True, slots=True)
class LeaseCheck:
    """The operator's check of leases, and whether leases are allowed if it does not answer."""

    ask: AskCheck
    else_allow: bool = False
