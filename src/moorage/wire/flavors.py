"""Flavors in Placement's terms."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from moorage.wire.fields import Amount, Link, Name, Names


class FlavorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A flavor in Placement's terms."""

    name: Name
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)]
    id: Name | None = None
    required: Annotated[list[Name | list[Name]], Meta(max_length=64)] = []
    forbidden: Names = []
    extra_specs: dict[Name, str] = {}


class FlavorCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/flavors."""

    flavor: FlavorBody


class FlavorLoad(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/flavors/load: the JSON that `openstack flavor list --long -f json` prints."""

    flavors: Annotated[list[dict[str, Any]], Meta(max_length=100_000)]


class FlavorValue(Struct, frozen=True):
    """A flavor in Placement's terms; nested lists in `required` mean "any of"."""

    id: str
    name: str
    resources: dict[str, int]
    required: list[str | list[str]]
    forbidden: list[str]
    extra_specs: dict[str, str]


class OneFlavor(Struct, frozen=True):
    """One flavor."""

    flavor: FlavorValue


class Flavors(Struct, frozen=True):
    """A page of flavors, by name."""

    flavors: list[FlavorValue]
    flavors_links: list[Link]


class RefusedFlavor(Struct, frozen=True):
    """A flavor of a listing that was not loaded; `row` counts from 0."""

    row: int
    id: str
    name: str
    path: str | None
    why: str


class LoadedFlavors(Struct, frozen=True):
    """The result of loading a listing of flavors."""

    flavors: list[FlavorValue]
    refused: list[RefusedFlavor]
