"""What is told of templates."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from moorage.api.native.answers import Link


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
    created_at: str
    links: list[Link]


class OneTemplate(Struct, frozen=True):
    """One version of a template."""

    template: Template
    dry_run: bool = False


class Templates(Struct, frozen=True):
    """A page of templates, each in its newest version."""

    templates: list[Template]
    templates_links: list[Link]
