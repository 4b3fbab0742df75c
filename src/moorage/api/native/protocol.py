"""Version negotiation, preconditions, and their errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription, MoorageError
from moorage.http.microversion import Change, History, InvalidVersion, UnacceptableVersion

if TYPE_CHECKING:
    from moorage.http.microversion import Version

SERVICE: Final = "ensemble"
VERSION_HEADER: Final = "OpenStack-API-Version"
HISTORY: Final = History((Change("1.0", "native"),))
"""Every version of this API, the newest last."""

PREFER: Final = "Prefer"
APPLIED: Final = "Preference-Applied"
_PREFERENCE: Final = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*")+')
_WAIT: Final = re.compile(
    r'\s*wait\s*=\s*"?(?P<seconds>\d{1,6})"?\s*(?:;|$)', re.ASCII | re.IGNORECASE
)

_ETAG: Final = re.compile(r'(?:W/)?"(?P<generation>\d{1,18})"', re.ASCII)


class UnsupportedVersion(MoorageError):
    """The requested version is not supported."""


class PreconditionRequired(MoorageError):
    """A change must name the generation it changes."""


class PreconditionFailed(MoorageError):
    """The generation in `If-Match` is not the current one."""


class MethodNotAllowed(MoorageError):
    """The resource has no such verb; `allowed` lists those it has."""

    def __init__(self, method: str, allowed: tuple[str, ...]) -> None:
        super().__init__(f"{method} is not possible here; possible: {', '.join(allowed)}")
        self.allowed = allowed


class UnsupportedMediaType(MoorageError):
    """The body is not JSON."""


def negotiate(header: str | None) -> Version:
    """The version for this header; see `http.microversion`.

    Raises:
        UnsupportedVersion: a version that is not served.
        InvalidDescription: not a version.
    """
    try:
        return HISTORY.negotiated(header, SERVICE).version
    except InvalidVersion as error:
        raise InvalidDescription(f"not a version: {str(error)!r}", path=VERSION_HEADER) from None
    except UnacceptableVersion as error:
        raise UnsupportedVersion(
            f"version {error.asked} is not served; served are {error.minimum} to {error.maximum}"
        ) from None


def preferred_wait(header: str | None) -> int | None:
    """The seconds of `wait` in a header `Prefer` (RFC 7240); None: it says none.

    What is not known or malformed is ignored, as the RFC has it; of several the first counts.
    """
    preferences = (_WAIT.match(one) for one in _PREFERENCE.findall(header or ""))
    return next((int(match["seconds"]) for match in preferences if match), None)


def if_match(header: str | None) -> int | None:
    """The generation in `If-Match`; None for `*` and without the header.

    Raises:
        InvalidDescription: neither `*` nor an entity tag of this API.
    """
    if header is None or header.strip() == "*":
        return None
    match = _ETAG.fullmatch(header.strip())
    if match is None:
        raise InvalidDescription(f'If-Match must be like "7", not {header!r}', path="If-Match")
    return int(match["generation"])


def if_none_match(header: str | None) -> frozenset[str]:
    """The entity tags in `If-None-Match`, weak or not, without their quotes; `*` as it is."""
    if header is None:
        return frozenset()
    if header.strip() == "*":
        return frozenset({"*"})
    return frozenset(_TAG.findall(header))


_TAG: Final = re.compile('"([^"]*)"')
