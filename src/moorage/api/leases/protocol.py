"""Versions of this dialect, its two forms of errors, and the table from error to status.

Handlers answer errors as `{"error_code", "error_message", "error_name"}`, where the name is the
number again; what goes wrong before a handler is reached is `{"error", "error_message"}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import errors
from moorage.domain.explain import Explanation
from moorage.http.microversion import Change, History

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE: Final = "reservation"
VERSION_HEADER: Final = "OpenStack-API-Version"
BEYOND: Final = "promise"
"""What is ours: filters, paging, more terms of leases, and refusals as conflicts."""
HISTORY: Final = History((Change("1.0", "blazar"), Change("1.1", BEYOND)))

NOT_ENOUGH: Final = "Not enough hosts available"
"""Blazar's whole explanation; programs look for these words."""
NOT_ENOUGH_ADDRESSES: Final = "Not enough floating IPs available"
"""The same of floating IPs."""
INTERNAL: Final = "INTERNAL_SERVER_ERROR"


class AddressesShort(errors.Infeasible):
    """There are fewer floating IPs than a reservation needs."""


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error's status and message on the wire."""

    status: int
    message: str
    explanation: str | None = None
    """The id of the explanation, from `promise` on."""

    @property
    def body(self) -> dict[str, object]:
        """The form of handlers' errors."""
        found: dict[str, object] = {
            "error_code": self.status,
            "error_message": self.message,
            "error_name": self.status,
        }
        if self.explanation is not None:
            found["explanation_id"] = self.explanation
        return found

    @property
    def early(self) -> dict[str, object]:
        """The form of errors before a handler is reached."""
        return {"error": self.status, "error_message": self.message}


_STATUS: Final[Mapping[type[errors.MoorageError], int]] = MappingProxyType(
    {
        errors.InvalidDescription: 400,
        errors.Forbidden: 403,
        errors.LimitExceeded: 403,
        errors.NotFound: 404,
        errors.Conflict: 409,
        errors.TooManyRequests: 429,
        errors.Busy: 503,
    }
)


def error_reply(error: errors.MoorageError, *, beyond: bool) -> ErrorReply:
    """The wire form of an error; `beyond`: for clients of the version `promise` or later.

    Blazar answers a lease that does not fit with 500, and with 400 where floating IPs are short.
    """
    if isinstance(error, errors.Infeasible):
        short = isinstance(error, AddressesShort)
        words = NOT_ENOUGH_ADDRESSES if short else NOT_ENOUGH
        if not beyond:
            return ErrorReply(400 if short else 500, words)
        assert isinstance(error.explanation, Explanation)
        return ErrorReply(409, f"{words}: {error.message}", error.explanation.id)
    for kind in type(error).__mro__:
        status = _STATUS.get(kind)
        if status is not None:
            return ErrorReply(status, error.message_with_path)
    return ErrorReply(500, error.message)
