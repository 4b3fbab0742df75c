"""Request bodies about capacity."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from moorage.api.native.requests import Duration, Instant, Name, Uuid
from moorage.api.native.requests_templates import Given


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
    template: Annotated[Name | None, Meta(description="Its id or name, `upf` or `upf@3`")] = None
    parameters: Given = {}
    flavor: Annotated[Name | None, Meta(description="Its id or name")] = None
    window: Annotated[
        WindowBody | None,
        Meta(description="Null: now, for as long as the ensemble stays"),
    ] = None
    time_limit: Duration | None = None


class FitCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/capacity/fit."""

    fit: FitBody
