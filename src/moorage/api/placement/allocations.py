"""/allocations, /allocations/{consumer_uuid} and /resource_providers/{uuid}/allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.api.placement.inventories import read
from moorage.api.placement.query import BEYOND
from moorage.api.placement.refusals import PROVIDER_NOT_FOUND, BadQuery
from moorage.api.placement.rendering import just_now
from moorage.api.placement.validation import canonical, is_uuid_like
from moorage.domain.changes import PutInventories, ReplaceAllocations
from moorage.domain.consumers import UNKNOWN_TYPE, Consumer
from moorage.domain.errors import InvalidDescription, ProviderConflict
from moorage.domain.resources import total
from moorage.http.microversion import Response
from moorage.usecases.ledger import allocations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.api.placement.request import Environment, Request
    from moorage.domain.bookings import Booking
    from moorage.domain.resources import Amounts
    from moorage.engine.state.snapshot import Snapshot
    from moorage.http.microversion import JSON


def show(env: Environment, request: Request) -> Response:
    """A consumer's allocations; never 404, for any UUID may be a consumer's."""
    found = env.store.allocations_of_consumer(request.path["consumer_uuid"])
    if found is None:
        return Response(body={"allocations": {}}, modified=just_now())
    consumer, bookings, generations = found
    shown = {
        uuid: {"resources": resources, "generation": generations[uuid]}
        for uuid, resources in _by_provider(bookings).items()
    }
    body = {
        "allocations": shown,
        "project_id": consumer.project_id,
        "user_id": consumer.user_id,
        "consumer_generation": consumer.generation,
        "consumer_type": consumer.type or UNKNOWN_TYPE,
    }
    return Response(body=body, modified=_newest(bookings))


def of_provider(env: Environment, request: Request) -> Response:
    """The allocations on a provider, by consumer."""
    generation, found = env.store.allocations_of_provider(request.path["uuid"])
    shown: dict[str, Any] = {}
    for consumer, booking in found:
        before = shown.get(consumer.uuid, {"resources": {}})["resources"]
        shown[consumer.uuid] = {
            "resources": dict(total((before, booking.amounts))),
            "consumer_generation": consumer.generation,
        }
    body = {"allocations": shown, "resource_provider_generation": generation}
    return Response(body=body, modified=_newest([booking for _, booking in found]))


def replace(env: Environment, request: Request) -> Response:
    """Replace one consumer's allocations."""
    text = request.path["consumer_uuid"]
    if not is_uuid_like(text):
        raise InvalidDescription(f"Malformed consumer_uuid: {text}")
    written = write_of(canonical(text), request.json())
    _allocate(env, request, [written])
    return Response(status=204)


def write(env: Environment, request: Request) -> Response:
    """Replace several consumers' allocations, all or none of them."""
    writes = [write_of(consumer, body) for consumer, body in request.json().items()]
    _allocate(env, request, writes)
    return Response(status=204)


def _allocate(env: Environment, request: Request, writes: Sequence[ReplaceAllocations]) -> None:
    allocations.allocate(
        env.store,
        writes,
        ids=env.ids,
        settings=env.settings,
        request_id=request.global_request_id,
    )


def delete(env: Environment, request: Request) -> Response:
    """Delete a consumer's allocations."""
    allocations.release(env.store, request.path["consumer_uuid"])
    return Response(status=204)


def write_of(consumer: str, body: Mapping[str, Any]) -> ReplaceAllocations:
    """One consumer's part of a body; `mappings` is advice of the client to itself, unused.

    Raises:
        InvalidDescription: text that slips past the schema's patterns, which end before a final
            line break.
    """
    for text in (consumer, body["consumer_type"] or ""):
        if text.endswith("\n"):
            raise InvalidDescription(f"not a name or UUID: {text!r}")
    return ReplaceAllocations(
        Consumer(
            consumer,
            project_id=body["project_id"],
            user_id=body["user_id"],
            type=body["consumer_type"],
        ),
        {uuid: _amounts(one["resources"]) for uuid, one in body["allocations"].items()},
        body["consumer_generation"],
    )


def _amounts(resources: Mapping[str, float]) -> Amounts:
    """Amounts as integers (JSON's 2.0 is one), capped just above every `max_unit`."""
    return {name: min(int(amount), BEYOND) for name, amount in resources.items()}


def _by_provider(bookings: Sequence[Booking]) -> Mapping[str, JSON]:
    found: dict[str, Amounts] = {}
    for booking in bookings:
        found[booking.provider] = total((found.get(booking.provider, {}), booking.amounts))
    return {uuid: dict(amounts) for uuid, amounts in found.items()}


def _newest(bookings: Sequence[Booking]) -> int:
    """When the allocations were written: their start, or now for none."""
    newest = max((one.period.start for one in bookings), default=None)
    return just_now() if newest is None else newest


def reshape(env: Environment, request: Request) -> Response:
    """Replace inventories of providers and allocations of consumers together."""
    body = request.json()
    snapshot = env.store.snapshot()
    inventories = [
        _put(request, snapshot, uuid, given) for uuid, given in body["inventories"].items()
    ]
    writes = [write_of(consumer, given) for consumer, given in body["allocations"].items()]
    allocations.reshape(env.store, inventories, writes, ids=env.ids, settings=env.settings)
    return Response(status=204)


def _put(
    request: Request, snapshot: Snapshot, uuid: str, given: Mapping[str, Any]
) -> PutInventories:
    row = snapshot.row_of.get(uuid)
    if row is None:
        raise BadQuery(
            f"Resource provider {uuid} in inventories not found: No resource provider with uuid "
            f"{uuid} found",
            code=PROVIDER_NOT_FOUND,
        )
    provider = snapshot.state(row).provider
    expected = given["resource_provider_generation"]
    if expected != provider.generation:
        raise ProviderConflict(
            f"resource provider generation conflict for provider {uuid}: "
            f"actual: {provider.generation}, given: {expected}",
            subject=uuid,
        )
    inventories = tuple(
        read(request, name, one, "reshape", uuid) for name, one in given["inventories"].items()
    )
    return PutInventories(uuid, inventories, expected, replace_all=True)
