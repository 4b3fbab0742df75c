"""Reads and writes provider trees by Placement's API, of Moorage or of another Placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from moorage.client import discovery
from moorage.client.credentials import GivenToken
from moorage.client.placement_wire import Options, PlacementWire, SourceFailed
from moorage.client.service_types import PLACEMENT
from moorage.domain.providers import Inventory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.client.discovery import Wishes

SAME_SUBTREE: Final = (1, 36)
"""The oldest microversion with which a tree below a host is of use."""
RE_PARENTING: Final = (1, 37)
_MOUNT: Final = "/placement"
_MISSING: Final = 404
_RULES: Final = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


@dataclass(frozen=True, slots=True)
class ListedProvider:
    """A provider as listings have it."""

    uuid: str
    name: str
    parent: str | None
    root: str
    generation: int


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """Everything that a consumer has, as it is written back."""

    allocations: Mapping[str, Mapping[str, int]]
    """Provider -> amounts."""
    project_id: str
    user_id: str
    generation: int | None
    consumer_type: str | None


class ProviderTrees:
    """The calls for provider trees. Each raises SourceFailed: an error, or no answer."""

    def __init__(self, wire: PlacementWire) -> None:
        self._wire = wire
        self.version = (1, 0)

    def negotiate(self) -> None:
        """Use the newest microversion that both sides know.

        Raises:
            SourceFailed: it is too old, the service is none of Placement, or does not answer.
        """
        major, _, minor = self._wire.negotiate().partition(".")
        self.version = int(major), int(minor)
        if self.version < SAME_SUBTREE:
            raise SourceFailed(
                f"{self._wire.endpoint} speaks microversions up to {major}.{minor};"
                f" {SAME_SUBTREE[0]}.{SAME_SUBTREE[1]} or newer is needed"
            )

    @property
    def re_parents(self) -> bool:
        """Whether a provider can get another parent."""
        return self.version >= RE_PARENTING

    # --- reading ------------------------------------------------------------------------------

    def find(self, uuid: str) -> ListedProvider | None:
        """The provider of that UUID, or None."""
        found = self._wire.find(f"/resource_providers/{uuid}")
        return None if found is None else _listed(found)

    def named(self, name: str) -> ListedProvider | None:
        """The provider of that name, or None."""
        return next(iter(self._list({"name": name})), None)

    def in_tree(self, uuid: str) -> list[ListedProvider]:
        """Every provider in the tree of a provider."""
        return self._list({"in_tree": uuid})

    def in_aggregates(
        self, aggregates: Iterable[str], *, required: str | None = None
    ) -> list[ListedProvider]:
        """Every provider in one of these aggregates, with a trait if one is required."""
        some = ",".join(sorted(aggregates))
        query = {"member_of": f"in:{some}"} | ({"required": required} if required else {})
        return self._list(query) if some else []

    def _list(self, query: Mapping[str, str]) -> list[ListedProvider]:
        found = self._wire.get(f"/resource_providers?{urlencode(query)}")
        return [_listed(one) for one in found["resource_providers"]]

    def inventories(self, uuid: str) -> tuple[Inventory, ...]:
        """A provider's inventories."""
        found = self._wire.get(f"/resource_providers/{uuid}/inventories")["inventories"]
        return tuple(
            Inventory(name, **{rule: one[rule] for rule in _RULES})
            for name, one in sorted(found.items())
        )

    def traits(self, uuid: str) -> tuple[frozenset[str], int]:
        """A provider's traits, and its generation."""
        found = self._wire.get(f"/resource_providers/{uuid}/traits")
        return frozenset(found["traits"]), int(found["resource_provider_generation"])

    def known_traits(self, names: Iterable[str]) -> frozenset[str]:
        """Those of these traits that the service knows."""
        some = ",".join(sorted(names))
        if not some:
            return frozenset()
        return frozenset(self._wire.get(f"/traits?{urlencode({'name': f'in:{some}'})}")["traits"])

    def aggregates(self, uuid: str) -> frozenset[str]:
        """A provider's aggregates."""
        return frozenset(self._wire.get(f"/resource_providers/{uuid}/aggregates")["aggregates"])

    def allocations(self, uuid: str) -> Mapping[str, Mapping[str, int]]:
        """What consumers have of a provider: consumer -> amounts."""
        found = self._wire.get(f"/resource_providers/{uuid}/allocations")["allocations"]
        return {consumer: one["resources"] for consumer, one in found.items()}

    def consumer(self, uuid: str) -> ConsumerAllocations | None:
        """Everything that a consumer has; None if it has nothing."""
        found = self._wire.get(f"/allocations/{uuid}")
        if not found["allocations"]:
            return None
        return ConsumerAllocations(
            {one: given["resources"] for one, given in found["allocations"].items()},
            found["project_id"],
            found["user_id"],
            found["consumer_generation"],
            found.get("consumer_type"),
        )

    # --- writing ------------------------------------------------------------------------------

    def ensure_trait(self, name: str) -> None:
        """Create a custom trait unless it is there."""
        self._wire.call("PUT", f"/traits/{name}")

    def ensure_class(self, name: str) -> None:
        """Create a custom resource class unless it is there."""
        self._wire.call("PUT", f"/resource_classes/{name}")

    def create(self, uuid: str, name: str, parent: str | None) -> int:
        """Create a provider; return its generation."""
        body = {"uuid": uuid, "name": name, "parent_provider_uuid": parent}
        return int(self._wire.call("POST", "/resource_providers", body)["generation"])

    def update(self, uuid: str, name: str, parent: str | None) -> int:
        """Give a provider a name and a parent; return its generation."""
        body = {"name": name, "parent_provider_uuid": parent}
        return int(self._wire.call("PUT", f"/resource_providers/{uuid}", body)["generation"])

    def delete(self, uuid: str) -> None:
        """Delete a provider; one that is gone is deleted."""
        try:
            self._wire.call("DELETE", f"/resource_providers/{uuid}")
        except SourceFailed as error:
            if error.status != _MISSING:
                raise

    def put_inventories(self, uuid: str, some: Iterable[Inventory], generation: int) -> int:
        """Replace a provider's inventories; return its generation."""
        body = {"inventories": _bodies(some), "resource_provider_generation": generation}
        found = self._wire.call("PUT", f"/resource_providers/{uuid}/inventories", body)
        return int(found["resource_provider_generation"])

    def put_traits(self, uuid: str, traits: Iterable[str], generation: int) -> int:
        """Replace a provider's traits; return its generation."""
        body = {"traits": sorted(traits), "resource_provider_generation": generation}
        found = self._wire.call("PUT", f"/resource_providers/{uuid}/traits", body)
        return int(found["resource_provider_generation"])

    def put_aggregates(self, uuid: str, aggregates: Iterable[str], generation: int) -> int:
        """Replace a provider's aggregates; return its generation."""
        body = {"aggregates": sorted(aggregates), "resource_provider_generation": generation}
        found = self._wire.call("PUT", f"/resource_providers/{uuid}/aggregates", body)
        return int(found["resource_provider_generation"])

    def reshape(
        self,
        inventories: Mapping[str, tuple[Iterable[Inventory], int]],
        consumers: Mapping[str, ConsumerAllocations],
    ) -> None:
        """Replace inventories (with the providers' generations) and allocations at once."""
        body = {
            "inventories": {
                uuid: {"inventories": _bodies(some), "resource_provider_generation": generation}
                for uuid, (some, generation) in inventories.items()
            },
            "allocations": {uuid: self._allocations(one) for uuid, one in consumers.items()},
        }
        self._wire.call("POST", "/reshaper", body)

    def _allocations(self, one: ConsumerAllocations) -> Mapping[str, Any]:
        body: dict[str, Any] = {
            "allocations": {
                uuid: {"resources": dict(amounts)} for uuid, amounts in one.allocations.items()
            },
            "project_id": one.project_id,
            "user_id": one.user_id,
            "consumer_generation": one.generation,
        }
        if one.consumer_type is not None:
            body["consumer_type"] = one.consumer_type
        return body


