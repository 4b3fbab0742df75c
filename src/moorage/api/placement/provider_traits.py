"""/resource_providers/{uuid}/traits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement.names import trait_order
from moorage.api.placement.traits import newest
from moorage.domain.changes import Changeset, PutTraits
from moorage.domain.errors import ProviderConflict, UnknownName
from moorage.http.microversion import Response
from moorage.usecases import providers as usecase

if TYPE_CHECKING:
    from moorage.api.placement.request import Parts, Request


def list_all(parts: Parts, request: Request) -> Response:
    """The traits of a provider."""
    provider = usecase.one(parts.store, request.path["uuid"])
    return _shown(parts, provider.traits, provider.generation)


def replace_all(parts: Parts, request: Request) -> Response:
    """A new set of traits, all of them known."""
    body = request.json()
    provider = usecase.one(parts.store, request.path["uuid"])
    expected = body["resource_provider_generation"]
    if expected != provider.generation:
        raise ProviderConflict("generation moved", subject=provider.uuid)
    traits = frozenset(body["traits"])
    unknown = traits.difference(one.name for one in parts.store.traits(traits))
    if unknown:
        raise UnknownName("trait", ", ".join(sorted(unknown)))
    committed = parts.store.commit(Changeset((PutTraits(provider.uuid, traits, expected),)))
    generation = committed.provider_generations.get(provider.uuid, provider.generation)
    return _shown(parts, traits, generation)


def clear(parts: Parts, request: Request) -> Response:
    """Take every trait from a provider."""
    provider = usecase.one(parts.store, request.path["uuid"])
    parts.store.commit(Changeset((PutTraits(provider.uuid, frozenset(), None),)))
    return Response(status=204)


def _shown(parts: Parts, traits: frozenset[str], generation: int) -> Response:
    body = {"traits": sorted(traits, key=trait_order), "resource_provider_generation": generation}
    return Response(body=body, modified=newest(parts, traits))
