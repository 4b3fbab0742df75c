"""Heat templates, placed jointly."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from moorage.wire.decisions import DecideBody, Decision
from moorage.wire.ensembles import Ensemble
from moorage.wire.fields import IdempotencyKey, Name, Uuid


class HotBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A Heat template and what goes with it."""

    template: Annotated[str, Meta(max_length=4_000_000)]
    environment: Annotated[str, Meta(max_length=1_000_000)] | None = None
    environment_files: Annotated[
        list[Annotated[str, Meta(max_length=1024)]],
        Meta(
            max_length=100,
            description=(
                "Names of environments among the files, of which later ones win; `environment` is"
                " not read then"
            ),
        ),
    ] = []
    parameters: dict[Name, Any] = {}
    files: dict[
        Annotated[str, Meta(max_length=1024)], Annotated[str, Meta(max_length=4_000_000)]
    ] = {}
    name: Name = "stack"
    ensemble_id: Uuid | None = None
    """Use this ensemble's decision; without it a new ensemble is made, decided and held."""
    id: IdempotencyKey | None = None
    decide: DecideBody | None = None
    bind: Annotated[
        Literal["hints", "flavors", "none"],
        Meta(description="How the written template makes servers take the held places"),
    ] = "hints"
    emit: Annotated[bool, Meta(description="Whether to write the template with its decision")] = (
        True
    )


class HotCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/hot."""

    hot: HotBody


class NotPlaced(Struct, frozen=True):
    """A resource of a template that takes no place of its own, with the reason."""

    path: str
    type: str
    why: str


class ScalingGroup(Struct, frozen=True):
    """A group that Heat grows and shrinks, which has a role's members."""

    path: str
    least: int
    most: int
    desired: int


class Hot(Struct, frozen=True):
    """A placed template: the decision, and the template that carries it."""

    ensemble: Ensemble
    decision: Decision
    keys: dict[str, str]
    """Member -> its path in the stack."""
    scaling: dict[str, ScalingGroup]
    """Role -> its scaling group. The decision's `max_additional` counts how many more fit."""
    not_placed: list[NotPlaced]
    notes: list[str]
    template: str
    """The same template, with the decision in metadata that plain Heat passes over, and bound.

    It needs no environment. After a dry run, or without `emit`, the template as it came.
    """
    files: dict[str, str]
    """The nested templates and other files that go with it, by name relative to it."""
    dry_run: bool
