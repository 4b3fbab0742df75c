"""Shares: roles of ensembles that belong to other projects."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from moorage.wire.compliance import Impact
from moorage.wire.ensembles import Role
from moorage.wire.fields import Link


class Share(Struct, frozen=True):
    """A role that one project's ensemble offers to another project."""

    id: str
    status: Literal["offered", "accepted", "revoked"]
    ensemble_id: str
    ensemble: str
    """The ensemble's name."""
    owner_project_id: str
    """The ensemble's project, which gives the share."""
    project_id: str
    """The role's project, which accepts it."""
    role: Role
    links: list[Link]
    dry_run: bool = False


class OneShare(Struct, frozen=True):
    """One share."""

    share: Share
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class Shares(Struct, frozen=True):
    """A page of shares."""

    shares: list[Share]
    shares_links: list[Link]
