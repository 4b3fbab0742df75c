"""Both databases filled without HTTP, because the reference needs 25 ms of CPU per request.

That both then hold the same is what the run checks by their answers.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from benchmarks.placement.shapes import PROJECT, USER, Node
from sqlalchemy import Connection, create_engine, insert, select, text

from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    CreateResourceClass,
    CreateTrait,
    PutAggregates,
    PutInventories,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.providers import Inventory
from moorage.domain.resources import MAX_AMOUNT
from moorage.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.changes import Change

BATCH: Final = 500
_GO_ON: Final = (
    "SELECT setval(pg_get_serial_sequence('resource_providers', 'id'), max(id))"
    " FROM resource_providers"
)


def custom_names(nodes: Sequence[Node]) -> tuple[list[str], list[str]]:
    """The custom resource classes and traits of a fleet."""
    classes = {name for node in nodes for name in node.stocks}
    traits = {name for node in nodes for name in node.traits}
    return (
        sorted(name for name in classes if name.startswith("CUSTOM_")),
        sorted(name for name in traits if name.startswith("CUSTOM_")),
    )


# --- ours: through the store ----------------------------------------------------------------


def fill_ours(url: str, nodes: Sequence[Node]) -> None:
    """Write the fleet into a ledger."""
    store = open_store(url)
    classes, traits = custom_names(nodes)
    names: list[Change] = [
        *(CreateResourceClass(name, exist_ok=True) for name in classes),
        *(CreateTrait(name) for name in traits),
    ]
    if names:
        store.commit(Changeset(tuple(names)))
    rest = iter(nodes)
    while batch := list(islice(rest, BATCH)):
        store.commit(Changeset(tuple(change for node in batch for change in _changes(node))))
    store.close()


def _changes(node: Node) -> Iterator[Change]:
    yield CreateProvider(node.uuid, node.name, node.parent)
    stocks = tuple(
        Inventory(name, one.total, reserved=one.reserved, allocation_ratio=one.ratio)
        for name, one in node.stocks.items()
    )
    if stocks:
        yield PutInventories(node.uuid, stocks, None, replace_all=True)
    if node.traits:
        yield PutTraits(node.uuid, node.traits, None)
    if node.aggregates:
        yield PutAggregates(node.uuid, node.aggregates, None)
    if node.used:
        consumer = Consumer(node.consumer, project_id=PROJECT, user_id=USER, type="INSTANCE")
        yield ReplaceAllocations(consumer, {node.uuid: node.used}, None)


# --- the reference's: into its tables, which its own start has made ---------------------------


def fill_peer(url: str, nodes: Sequence[Node]) -> None:
    """Write the fleet into the tables of a reference server that has started once."""
    from placement.db.sqlalchemy import models  # noqa: PLC0415 - a development dependency, slow to import

    engine = create_engine(url)
    with engine.begin() as connection:
        _Peer(connection, models).write(nodes)
    engine.dispose()


class _Peer:
    """Rows of the reference's schema."""

    def __init__(self, connection: Connection, models: object) -> None:
        self._connection = connection
        self._models = models

    def write(self, nodes: Sequence[Node]) -> None:
        classes, traits = custom_names(nodes)
        self._add("ResourceClass", [{"name": name} for name in classes])
        self._add("Trait", [{"name": name} for name in traits])
        self._providers(nodes)
        ids = self._ids("ResourceProvider", "uuid")
        self._add("PlacementAggregate", [{"uuid": one} for one in _aggregates(nodes)])
        self._inventories(nodes, ids)
        self._links(nodes, ids)
        self._allocations([node for node in nodes if node.used], ids)

    def _table(self, model: str) -> Any:  # noqa: ANN401 - of the reference, which has no types
        return getattr(self._models, model).__table__

    def _add(self, model: str, rows: list[dict[str, object]]) -> None:
        if rows:
            self._connection.execute(insert(self._table(model)), rows)

    def _ids(self, model: str, key: str) -> dict[str, int]:
        columns = self._table(model).c
        return dict(self._connection.execute(select(columns[key], columns.id)).all())

    def _providers(self, nodes: Sequence[Node]) -> None:
        start = max(self._ids("ResourceProvider", "uuid").values(), default=0) + 1
        ids = {node.uuid: number for number, node in enumerate(nodes, start)}
        roots: dict[str, int] = {}
        rows: list[dict[str, object]] = []
        for node in nodes:
            roots[node.uuid] = roots[node.parent] if node.parent else ids[node.uuid]
            rows.append(
                {
                    "id": ids[node.uuid],
                    "uuid": node.uuid,
                    "name": node.name,
                    "generation": 1,
                    "root_provider_id": roots[node.uuid],
                    "parent_provider_id": ids[node.parent] if node.parent else None,
                }
            )
        self._add("ResourceProvider", rows)
        if self._connection.dialect.name == "postgresql":
            # The numbers were given here; the table's own counter must go on after them.
            self._connection.execute(text(_GO_ON))

    def _inventories(self, nodes: Sequence[Node], ids: dict[str, int]) -> None:
        classes = self._ids("ResourceClass", "name")
        self._add(
            "Inventory",
            [
                {
                    "resource_provider_id": ids[node.uuid],
                    "resource_class_id": classes[name],
                    "total": one.total,
                    "reserved": one.reserved,
                    "min_unit": 1,
                    "max_unit": MAX_AMOUNT,
                    "step_size": 1,
                    "allocation_ratio": one.ratio,
                }
                for node in nodes
                for name, one in node.stocks.items()
            ],
        )

    def _links(self, nodes: Sequence[Node], ids: dict[str, int]) -> None:
        traits = self._ids("Trait", "name")
        aggregates = self._ids("PlacementAggregate", "uuid")
        self._add(
            "ResourceProviderTrait",
            [
                {"resource_provider_id": ids[node.uuid], "trait_id": traits[name]}
                for node in nodes
                for name in node.traits
            ],
        )
        self._add(
            "ResourceProviderAggregate",
            [
                {"resource_provider_id": ids[node.uuid], "aggregate_id": aggregates[one]}
                for node in nodes
                for one in node.aggregates
            ],
        )

    def _allocations(self, nodes: Sequence[Node], ids: dict[str, int]) -> None:
        if not nodes:
            return
        classes = self._ids("ResourceClass", "name")
        self._add("Project", [{"external_id": PROJECT}])
        self._add("User", [{"external_id": USER}])
        self._add("ConsumerType", [{"name": "INSTANCE"}])
        project = self._ids("Project", "external_id")[PROJECT]
        user = self._ids("User", "external_id")[USER]
        kind = self._ids("ConsumerType", "name")["INSTANCE"]
        self._add(
            "Consumer",
            [
                {
                    "uuid": node.consumer,
                    "project_id": project,
                    "user_id": user,
                    "generation": 1,
                    "consumer_type_id": kind,
                }
                for node in nodes
            ],
        )
        self._add(
            "Allocation",
            [
                {
                    "resource_provider_id": ids[node.uuid],
                    "consumer_id": node.consumer,
                    "resource_class_id": classes[name],
                    "used": amount,
                }
                for node in nodes
                for name, amount in node.used.items()
            ],
        )


def _aggregates(nodes: Sequence[Node]) -> list[str]:
    return sorted({one for node in nodes for one in node.aggregates})