def connect(wishes: Wishes, environment: Mapping[str, str], options: Options) -> PlacementWire:
    """Placement for the caller of these options and variables; see `discovery.find`.

    An endpoint that was named may be Moorage's, whose Placement API is below `/placement`, or that
    of a Placement.

    Raises:
        NoEndpoint: nothing says where it is.
        LoginRefused, Unreachable: from the login, at the first call.
        SourceFailed: nothing answers there as Placement does.
    """
    access = discovery.find(wishes, environment)
    if not isinstance(access, discovery.Access):
        return PlacementWire(access.endpoint(PLACEMENT), access, options)
    credentials = GivenToken(access.token, access.trust)
    plain = access.endpoint.rstrip("/")
    below = urlsplit(plain).path.endswith(_MOUNT)
    if not below and _answers(plain + _MOUNT, credentials, options):
        plain += _MOUNT
    return PlacementWire(plain, credentials, options)


def _answers(url: str, credentials: GivenToken, options: Options) -> bool:
    """Whether a Placement is mounted there; no connection at all is an error."""
    with PlacementWire(url, credentials, options) as wire:
        try:
            found = wire.get("/")
        except SourceFailed as error:
            if error.status is None and not error.sent:
                raise
            return False
    return isinstance(found, dict) and "versions" in found


def _listed(one: Mapping[str, Any]) -> ListedProvider:
    return ListedProvider(
        one["uuid"],
        one["name"],
        one["parent_provider_uuid"],
        one["root_provider_uuid"],
        one["generation"],
    )


def _bodies(some: Iterable[Inventory]) -> Mapping[str, Mapping[str, int | float]]:
    return {one.resource_class: {rule: getattr(one, rule) for rule in _RULES} for one in some}
