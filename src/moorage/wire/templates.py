"""Templates: descriptions with parameters, in versions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from moorage.wire.decisions import DecideBody
from moorage.wire.fields import At, IdempotencyKey, Link, Name

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
    """A template by its id or name, `upf@2` for a version; absent parameters have defaults."""

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
    """A template to create. Only operators may share one with every project."""

    name: Annotated[str, Meta(min_length=1, max_length=255, pattern="^[^@]*$")]
    source: Written
    format: Literal["moorage", "hot"] = "moorage"
    shared: bool = False
    id: IdempotencyKey | None = None


class TemplateCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/templates."""

    template: TemplateBody


class InstanceBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An ensemble to create from a template; absent parameters take their defaults."""

    parameters: Given = {}
    name: Name | None = None
    id: IdempotencyKey | None = None
    decide: DecideBody | None = None


class InstanceCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/templates/{id}/instances."""

    instance: InstanceBody = InstanceBody()


class Template(Struct, frozen=True):
    """One version of a template; `source` is the description without its parameters."""

    id: str
    name: str
    version: int
    format: str
    project_id: str
    shared: bool
    parameters: dict[str, dict[str, Any]]
    """What may be chosen; a Heat template declares its own, in its text."""
    source: dict[str, Any]
    created_at: At
    links: list[Link]


class OneTemplate(Struct, frozen=True):
    """One version of a template."""

    template: Template
    dry_run: bool = False


class Templates(Struct, frozen=True):
    """A page of templates, each in its newest version."""

    templates: list[Template]
    templates_links: list[Link]
