"""Types of fields that many bodies have: names, ids, times, amounts; and links."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.domain.resources import MAX_AMOUNT

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
UUID_PATTERN: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
Uuid: TypeAlias = Annotated[str, Meta(pattern=UUID_PATTERN)]
IdempotencyKey: TypeAlias = Annotated[
    str,
    Meta(
        pattern=UUID_PATTERN,
        description=(
            "Idempotency key, chosen by the client: a repeat of the request with the same key"
            " changes nothing. It is not the id of what is created, which the answer has. A key"
            " is its project's own: other projects may send the same"
        ),
    ),
]
Reason: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1024)]
Duration: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=32, description="ISO 8601 (`PT10M`) or short (`10m`)")
]
Instant: TypeAlias = Annotated[str, Meta(max_length=40, description="RFC 3339 with an offset")]
Amount: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_AMOUNT)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_MEMBERS)]
Generation: TypeAlias = Annotated[int, Meta(ge=0)]
AnyOf: TypeAlias = Annotated[
    list[Name | Annotated[list[Name], Meta(min_length=1, max_length=64)]],
    Meta(max_length=64, description="All of these; a nested list means any one of its entries"),
]
Names: TypeAlias = Annotated[list[Name], Meta(max_length=256)]
Metadata: TypeAlias = Annotated[dict[Name, Annotated[str, Meta(max_length=1024)]], Meta()]


# How the service writes what it answers; see `api.native.formats`. Clients read text.
At: TypeAlias = Annotated[str, Meta(extra={"written": "instant"})]
Length: TypeAlias = Annotated[str, Meta(extra={"written": "duration"})]
Alternatives: TypeAlias = Annotated[list[str | list[str]], Meta(extra={"written": "any of"})]
FOR_OPERATORS: Final = Meta(extra={"operators": True})
"""Marks a field that only operators see."""


class Link(Struct, frozen=True):
    """A link to a related resource or the next page."""

    rel: str
    href: str
