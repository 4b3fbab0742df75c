"""What this API adds to HTTP: version negotiation, preconditions, and their errors."""

from __future__ import annotations

import re
from typing import Final

from moorage.domain.errors import InvalidDescription, MoorageError

SERVICE: Final = "ensemble"
VERSION_HEADER: Final = "OpenStack-API-Version"
MIN_VERSION: Final = (1, 0)
MAX_VERSION: Final = (1, 0)

_ETAG: Final = re.compile(r'(?:W/)?"(?P<generation>\d{1,18})"', re.ASCII)
_NUMBER: Final = re.compile(r"(\d{1,4})\.(\d{1,4})", re.ASCII)


class UnsupportedVersion(MoorageError):
    """The asked-for version is not served here."""


class PreconditionRequired(MoorageError):
    """A change must say which generation it changes."""


class PreconditionFailed(MoorageError):
    """The generation in `If-Match` is not the present one."""


class MethodNotAllowed(MoorageError):
    """The resource has no such verb; `allowed` lists those it has."""

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"{method} is not possible here; possible: {', '.join(allowed)}")
        self.allowed = allowed


class UnsupportedMediaType(MoorageError):
    """The body is not JSON."""


def version_text(version: tuple[int, int]) -> str:
    """`1.0`."""
    return f"{version[0]}.{version[1]}"


def negotiate(header: str | None) -> tuple[int, int]:
    """The version that answers a request with this header.

    The header may list several services (`compute 2.90, ensemble 1.0`); only ours counts.

    Raises:
        UnsupportedVersion: a version that is not served.
        InvalidDescription: not a version.
    """
    asked = _asked(header)
    if asked is None or asked == "latest":
        return MAX_VERSION
    match = _NUMBER.fullmatch(asked)
    if match is None:
        raise InvalidDescription(f"not a version: {asked!r}", path=VERSION_HEADER)
    version = (int(match[1]), int(match[2]))
    if not MIN_VERSION <= version <= MAX_VERSION:
        low, high = version_text(MIN_VERSION), version_text(MAX_VERSION)
        raise UnsupportedVersion(f"version {asked} is not served; served are {low} to {high}")
    return version


def if_match(header: str | None) -> int | None:
    """The generation named by `If-Match`; None for `*` and without the header.

    Raises:
        InvalidDescription: neither `*` nor an entity tag of this API.
    """
    if header is None or header.strip() == "*":
        return None
    match = _ETAG.fullmatch(header.strip())
    if match is None:
        raise InvalidDescription(f'If-Match must be like "7", not {header!r}', path="If-Match")
    return int(match["generation"])


def _asked(header: str | None) -> str | None:
    for part in (header or "").split(","):
        service, _, version = part.strip().partition(" ")
        if service == SERVICE:
            return version.strip()
    return None
