"""Versions of the API."""

from __future__ import annotations

from msgspec import Struct

from moorage.wire.fields import Link


class Version(Struct, frozen=True):
    """One version of this API."""

    id: str
    status: str
    min_version: str
    max_version: str
    links: list[Link]


class Versions(Struct, frozen=True):
    """The version document."""

    version: Version
