"""/traits and /traits/{name}."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.placement import schemas
from moorage.api.placement.names import STANDARD_TRAITS, trait_order
from moorage.api.placement.precedence import refuse_first
from moorage.api.placement.refusals import BadQuery
from moorage.api.placement.rendering import just_now
from moorage.api.placement.validation import check_value
from moorage.domain.changes import Changeset, CreateTrait, DeleteTrait, PutTraits
from moorage.domain.errors import InvalidDescription, MoorageError, NotFound, UnknownName
from moorage.http.microversion import Response
from moorage.usecases.ledger import providers as usecase

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from moorage.api.placement.request import Environment, Request
    from moorage.domain.period import Instant


def newest(env: Environment, names: Collection[str]) -> int:
    """When the newest of these traits was made, or now for none."""
    found = [one.updated_at for one in env.store.traits(names)] if names else []
    return max(found) if found else just_now()


def list_all(env: Environment, request: Request) -> Response:
    """Traits, by name (`in:A,B` or `startswith:P`) and by whether any provider has them."""
    wanted = _by_name(request.value("name"))
    carried = _associated(request.value("associated"))
    snapshot = env.store.snapshot()
    used = {name for name, mask in snapshot.traits.items() if mask.any()}
    found = [
        one
        for one in env.store.traits()
        if wanted(one.name) and (carried is None or (one.name in used) == carried)
    ]
    return Response(
        body={"traits": [one.name for one in found]},
        modified=max((one.updated_at for one in found), default=snapshot.taken_at),
    )


def _by_name(text: str | None) -> Callable[[str], bool]:
    """A test for names; an operator other than the two is ignored, as by the reference."""
    if text is None:
        return lambda _: True
    operator, colon, value = text.partition(":")
    if not colon:
        raise BadQuery(
            "Badly formatted name parameter. Expected name query string parameter in form: "
            f'?name=[in|startswith]:[name1,name2|prefix]. Got: "{text}"'
        )
    if operator == "in":
        return frozenset(value.split(",")).__contains__
    if operator == "startswith":
        return lambda name: name.startswith(value)
    return lambda _: True


def _associated(text: str | None) -> bool | None:
    if text is None:
        return None
    if text.lower() not in {"true", "false"}:
        raise BadQuery('The query parameter "associated" only accepts "true" or "false"')
    return text.lower() == "true"


def show(env: Environment, request: Request) -> Response:
    """Whether a trait exists: 204, or 404."""
    name = request.path["name"]
    for one in env.store.traits([name]):
        return Response(status=204, modified=one.updated_at)
    raise NotFound("trait", name)


def ensure(env: Environment, request: Request) -> Response:
    """Create a custom trait unless it is there: 201 or 204."""
    name = request.path["name"]
    if check_value(name, schemas.CUSTOM_TRAIT) is not None:
        raise InvalidDescription(
            "The trait is invalid. A valid trait must be no longer than 255 characters, start "
            'with the prefix "CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
        )
    committed = env.store.commit(Changeset((CreateTrait(name),)))
    return Response(
        status=201 if name in committed.created else 204,
        location=f"/traits/{name}",
        modified=newest(env, {name}),
    )


def delete(env: Environment, request: Request) -> Response:
    """Delete a custom trait that no provider has."""
    name = request.path["name"]
    if name in STANDARD_TRAITS:
        raise InvalidDescription(f"Cannot delete standard trait {name}.")
    env.store.commit(Changeset((DeleteTrait(name),)))
    return Response(status=204)


def list_of_provider(env: Environment, request: Request) -> Response:
    """The traits of a provider."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    return _shown(provider.traits, provider.generation, newest(env, provider.traits))


def replace_of_provider(env: Environment, request: Request) -> Response:
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


def clear_of_provider(env: Environment, request: Request) -> Response:
    """Take every trait from a provider."""
    provider = usecase.find_provider(env.store, request.path["uuid"])
    env.store.commit(Changeset((PutTraits(provider.uuid, frozenset(), None),)))
    return Response(status=204)


def _shown(traits: frozenset[str], generation: int, modified: Instant) -> Response:
    body = {"traits": sorted(traits, key=trait_order), "resource_provider_generation": generation}
    return Response(body=body, modified=modified)
