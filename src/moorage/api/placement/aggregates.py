"""/resource_providers/{uuid}/aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutAggregates
from moorage.domain.errors import ProviderConflict
from moorage.http.microversion import Response
from moorage.usecases import providers as usecase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.placement.request import Parts, Request


def show(parts: Parts, request: Request) -> Response:
    """The aggregates a provider is a member of."""
    provider = usecase.one(parts.store, request.path["uuid"])
    return _shown(parts, sorted(provider.aggregates), provider.generation)


def replace(parts: Parts, request: Request) -> Response:
    """A new set of aggregates; `resource_provider_generation` None: neither checked nor moved."""
    provider = usecase.one(parts.store, request.path["uuid"])
    body = request.json()
    expected = body["resource_provider_generation"]
    if expected is not None and expected != provider.generation:
        raise ProviderConflict("generation moved", subject=provider.uuid)
    aggregates = body["aggregates"]
    change = PutAggregates(provider.uuid, frozenset(aggregates), expected)
    committed = parts.store.commit(Changeset((change,)))
    generation = committed.provider_generations.get(provider.uuid, provider.generation)
    return _shown(parts, aggregates, generation)


def _shown(parts: Parts, aggregates: Iterable[str], generation: int) -> Response:
    body = {"aggregates": list(aggregates), "resource_provider_generation": generation}
    return Response(body=body, modified=parts.store.now())
