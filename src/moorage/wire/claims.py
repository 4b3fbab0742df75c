"""Claims: members' places taken for servers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.decisions import Decision
from moorage.wire.fields import At, Duration, IdempotencyKey, Link, Reason, Uuid


class ClaimBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The second step: `server` is the server request, as it would go to Nova."""

    member: Annotated[str, Meta(min_length=1, max_length=140)]
    server: dict[str, Any] = {}
    """Of a slice, volume or port it may be empty: it is as described."""
    id: IdempotencyKey | None = None
    lifetime: Duration | None = None
    on_mismatch: Literal["refuse", "redecide_member"] = "refuse"


class ClaimCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/decisions/{id}/claims."""

    claim: ClaimBody


class ClaimPatchBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The result of the build. `active` has the id of the server, volume, port or slice.

    No other has a `server_id`, and only `failed` has an `on_failure` and a `reason`. `ended` is for
    what is no server: its owner says that it is gone.
    """

    status: Literal["active", "failed", "ended"]
    server_id: Uuid | None = None
    on_failure: Literal["release", "redecide"] = "release"
    reason: Reason | None = None
    """Why it has failed."""


class ClaimPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/claims/{id}."""

    claim: ClaimPatchBody


class Difference(Struct, frozen=True, omit_defaults=True):
    """One field of the second description. `effect`: exceeds, narrower, missing, ignored."""

    path: str
    effect: str
    described: Any = None
    requested: Any = None


class Comparison(Struct, frozen=True):
    """The second description against the first: `matches` or `narrower`."""

    verdict: str
    diff: list[Difference]


class PresentAs(Struct, frozen=True):
    """How the server request presents its claim to the scheduler."""

    header: dict[str, str]


class ServerPatch(Struct, frozen=True):
    """What to add to the server request, so that the server is identified as the member."""

    metadata: dict[str, str]


class Claim(Struct, frozen=True):
    """One member's place, taken for a real server."""

    id: str
    decision_id: str
    ensemble_id: str
    project_id: str
    member: str
    status: str
    expires_at: At | None
    server_id: str | None
    comparison: Comparison
    present_as: PresentAs | None
    """Null for slices, volumes and ports, of which Nova knows nothing."""
    server_patch: ServerPatch | None
    reason: str | None
    """Why it failed; null where nothing was said."""
    created_at: At
    updated_at: At
    links: list[Link]
    dry_run: bool = False
    idempotency_key: str | None = None
    """The `id` that its client sent with the request, by which that client knows it for its own;
    null where none was sent."""


class OneClaim(Struct, frozen=True):
    """One claim; `decision` where the member was decided anew."""

    claim: Claim
    decision: Decision | UnsetType = UNSET


class Claims(Struct, frozen=True):
    """A page of the claims of a decision."""

    claims: list[Claim]
    claims_links: list[Link]
