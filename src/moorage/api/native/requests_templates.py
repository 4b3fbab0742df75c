"""Request bodies about templates."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from moorage.api.native.requests import DecideBody, Name, Uuid

Given = Annotated[dict[Name, Any], Meta(max_length=64, description="Parameter -> value")]
Written = Annotated[
    dict[str, Any],
    Meta(
        description=(
            "`moorage`: a description (`members`, `policies`, ...) with `parameters`, in which"
            " `{name}` stands for a parameter; `hot`: `template`, `environment` and `files`, as"
            " text"
        )
    ),
]


class ChosenTemplate(Struct, frozen=True, forbid_unknown_fields=True):
    """A template by its id or name, `upf@2` for a version; what is not given takes its default."""

    name: Name
    parameters: Given = {}


class VersionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The next version of a template."""

    source: Written
    format: Literal["moorage", "hot"] = "moorage"
    shared: bool = False


class VersionCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/templates/{id}/versions."""

    template: VersionBody


class TemplateBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A template to keep. Only operators share one with every project."""

    name: Annotated[str, Meta(min_length=1, max_length=255, pattern="^[^@]*$")]
    source: Written
    format: Literal["moorage", "hot"] = "moorage"
    shared: bool = False
    id: Uuid | None = None


class TemplateCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/templates."""

    template: TemplateBody


class InstanceBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An ensemble to make of a template; parameters not given take their defaults."""

    parameters: Given = {}
    name: Name | None = None
    id: Uuid | None = None
    decide: DecideBody | None = None


class InstanceCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/templates/{id}/instances."""

    instance: InstanceBody = InstanceBody()
