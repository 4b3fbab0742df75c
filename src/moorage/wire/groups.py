"""Request groups as answers show them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from moorage.wire.fields import Alternatives


class Group(Struct, frozen=True):
    """What a member needs of one provider beside its own resources."""

    name: str
    resources: dict[str, int]
    required: Alternatives
    forbidden: list[str]
    member_of: Alternatives
    same_subtree: Annotated[bool, Meta(extra={"attribute": "beside"})]
    """Whether it is of one subtree with what gives the member's own resources."""
