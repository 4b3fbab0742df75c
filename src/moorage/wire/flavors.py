"""Flavors in Placement's terms."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.fields import Alternatives, Amount, Link, Name, Names
from moorage.wire.groups import Group

Number: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class FlavorBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A flavor, in Placement's terms (`resources`) or in Nova's (`vcpus`, `ram`, `disk`).

    With Nova's numbers, its extra specs mean what Nova makes of them.
    """

    name: Name
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    id: Name | None = None
    required: Annotated[list[Name | list[Name]], Meta(max_length=64)] = []
    forbidden: Names = []
    extra_specs: dict[Name, str] = {}
    vcpus: Annotated[int, Meta(ge=1, le=2**31 - 1)] | UnsetType = UNSET
    ram: Number | UnsetType = UNSET
    """MiB."""
    disk: Number = 0
    """GiB, of the root disk."""
    ephemeral: Number = 0
    """GiB."""
    swap: Number = 0
    """MiB."""


class FlavorCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/flavors."""

    flavor: FlavorBody


class FlavorLoad(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/flavors/load: what `openstack flavor list --long -f json` prints, or Nova's API."""

    flavors: Annotated[list[dict[str, Any]], Meta(max_length=100_000)]


class FlavorSize(Struct, frozen=True):
    """The numbers of a flavor of Nova."""

    vcpus: int
    ram: Annotated[int, Meta(extra={"attribute": "memory_mb"})]
    """MiB."""
    disk: Annotated[int, Meta(extra={"attribute": "root_gb"})]
    """GiB, of the root disk."""
    ephemeral: Annotated[int, Meta(extra={"attribute": "ephemeral_gb"})]
    """GiB."""
    swap: Annotated[int, Meta(extra={"attribute": "swap_mb"})]
    """MiB."""


class FlavorValue(Struct, frozen=True):
    """A flavor in Placement's terms; nested lists in `required` mean "any of"."""

    id: str
    name: str
    resources: dict[str, int]
    required: Alternatives
    forbidden: list[str]
    extra_specs: dict[str, str]
    root_required: list[str] = []
    """Traits of the host itself."""
    groups: list[Group] = []
    """Numbered groups and devices."""
    group_policy: Literal["none", "isolate"] = "none"
    host_checks: list[str] = []
    """Extra specs that Nova compares with the host itself; Moorage does not."""
    labels: list[str] = []
    """Extra specs that Nova does not read when it places a server."""
    size: FlavorSize | None = None
    """Null: written in Placement's terms."""


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
