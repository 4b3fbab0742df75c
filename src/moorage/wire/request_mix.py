"""The mix of requests that decisions weigh."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.fields import Alternatives, Amount, AnyOf, At, Name, Names

MOST_STATED: Final = 10_000
"""So many shapes one request may state."""


class MixGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """What one provider of the host gives besides."""

    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)]
    required: AnyOf = []
    forbidden: Names = []


class MixShapeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """One shape: a flavor by name or id, or amounts with traits."""

    weight: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 1
    """How often it is asked for, in relation to the others."""
    flavor: Name | UnsetType = UNSET
    resources: Annotated[dict[Name, Amount], Meta(max_length=64)] = {}
    required: AnyOf = []
    forbidden: Names = []
    groups: Annotated[list[MixGroup], Meta(max_length=64)] = []


class RequestMixBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What others are expected to ask for."""

    shapes: Annotated[list[MixShapeBody], Meta(min_length=1, max_length=MOST_STATED)]


class RequestMixPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/request-mix."""

    request_mix: RequestMixBody


class MixShape(Struct, frozen=True):
    """One shape that is weighed."""

    weight: int
    flavors: list[str]
    """The flavors that had this shape when it was stated."""
    resources: dict[str, int]
    required: Alternatives
    """A nested list: any of these."""
    forbidden: list[str]
    groups: list[MixGroup]


class ShapeTaken(Struct, frozen=True):
    """A shape of the mix, and the room for it that a placement took."""

    weight: int
    fits: int
    """How many of it the fleet could take before."""
    taken: int
    """How many fewer afterwards."""
    resources: dict[str, int]
    required: Alternatives
    forbidden: list[str]
    groups: list[MixGroup]


class RoomTaken(Struct, frozen=True):
    """What a placement took from the room for others."""

    share: float
    """The share of the fleet's room that it took: the mean over the mix, by weight."""
    source: Literal["stated", "ledger"]
    """Where the mix was from."""
    weighed: int
    """How many shapes were weighed."""
    most: list[ShapeTaken]
    """The shapes from which it took most, at most five; others are left out."""


class RequestMix(Struct, frozen=True):
    """The mix in use, the heaviest shape first."""

    source: Literal["stated", "ledger"]
    shapes: list[MixShape]
    merged: int
    """How many more shapes there were: they were merged with others of the same classes and traits,
    or left out."""
    updated_at: At
    """When it was stated; of the ledger's: now."""


class OneRequestMix(Struct, frozen=True):
    """The mix in use."""

    request_mix: RequestMix
