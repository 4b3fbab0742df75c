"""Request groups as answers show them."""

from __future__ import annotations

from msgspec import Struct


class Group(Struct, frozen=True):
    """What a member needs of one provider beside its own resources."""

    name: str
    resources: dict[str, int]
    required: list[str | list[str]]
    forbidden: list[str]
    member_of: list[str | list[str]]
    same_subtree: bool
    """Whether it is of one subtree with what gives the member's own resources."""
