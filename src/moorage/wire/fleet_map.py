"""The fleet as a map: columns for every host and block, and what has changed of them."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moorage.wire.fields import At


class Blocks(Struct, frozen=True):
    """The domains of the level, in the order in which they are drawn, as columns.

    Hosts outside of the tree are in a last block without a name.
    """

    name: list[str]
    parent: list[int]
    """Index into the parents; -1: in none."""
    first: list[int]
    """Index of its first host."""
    count: list[int]
    free: list[int]
    """What is not booked of the class, on hosts that are in service."""
    capacity: list[int]
    fits: list[int] | None
    """How many of the flavor fit."""


class Parents(Struct, frozen=True):
    """The domains of the level above."""

    level: str | None
    name: list[str]


class MapHosts(Struct, frozen=True):
    """The hosts by block, then by name, as columns."""

    name: list[str]
    fill: Annotated[
        str,
        Meta(
            description="Base64 of a byte each: the percentage that is booked, up to 200;"
            " 255: the host has none of the class"
        ),
    ]
    flags: Annotated[
        str,
        Meta(
            description="Base64 of two bytes each, the low one first: 1 closed, 2 down, 4 away,"
            " 8 more is booked than there is, 16 an open violation concerns a member there,"
            " 32 fails a filter, 64 held or reserved without a server, 128 kept for one project"
            " or ensemble"
        ),
    ]
    fits: Annotated[
        str | None, Meta(description="Base64 of a byte each: how many of the flavor fit, up to 255")
    ]


class ChangedHosts(Struct, frozen=True):
    """The hosts that differ from the map before, by their index, as columns."""

    index: list[int]
    fill: str
    flags: str
    fits: str | None


class ChangedBlocks(Struct, frozen=True):
    """The columns of all blocks that may differ from the map before."""

    free: list[int]
    capacity: list[int]
    fits: list[int] | None


class FleetMap(Struct, frozen=True):
    """A map, or with `since` what has changed."""

    revision: int
    tag: str
    """Names what the map shows; `since` takes it."""
    at: At
    computed_at: At
    since: str | UnsetType = UNSET
    """The tag of the map before. Then there is `changed` and none of the fields below."""
    changed: ChangedHosts | UnsetType = UNSET
    changed_blocks: ChangedBlocks | UnsetType = UNSET
    resource_class: str | UnsetType | None = field(default=UNSET, name="class")
    classes: list[str] | UnsetType = UNSET
    trees: dict[str, list[str]] | UnsetType = UNSET
    tree: str | UnsetType = UNSET
    level: str | UnsetType | None = UNSET
    blocks: Blocks | UnsetType = UNSET
    parents: Parents | UnsetType = UNSET
    hosts: MapHosts | UnsetType = UNSET


class OneFleetMap(Struct, frozen=True):
    """GET /v1/fleet/map."""

    map: FleetMap
