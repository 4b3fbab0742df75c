"""Extending and shrinking an ensemble, and headroom for members that it does not have yet."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.wire.compliance import Impact
from moorage.wire.decisions import Additional, DecideBody, Decision
from moorage.wire.ensembles import Ensemble
from moorage.wire.fields import Count, IdempotencyKey, Name

_Some = Annotated[int, Meta(ge=1, le=MAX_MEMBERS)]


class SizeBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How many members of which roles: `role` with `count` or `size`, or `roles`, or `sizes`."""

    role: Name | None = None
    count: _Some | None = None
    """With `role`: how many come, or leave."""
    size: Count | None = None
    """With `role`: how many it shall have then. Nothing happens if it has so many already."""
    roles: dict[Name, _Some] = {}
    """Several roles, decided jointly: how many of each come, or leave."""
    sizes: dict[Name, Count] = {}
    """Several roles, decided jointly: how many each shall have then, as with `size`."""
    id: IdempotencyKey | None = None
    """For safe retry: the same request under the same id changes nothing more."""


class ExtendBody(SizeBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """More members. Present ones keep their places."""

    movable: bool = False
    """Whether present members that have no server yet may move."""
    least: _Some | None = None
    """As many as fit, of several roles equally many less of each; but at least so many of the role
    that gets the most. Without it all of them, or none."""
    decide: DecideBody | None = None


class EnsembleExtend(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/ensembles/{id}/extend."""

    extend: ExtendBody


class Extended(Struct, frozen=True):
    """An extended ensemble."""

    ensemble: Ensemble
    decision: Decision | None
    """Null where it had its size, and was never decided."""
    members: list[str]
    """The new members."""
    from_headroom: int
    """How many of them have a place that was held as headroom."""
    max_additional: dict[str, Additional]
    """How many more members of each role fit after this."""
    dry_run: bool


class OneExtended(Struct, frozen=True):
    """What came of an extension."""

    extend: Extended
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class HeadroomBody(Struct, frozen=True, forbid_unknown_fields=True):
    """For how many more members of a role places are held, until another number is set."""

    role: Name
    count: Count


class HeadroomPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/ensembles/{id}/headroom."""

    headroom: HeadroomBody


class Headroom(Struct, frozen=True):
    """An ensemble with its headroom."""

    ensemble: Ensemble
    dry_run: bool


class OneHeadroom(Struct, frozen=True):
    """What came of setting a headroom."""

    headroom: Headroom


class ShrinkBody(SizeBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fewer members. Who leaves is chosen so that the policies keep holding."""

    prefer: Annotated[list[Name], Meta(max_length=MAX_MEMBERS)] = []
    """Members that leave rather than others, the first most of all."""
    servers: bool = True
    """Whether members with a server may leave; the server itself is not deleted."""


class EnsembleShrink(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/ensembles/{id}/shrink."""

    shrink: ShrinkBody


class GoneMember(Struct, frozen=True):
    """A member that left, and its server."""

    name: str
    role: str
    server_id: str | None


class Shrunk(Struct, frozen=True):
    """A shrunk ensemble."""

    ensemble: Ensemble
    decision: Decision | None
    victims: list[GoneMember]
    """The members that left. Their servers keep their allocations until they are deleted."""
    after: Annotated[
        dict[str, dict[str, dict[str, int]]],
        Meta(
            description=(
                "Role -> level -> domain -> how many members stay there: opaque labels for tenants,"
                " names for operators"
            )
        ),
    ]
    dry_run: bool


class OneShrunk(Struct, frozen=True):
    """What came of a shrinking."""

    shrink: Shrunk
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""
