"""Heat stacks: a template with the servers that there are, and the ensemble made equal to it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.compliance import Impact
from moorage.wire.decisions import Additional, DecideBody, Decision
from moorage.wire.ensembles import Ensemble
from moorage.wire.fields import Name, Uuid
from moorage.wire.hot import NotPlaced

_Environment = Annotated[str, Meta(max_length=1_000_000)]
_File = Annotated[str, Meta(max_length=1024)]


class StackBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A stack as Heat has it: its template with what goes with it, and its servers."""

    name: Name
    template: Annotated[str, Meta(max_length=4_000_000)]
    environment: _Environment | None = None
    environment_files: Annotated[
        list[_File],
        Meta(
            max_length=100,
            description=(
                "Names of environments among the files, of which later ones win; `environment` is"
                " not read then"
            ),
        ),
    ] = []
    parameters: dict[Name, Any] = {}
    files: dict[_File, Annotated[str, Meta(max_length=4_000_000)]] = {}
    servers: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=1024)], Uuid],
        Meta(
            max_length=5_000,
            description=(
                "Path in the stack (`web/0`) -> the server there; a member of an autoscaling group"
                " has its random name in the path"
            ),
        ),
    ] = {}
    removed: Annotated[
        dict[
            Annotated[str, Meta(min_length=1, max_length=1024)],
            Annotated[list[Annotated[str, Meta(max_length=255)]], Meta(max_length=5_000)],
        ],
        Meta(
            max_length=1_000,
            description=(
                "Path of a resource group -> the names that Heat gives no member of it any more,"
                " by removal policies of earlier templates"
            ),
        ),
    ] = {}
    decide: DecideBody | None = None


class StackPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/stacks/{id}."""

    stack: StackBody


class Stack(Struct, frozen=True):
    """A stack's ensemble, which has its id, and the present decision."""

    id: str
    ensemble: Ensemble | None
    """Null for a stack that never had a server."""
    decision: Decision | None
    keys: dict[str, str]
    """Member -> its path in the stack. Members of an autoscaling group have numbers here."""
    not_placed: list[NotPlaced]
    """Of the template; empty where none was given."""
    notes: list[str]
    max_additional: dict[str, Additional]
    changed: bool
    """Whether this request changed the ensemble or decided it."""
    dry_run: bool


class OneStack(Struct, frozen=True):
    """One stack."""

    stack: Stack
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""
