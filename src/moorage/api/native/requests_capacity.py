"""Request bodies about capacity."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from moorage.api.native.requests import Duration, Instant, Name, Uuid
from moorage.api.native.requests_templates import ChosenTemplate


class WindowBody(Struct, frozen=True, forbid_unknown_fields=True):
    """From when to when; null: from now, and for ever."""

    start: Instant | None = None
    end: Instant | None = None


class FitBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What shall fit: members of an ensemble, or what a template or a flavor makes."""

    ensemble_id: Uuid | None = None
    role: Annotated[
        Name | None, Meta(description="Of the ensemble; null: whole ensembles like it")
    ] = None
    template: ChosenTemplate | None = None
    flavor: Annotated[Name | None, Meta(description="Its id or name")] = None
    window: Annotated[
        WindowBody | None,
        Meta(description="Null: now, for as long as the ensemble stays"),
    ] = None
    time_limit: Duration | None = None


class PlannedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Hosts that are to be away.

    `maintenance` from `start` to `end`, `decommission` from `start` on, `delivery` until `end`.
    """

    kind: Literal["maintenance", "decommission", "delivery"]
    hosts: Annotated[list[Name], Meta(max_length=5_000, description="Names or UUIDs")] = []
    domains: Annotated[list[Name], Meta(max_length=256, description="All hosts of these")] = []
    start: Annotated[Instant | None, Meta(description="Null: now")] = None
    end: Instant | None = None
    reason: Annotated[str, Meta(max_length=255)] = ""
    id: Uuid | None = None


class PlannedCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/capacity/planned."""

    window: PlannedBody


class FitCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/capacity/fit."""

    fit: FitBody
