"""Names of the service and its headers, Nova's form of errors, and the table to statuses."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain import errors

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVICE: Final = "compute"
VERSION_HEADER: Final = "OpenStack-API-Version"
LEGACY_HEADER: Final = "X-OpenStack-Nova-API-Version"
"""The version alone, as clients sent it before `OpenStack-API-Version`."""

_FAULTS: Final[Mapping[int, str]] = MappingProxyType(
    {
        400: "badRequest",
        403: "forbidden",
        404: "itemNotFound",
        409: "conflictingRequest",
        429: "overLimit",
        503: "serviceUnavailable",
    }
)
"""Names of faults by status; every other is a `computeFault`."""
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


@dataclass(frozen=True, slots=True)
class Fault:
    """An error's status and message on the wire."""

    status: int
    message: str

    @property
    def body(self) -> dict[str, object]:
        """Nova's form of errors."""
        told = {"code": self.status, "message": self.message}
        return {_FAULTS.get(self.status, "computeFault"): told}


def fault(error: errors.MoorageError) -> Fault:
    """The wire form of an error."""
    for kind in type(error).__mro__:
        status = _STATUS.get(kind)
        if status is not None:
            return Fault(status, error.message_with_path)
    return Fault(500, error.message)
