"""/resource_providers and /resource_providers/{uuid}."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
import numpy as np

from moorage.api.placement import query
from moorage.api.placement.precedence import refuse_first
from moorage.api.placement.rendering import assembled, just_now
from moorage.api.placement.unknown_names import filters_exist
from moorage.domain.changes import Changeset, PutAggregates
from moorage.domain.errors import MoorageError
from moorage.domain.requests import RequestGroup
from moorage.http.microversion import Response
from moorage.usecases.ledger import providers as usecase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.api.placement.fragments import Encode
    from moorage.api.placement.request import Environment, Request
    from moorage.domain.period import Instant
    from moorage.domain.providers import ResourceProvider
    from moorage.engine.state.snapshot import Snapshot
    from moorage.http.microversion import JSON

LINKS = ("inventories", "usages", "aggregates", "traits", "allocations")


def shape(provider: ResourceProvider, mount: str) -> JSON:
    """A provider as the wire shows it."""
    own = f"{mount}/resource_providers/{provider.uuid}"
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": [
            {"rel": "self", "href": own},
            *({"rel": rel, "href": f"{own}/{rel}"} for rel in LINKS),
        ],
        "parent_provider_uuid": provider.parent_uuid,
        "root_provider_uuid": provider.root_uuid,
    }


def encoder(mount: str) -> Encode:
    """Encodes providers as they are shown below a mount point."""
    encode = msgspec.json.Encoder().encode
    return lambda _snapshot, _row, state: encode(shape(state.provider, mount))


def modified(provider: ResourceProvider) -> int:
    """When the provider last changed."""
    return provider.updated_at or provider.created_at


def list_all(env: Environment, request: Request) -> Response:
    """Providers that pass every filter of the query."""
    snapshot = env.store.snapshot()
    group = _filters(request)
    if not filters_exist(env, snapshot, group):
        return Response(body={"resource_providers": []}, modified=snapshot.taken_at)
    rows = usecase.matching(snapshot, group, name=request.value("name"), uuid=request.value("uuid"))
    shown = env.shapes(request.mount)
    return Response(
        body=assembled(b'{"resource_providers":[', shown.of(snapshot, rows), b"]}"),
        modified=_newest(snapshot, rows) if len(rows) else snapshot.taken_at,
    )


def _newest(snapshot: Snapshot, rows: NDArray[np.int64]) -> int:
    """The time of the last change of any of the rows."""
    updated, created = snapshot.updated_at[rows], snapshot.created_at[rows]
    return int(np.where(updated != 0, updated, created).max())


def _filters(request: Request) -> RequestGroup:
    """The query as a request that a single provider must meet alone."""
    text = request.value("resources")
    resources: Mapping[str, int] = {} if text is None else query.resources(text)
    member_of = query.aggregates(request)
    traits = query.traits(request, "required")
    return RequestGroup(
        resources=resources,
        required=traits.required,
        forbidden=traits.forbidden,
        member_of=member_of.required,
        not_member_of=member_of.forbidden,
        in_tree=request.value("in_tree"),
    )


def create(env: Environment, request: Request) -> Response:
    """Create a provider, with a generated UUID if the body names none."""
    body = request.json()
    given = body.get("uuid")
    uuid = str(UUID(given)) if given else env.ids.uuid()
    created = usecase.create(
        env.store, uuid=uuid, name=body["name"], parent=body.get("parent_provider_uuid")
    )
    return Response(
        body=shape(created, request.mount),
        location=f"/resource_providers/{uuid}",
        modified=modified(created),
    )


def show(env: Environment, request: Request) -> Response:
    """One provider."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    return Response(body=shape(provider, request.mount), modified=modified(provider))


def update(env: Environment, request: Request) -> Response:
    """Change the name, and where the body names a parent (or null) the parent."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    body = request.json()
    if "parent_provider_uuid" in body:
        updated = usecase.update(
            env.store,
            provider.uuid,
            name=body["name"],
            parent=body["parent_provider_uuid"],
            movable=usecase.ANYWHERE if request.has("re-parenting") else usecase.FROM_ROOT_ONLY,
        )
    else:
        updated = usecase.rename(env.store, provider.uuid, body["name"])
    # The reference dates the answer by the change before this one; to become a root is one.
    first = provider.parent_uuid is not None and provider.updated_at in {0, provider.created_at}
    return Response(body=shape(updated, request.mount), modified=modified(updated), undated=first)


def delete(env: Environment, request: Request) -> Response:
    """Remove a provider with its inventories, traits and aggregate links."""
    usecase.delete(env.store, request.path["uuid"])
    return Response(status=204)


def show_aggregates(env: Environment, request: Request) -> Response:
    """The aggregates a provider is a member of."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    return _aggregates(sorted(provider.aggregates), provider.generation, just_now())


def replace_aggregates(env: Environment, request: Request) -> Response:
    """Replace the aggregates; `resource_provider_generation` None: neither checked nor moved."""
    try:
        body, uuid = request.json(), request.path["uuid"]
        aggregates, expected = body["aggregates"], body["resource_provider_generation"]
        change = PutAggregates(uuid, frozenset(aggregates), expected)
        committed = env.store.commit(Changeset((change,)))
    except MoorageError:
        refuse_first(env, request)
        raise
    return _aggregates(aggregates, committed.provider_generations[uuid], committed.at)


def _aggregates(aggregates: Iterable[str], generation: int, modified: Instant) -> Response:
    body = {"aggregates": list(aggregates), "resource_provider_generation": generation}
    return Response(body=body, modified=modified)
