"""/resource_providers/{uuid}/traits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement.names import trait_order
from moorage.api.placement.precedence import refuse_first
from moorage.api.placement.traits import newest
from moorage.domain.changes import Changeset, PutTraits
from moorage.domain.errors import MoorageError, UnknownName
from moorage.http.microversion import Response
from moorage.usecases.ledger import providers as usecase

if TYPE_CHECKING:
    from moorage.api.placement.request import Environment, Request
    from moorage.domain.period import Instant


def list_all(env: Environment, request: Request) -> Response:
    """The traits of a provider."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    return _shown(provider.traits, provider.generation, newest(env, provider.traits))


def replace_all(env: Environment, request: Request) -> Response:
    """A new set of traits, all of them known."""
    body = request.json()
    uuid, expected = request.path["uuid"], body["resource_provider_generation"]
    traits = frozenset(body["traits"])
    try:
        committed = env.store.commit(Changeset((PutTraits(uuid, traits, expected),)))
    except MoorageError:
        refuse_first(env, request)
        unknown = traits.difference(one.name for one in env.store.traits(traits))
        if unknown:
            raise UnknownName("trait", ", ".join(sorted(unknown))) from None
        raise
    # The same traits as before move nothing.
    generation = committed.provider_generations.get(uuid, expected)
    modified = committed.at if committed.traits_at is None else committed.traits_at
    return _shown(traits, generation, modified)


def clear(env: Environment, request: Request) -> Response:
    """Take every trait from a provider."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    env.store.commit(Changeset((PutTraits(provider.uuid, frozenset(), None),)))
    return Response(status=204)


def _shown(traits: frozenset[str], generation: int, modified: Instant) -> Response:
    body = {"traits": sorted(traits, key=trait_order), "resource_provider_generation": generation}
    return Response(body=body, modified=modified)
