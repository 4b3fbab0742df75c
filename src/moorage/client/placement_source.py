"""Reads the whole content of a running Placement service through its REST API.

A provider is read by five requests, whose answers all name its generation: where they differ, it
was written in between and is read again. When all is read, the list is compared with a new one, and
what has moved since is read again, until nothing has.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from moorage.client.placement_wire import SourceFailed
from moorage.domain.consumers import NO_PROJECT, UNKNOWN_TYPE, Consumer
from moorage.domain.content import AllocationSet, Content, with_true_roots
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.resources import is_custom_name
from moorage.domain.stand_ins import without_stand_ins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moorage.domain.period import Instant

    In = TypeVar("In")
    Out = TypeVar("Out")

ROUNDS: Final = 10
"""How often what has moved is read again before it is called hopeless."""


class PlacementReads(Protocol):
    """Reads of a Placement service; see `PlacementWire`."""

    @property
    def endpoint(self) -> str:
        """What errors call it."""

    def negotiate(self) -> object:
        """Choose the microversion."""

    def get(self, path: str) -> Any:  # noqa: ANN401 - JSON is what it is
        """GET a resource."""

    def dated(self, path: str) -> tuple[Any, Instant] | None:
        """GET a resource with the time of its last change (0: not known), or None for 404."""


class SourceMoves(SourceFailed):
    """The source is written faster than it can be read."""


def read_service(
    wire: PlacementReads,
    *,
    connections: int = 8,
    advance: Callable[[str, int, int], None] = lambda _what, _done, _of: None,
) -> Content:
    """The service's content. `advance` is called with what is read, the count, and the total.

    Raises:
        SourceFailed: it refuses, stumbles too often, does not answer, or is something else.
        SourceMoves: something moved in every one of many rounds.
    """
    wire.negotiate()
    with ThreadPoolExecutor(connections) as pool:
        try:
            return _Reader(wire, pool, advance).read()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@dataclass
class _Reader:
    wire: PlacementReads
    pool: ThreadPoolExecutor
    advance: Callable[[str, int, int], None]
    providers: dict[str, ResourceProvider] = field(default_factory=dict)
    owners: dict[str, frozenset[str]] = field(default_factory=dict)
    """Provider -> consumers with allocations on it."""
    allocated_at: dict[str, Instant] = field(default_factory=dict)
    """Provider -> when the newest allocation on it was written."""
    sets: dict[str, AllocationSet] = field(default_factory=dict)

    def read(self) -> Content:
        """Read in rounds until nothing has changed."""
        for _ in range(ROUNDS):
            listed = self._listed()
            for gone in self.providers.keys() - listed.keys():
                del self.providers[gone], self.owners[gone]
            moved = [one for uuid, one in listed.items() if self._moved(uuid, one)]
            doubtful = self._doubtful()
            if not moved and not doubtful:
                return without_stand_ins(with_true_roots(self._content()))
            self._read_providers(moved)
            owners = (self.owners.get(one.uuid, frozenset()) for one in moved)
            self._read_consumers(doubtful.union(*owners))
        raise SourceMoves(
            f"{self.wire.endpoint} is written faster than it can be read;"
            " stop what writes to it, or read its database"
        )

    def _listed(self) -> dict[str, ResourceProvider]:
        found = {}
        for one in _part(self.wire.get("/resource_providers"), "resource_providers"):
            found[one["uuid"]] = ResourceProvider(
                uuid=one["uuid"],
                name=one["name"],
                parent_uuid=one["parent_provider_uuid"],
                root_uuid=one["root_provider_uuid"],
                generation=one["generation"],
            )
        return found

    def _moved(self, uuid: str, listed: ResourceProvider) -> bool:
        known = self.providers.get(uuid)
        if known is None:
            return True
        bare = replace(
            known, updated_at=0, inventories=(), traits=frozenset(), aggregates=frozenset()
        )
        return bare != listed

    def _doubtful(self) -> set[str]:
        """Consumers not read yet, and those with allocations on a provider that is gone."""
        known = self.providers.keys()
        owners = {owner for some in self.owners.values() for owner in some}
        lost = {uuid for uuid, one in self.sets.items() if not one.allocations.keys() <= known}
        return (owners - self.sets.keys()) | lost

    # --- providers --------------------------------------------------------------------------

    def _read_providers(self, moved: list[ResourceProvider]) -> None:
        for one, found in self._all("resource providers", self._provider, moved):
            if found is None:
                self.providers.pop(one.uuid, None)
                self.owners.pop(one.uuid, None)
            else:
                provider, self.owners[one.uuid], self.allocated_at[one.uuid] = found
                self.providers[one.uuid] = provider

    def _provider(
        self, listed: ResourceProvider
    ) -> tuple[ResourceProvider, frozenset[str], Instant] | None:
        """The provider, its consumers and when they were last allocated; None if it is gone."""
        parts: dict[str, Any] = {}
        for _ in range(ROUNDS):
            times: dict[str, Instant] = {}
            for name in ("", "inventories", "traits", "aggregates", "allocations"):
                found = self.wire.dated(f"/resource_providers/{listed.uuid}/{name}".rstrip("/"))
                if found is None:
                    return None
                parts[name], times[name] = found
                _part(parts[name], name or "uuid")
            generations = {
                _part(one, "resource_provider_generation" if name else "generation")
                for name, one in parts.items()
            }
            if len(generations) == 1:
                provider = _assembled(listed, generations.pop(), parts, times)
                owners = frozenset(_part(parts["allocations"], "allocations"))
                return provider, owners, times["allocations"]
        raise SourceMoves(f"resource provider {listed.name} is written faster than it can be read")

    # --- consumers --------------------------------------------------------------------------

    def _read_consumers(self, uuids: set[str]) -> None:
        for uuid, found in self._all("consumers", self._consumer, sorted(uuids)):
            if found is None:
                self.sets.pop(uuid, None)
                for provider, owners in self.owners.items():
                    if uuid in owners:
                        self.owners[provider] = owners - {uuid}
            else:
                self.sets[uuid] = found

    def _consumer(self, uuid: str) -> AllocationSet | None:
        """A consumer with its allocations; None without any."""
        found, at = self.wire.dated(f"/allocations/{uuid}") or ({"allocations": {}}, 0)
        allocations = {
            provider: dict(sorted(one["resources"].items()))
            for provider, one in _part(found, "allocations").items()
        }
        if not allocations:
            return None
        consumer = Consumer(
            uuid,
            found.get("project_id", NO_PROJECT),
            found.get("user_id", NO_PROJECT),
            found.get("consumer_type", UNKNOWN_TYPE),
            found.get("consumer_generation", 0),
        )
        return AllocationSet(consumer, allocations, dict.fromkeys(allocations, at) if at else {})

    def _all(
        self, what: str, read: Callable[[In], Out], items: Iterable[In]
    ) -> Iterable[tuple[In, Out]]:
        wanted = list(items)
        for done, pair in enumerate(zip(wanted, self.pool.map(read, wanted), strict=True), 1):
            self.advance(what, done, len(wanted))
            yield pair

    def _content(self) -> Content:
        classes = _part(self.wire.get("/resource_classes"), "resource_classes")
        traits = _part(self.wire.get("/traits"), "traits")
        return Content(
            providers=self.providers,
            consumers={uuid: self._dated(one) for uuid, one in self.sets.items()},
            resource_classes=tuple(one["name"] for one in classes),
            traits=frozenset(traits),
            class_times=self._times("resource_classes", (one["name"] for one in classes)),
            trait_times=self._times("traits", traits),
        )

    def _dated(self, one: AllocationSet) -> AllocationSet:
        """With its times, of which the newest of each consumer and of each provider are known."""
        limits = ((uuid, self.allocated_at.get(uuid, 0)) for uuid in one.written_at)
        return replace(
            one, written_at={uuid: min(at, one.written_at[uuid]) for uuid, at in limits if at}
        )

    def _times(self, kind: str, names: Iterable[str]) -> dict[str, Instant]:
        """When custom names, and traits in use, were written last."""
        used = {trait for one in self.providers.values() for trait in one.traits}
        asked = [name for name in names if is_custom_name(name) or name in used]
        found = self._all(kind, lambda name: self.wire.dated(f"/{kind}/{name}"), asked)
        return {name: one[1] for name, one in found if one is not None and one[1]}


def _part(body: Any, key: str) -> Any:  # noqa: ANN401 - JSON is what it is
    if not isinstance(body, dict) or key not in body:
        raise SourceFailed(f"not a Placement service: an answer lacks {key}")
    return body[key]


def _assembled(
    listed: ResourceProvider,
    generation: int,
    parts: Mapping[str, Any],
    times: Mapping[str, Instant],
) -> ResourceProvider:
    inventories = [
        Inventory(
            name,
            one["total"],
            one["reserved"],
            one["min_unit"],
            one["max_unit"],
            one["step_size"],
            float(one["allocation_ratio"]),
            updated_at=times["inventories"],
        )
        for name, one in _part(parts["inventories"], "inventories").items()
    ]
    return replace(
        listed,
        generation=generation,
        updated_at=times[""],
        inventories=tuple(sorted(inventories, key=lambda one: one.resource_class)),
        traits=frozenset(_part(parts["traits"], "traits")),
        aggregates=frozenset(_part(parts["aggregates"], "aggregates")),
    )
