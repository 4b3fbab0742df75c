"""/resource_providers/{uuid}/usages and /usages."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from moorage.api.placement.rendering import just_now
from moorage.domain.consumers import UNKNOWN_TYPE
from moorage.http.microversion import Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.placement.request import Environment, Request
    from moorage.domain.bookings import Booking
    from moorage.domain.consumers import Consumer
    from moorage.http.microversion import JSON

ALL: Final = "all"


def of_provider(env: Environment, request: Request) -> Response:
    """What is allocated of every class the provider has, zeros included."""
    snapshot = env.store.snapshot()
    row = snapshot.row(request.path["uuid"])
    usages = {}
    for inventory in snapshot.inventories_of(row):
        columns = snapshot.classes[inventory.resource_class]
        usages[inventory.resource_class] = int(columns.used[columns.position[row]])
    body = {"resource_provider_generation": int(snapshot.generation[row]), "usages": usages}
    return Response(body=body, modified=snapshot.taken_at)


def of_project(env: Environment, request: Request) -> Response:
    """What a project (and user) has allocated, by type of consumer.

    `consumer_type=all` puts every type under that one key.
    """
    project = request.value("project_id")
    assert project is not None, "the query schema requires it"
    wanted = request.value("consumer_type")
    groups: dict[str, list[tuple[Consumer, Booking]]] = defaultdict(list)
    for consumer, booking in env.store.usages(project, request.value("user_id")):
        kind = consumer.type or UNKNOWN_TYPE
        if wanted in {None, ALL, kind}:
            groups[ALL if wanted == ALL else kind].append((consumer, booking))
    body = {"usages": {kind: _summed(found) for kind, found in groups.items()}}
    return Response(body=body, modified=just_now())


def _summed(found: Iterable[tuple[Consumer, Booking]]) -> JSON:
    amounts: Counter[str] = Counter()
    consumers = set()
    for consumer, booking in found:
        amounts.update(booking.amounts)
        consumers.add(consumer.uuid)
    return {**amounts, "consumer_count": len(consumers)}
