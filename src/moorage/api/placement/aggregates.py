"""/resource_providers/{uuid}/aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement.precedence import refuse_first
from moorage.api.placement.rendering import just_now
from moorage.domain.changes import Changeset, PutAggregates
from moorage.domain.errors import MoorageError
from moorage.http.microversion import Response
from moorage.usecases.ledger import providers as usecase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.placement.request import Environment, Request
    from moorage.domain.period import Instant


def show(env: Environment, request: Request) -> Response:
    """The aggregates a provider is a member of."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    return _shown(sorted(provider.aggregates), provider.generation, just_now())


def replace(env: Environment, request: Request) -> Response:
    """Replace the aggregates; `resource_provider_generation` None: neither checked nor moved."""
    try:
        body, uuid = request.json(), request.path["uuid"]
        aggregates, expected = body["aggregates"], body["resource_provider_generation"]
        change = PutAggregates(uuid, frozenset(aggregates), expected)
        committed = env.store.commit(Changeset((change,)))
    except MoorageError:
        refuse_first(env, request)
        raise
    return _shown(aggregates, committed.provider_generations[uuid], committed.at)


def _shown(aggregates: Iterable[str], generation: int, modified: Instant) -> Response:
    body = {"aggregates": list(aggregates), "resource_provider_generation": generation}
    return Response(body=body, modified=modified)
