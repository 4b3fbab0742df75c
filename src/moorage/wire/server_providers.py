"""Server providers: what servers offer to slices."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from moorage.wire.fields import Amount, At, Link, Name, Reason, Uuid

_MOST = 32
Classes: TypeAlias = Annotated[dict[Name, Amount], Meta(min_length=1, max_length=_MOST)]
Sharing: TypeAlias = (
    Literal["nobody", "everyone"] | Annotated[list[Name], Meta(min_length=1, max_length=256)]
)


class ServerProviderBody(Struct, frozen=True, forbid_unknown_fields=True):
    """All that a server offers."""

    resources: Classes
    """Custom resource class -> how much of it."""
    traits: Annotated[list[Name], Meta(max_length=_MOST)] = []
    """Custom or standard."""
    shared_with: Sharing = "nobody"
    """Which other projects may place slices there: `nobody`, `everyone`, or a list of ids."""


class ServerProviderPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/server-providers/{server_id}."""

    server_provider: ServerProviderBody


class OfferedResource(Struct, frozen=True):
    """What a server offers of one class."""

    total: int
    """Rounded down where it is another project's."""
    used: int | None
    """The most that is booked at any time from now on; null where it is another project's."""


class ServerProvider(Struct, frozen=True):
    """What a server offers. What is null is not shown to other projects."""

    id: str
    """By which other projects name it."""
    server_id: str | None
    project_id: str | None
    status: Literal["active", "suspended"]
    """Suspended: its server has no place now, as a shelved one has none."""
    resources: dict[str, OfferedResource]
    traits: list[str]
    shared_with: Sharing | None
    offered_by: Literal["own", "operator", "project"]
    """Who has said what it offers: the caller's project, an operator, or another project. Roles of
    slices name those of other projects, see `servers_of`."""
    host: str | None
    """For operators: where it is."""
    created_at: At | None
    updated_at: At | None


class OneServerProvider(Struct, frozen=True, omit_defaults=True):
    """One server provider."""

    server_provider: ServerProvider
    dry_run: bool = False


class ServerProviders(Struct, frozen=True):
    """A page of server providers, by creation."""

    server_providers: list[ServerProvider]
    server_providers_links: list[Link]


class SlicePatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What became of a slice that is claimed. `active` needs its UUID, such as its port's."""

    status: Literal["active", "failed", "ended"]
    slice_id: Uuid | None = None
    reason: Reason | None = None
    """Why it has failed."""


class SlicePatch(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/server-providers/{server_id}/slices/{id}."""

    slice: SlicePatchBody


class Slice(Struct, frozen=True):
    """A slice on a server, as the server's owner sees it."""

    id: str
    """Its claim's; where the allocation has no claim any more, the slice's own."""
    status: str
    slice_id: str | None
    """Its UUID once it is active."""
    resources: dict[str, int]
    """What it takes of the server."""
    project_id: str | None
    """Whose it is; null unless the owner shares the server with that project by its id."""


class OneSlice(Struct, frozen=True, omit_defaults=True):
    """One slice."""

    slice: Slice
    dry_run: bool = False


class Slices(Struct, frozen=True):
    """A page of the slices on a server that are building or active, by id."""

    slices: list[Slice]
    slices_links: list[Link]
