"""Request groups: what one provider gives a member beside its own resources."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from moorage.domain.resources import Amounts, Trait


class GroupKind(StrEnum):
    """What a request group stands for; placing treats all alike."""

    PORT = "port"
    VOLUME = "volume"
    GROUP = "group"
    FLAVOR = "flavor"
    """Of the flavor: a numbered group of its extra specs, or a device."""


@dataclass(frozen=True, slots=True)
class Group:
    """What one provider of the host's tree, or one that shares with it, gives a member.

    Placement's suffixed request group: a single provider gives all of `resources` and has the
    traits and aggregates itself. Without resources it only names a provider, so that a subtree
    can be the one below it.
    """

    name: str
    resources: Amounts
    kind: GroupKind = GroupKind.GROUP
    required: tuple[frozenset[Trait], ...] = ()
    forbidden: frozenset[Trait] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    beside: bool = False
    """Whether it must be of one subtree with what gives the member's own resources."""
