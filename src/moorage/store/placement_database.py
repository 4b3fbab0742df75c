"""Reads the database of an OpenStack Placement service, whatever engine it is on.

The tables and their meaning are those of openstack-placement 16.0.0. They are looked at as they
are found (reflection), so that columns which an older release lacks are simply not there. All is
read in one transaction, hence as it was at one instant, and nothing is ever written.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import MetaData, Table, create_engine, make_url, select
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, NoSuchTableError, SQLAlchemyError

from moorage.domain.consumers import NO_PROJECT, UNKNOWN_TYPE, Consumer
from moorage.domain.content import AllocationSet, Content, with_true_roots
from moorage.domain.errors import Busy, InvalidDescription
from moorage.domain.period import from_datetime
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.stand_ins import without_stand_ins
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import URL, Column, Connection, Engine

    from moorage.domain.period import Instant

_DRIVERS: Final = {
    "sqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
}
_TABLES: Final = (
    "resource_classes",
    "resource_providers",
    "inventories",
    "allocations",
    "resource_provider_aggregates",
    "placement_aggregates",
    "traits",
    "resource_provider_traits",
    "projects",
    "users",
    "consumers",
)
_TIMES: Final = ("created_at", "updated_at")
_TYPES: Final = "consumer_types"
"""Only since Placement knows consumer types."""
_LEFT_OUT: Final = "left out"
_REFERENCES: Final = (
    ("resource_providers", "root_provider_id", "resource_providers", ""),
    ("resource_providers", "parent_provider_id", "resource_providers", ""),
    ("inventories", "resource_provider_id", "resource_providers", _LEFT_OUT),
    ("inventories", "resource_class_id", "resource_classes", ""),
    ("allocations", "resource_provider_id", "resource_providers", _LEFT_OUT),
    ("allocations", "resource_class_id", "resource_classes", ""),
    ("resource_provider_aggregates", "resource_provider_id", "resource_providers", _LEFT_OUT),
    ("resource_provider_aggregates", "aggregate_id", "placement_aggregates", ""),
    ("resource_provider_traits", "resource_provider_id", "resource_providers", _LEFT_OUT),
    ("resource_provider_traits", "trait_id", "traits", ""),
    ("consumers", "project_id", "projects", f"taken over with project {NO_PROJECT}"),
    ("consumers", "user_id", "users", f"taken over with user {NO_PROJECT}"),
    ("consumers", "consumer_type_id", _TYPES, f"taken over with type {UNKNOWN_TYPE}"),
)
"""Table, column, the table whose `id` it has, and what becomes of a row where there is none such.

Where nothing is said, the content is broken: see `Content.broken`.
"""


def read_placement(url: str) -> Content:
    """All that the database holds.

    Allocations of a consumer without a record belong to nobody, as the reference's own repair
    has it; what stands on a provider that is gone is left out. Both are among the remarks. Other
    references to records that are not there make the content broken.

    Raises:
        InvalidDescription: not a URL, no driver for it, or not a database of Placement's.
        Busy: the database does not answer.
    """
    with _connection(_parsed(url)) as connection:
        return without_stand_ins(with_true_roots(_Reader(connection).content()))


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
        driver = _DRIVERS.get(parsed.get_backend_name())
    except (ArgumentError, ValueError) as error:  # the second of a port that is no number
        raise InvalidDescription(
            "not a database URL, such as mysql+pymysql://user:password@host/placement", path="from"
        ) from error
    if driver is None:
        raise InvalidDescription(
            f"no support for {parsed.get_backend_name()} databases;"
            f" there are {', '.join(sorted(_DRIVERS))}",
            path="from",
        )
    return parsed.set(drivername=driver)


@contextmanager
def _connection(url: URL) -> Iterator[Connection]:
    try:
        engine = _engine(url)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise InvalidDescription(
            f"no driver for {url.get_backend_name()} databases ({error}):"
            " see the extras of the package",
            path="from",
        ) from error
    if url.get_backend_name() != "sqlite":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    try:
        with engine.connect() as connection:
            if url.get_backend_name() == "sqlite":
                connection.exec_driver_sql("BEGIN")
            yield connection
    except NoSuchTableError as error:
        raise InvalidDescription(
            f"not a database of Placement's: it has no table {error}", path="from"
        ) from error
    except SQLAlchemyError as error:
        first = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise Busy(f"the source's database cannot be read: {first}") from error
    except OSError as error:  # of TLS; the drivers have their own errors for the server
        raise InvalidDescription(
            f"a file that the URL names cannot be read: {error}", path="from"
        ) from error
    finally:
        engine.dispose()


def _engine(url: URL) -> Engine:
    if url.get_backend_name() not in {"mysql", "mariadb"}:
        return create_engine(_read_only(url))
    # Its driver is an extra.
    from moorage.store.mariadb.connect import require_known  # noqa: PLC0415

    try:
        require_known(url)
    except InvalidDescription as error:
        raise InvalidDescription(str(error), path="from") from error
    return create_engine(url)


def _read_only(url: URL) -> URL:
    """A file that is not there is not made, and one that is there is not written."""
    if url.get_backend_name() != "sqlite" or url.database in {None, "", ":memory:"}:
        return url
    if str(url.database).startswith("file:"):
        return url
    return url.set(
        database=f"file:{url.database}", query={**url.query, "mode": "ro", "uri": "true"}
    )


def _instant(*times: datetime | None) -> Instant:
    """The last of them; 0 where none is known. They are in UTC."""
    return max((from_datetime(one.replace(tzinfo=UTC)) for one in times if one), default=0)


def _row(keys: Iterable[Column[Any]], values: Iterable[int]) -> str:
    return ", ".join(f"{key.name} {value}" for key, value in zip(keys, values, strict=True))


@dataclass
class _Reader:
    """The tables of one database, read one after the other."""

    connection: Connection
    remarks: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        metadata = MetaData()
        self._tables = {
            name: Table(name, metadata, autoload_with=self.connection, resolve_fks=False)
            for name in _TABLES
        }
        if "consumer_type_id" in self._tables["consumers"].c:
            self._tables[_TYPES] = Table(
                _TYPES, metadata, autoload_with=self.connection, resolve_fks=False
            )

    def content(self) -> Content:
        classes, traits = self._names("resource_classes", "name"), self._names("traits", "name")
        uuids = self._names("resource_providers", "uuid")
        self._check_references()
        providers = self._providers(uuids, classes, traits)
        return Content(
            providers=providers,
            consumers=self._sets(uuids, classes),
            resource_classes=tuple(classes.values()),
            traits=frozenset(traits.values()),
            class_times=self._times("resource_classes"),
            trait_times=self._times("traits"),
            remarks=tuple(self.remarks),
            broken=tuple(self.broken),
        )

    def _check_references(self) -> None:
        """Note every row that refers to a record that is not there."""
        for name, column, target, outcome in _REFERENCES:
            table = self._tables[name].c
            if column not in table:
                continue
            there = select(self._tables[target].alias("target").c.id)
            keys = [one for one in table if one.name == "id"] or [
                one for one in table if one.name.endswith("_id")
            ]
            rows = self.connection.execute(
                select(table[column], *keys)
                .where(table[column].is_not(None), table[column].not_in(there))
                .order_by(*keys)
            )
            found = [
                f"table {name}, row {_row(keys, values)}: {column} is {number},"
                f" which is not in {target}"
                for number, *values in rows
            ]
            if not outcome:
                self.broken += found
            elif found:
                self.remarks.append(f"{'; '.join(found)}: {outcome}")

    def _rows(self, table: str, *columns: str, order: str = "id") -> Iterator[Any]:
        """Some columns of all rows; a column that an older release lacks reads as None."""
        known = self._tables[table].c
        wanted = [known[name] for name in columns]
        return iter(self.connection.execute(select(*wanted).order_by(known[order])))

    def _names(self, table: str, column: str) -> dict[int, str]:
        return {row[0]: row[1] for row in self._rows(table, "id", column)}

    def _times(self, table: str) -> dict[str, Instant]:
        """When each named record was written last."""
        rows = self._rows(table, "name", *_TIMES)
        return {name: _instant(*times) for name, *times in rows}

    # --- providers --------------------------------------------------------------------------

    def _providers(
        self, uuids: Mapping[int, str], classes: Mapping[int, str], traits: Mapping[int, str]
    ) -> dict[str, ResourceProvider]:
        stock: dict[int, list[Inventory]] = {}
        for row in self._rows(
            "inventories",
            *("resource_provider_id", "resource_class_id", "total", "reserved"),
            *("min_unit", "max_unit", "step_size", "allocation_ratio"),
            *_TIMES,
        ):
            number, total, reserved, low, high, step, ratio, *times = row[1:]
            if number not in classes:
                continue
            item = Inventory(
                *(classes[number], total, reserved, low, high, step, float(ratio)),
                updated_at=_instant(*times),
            )
            stock.setdefault(row[0], []).append(item)
        aggregates = self._links(
            "resource_provider_aggregates",
            "aggregate_id",
            self._names("placement_aggregates", "uuid"),
        )
        worn = self._links("resource_provider_traits", "trait_id", traits)
        found: dict[str, ResourceProvider] = {}
        columns = ("id", "uuid", "name", "generation", "root_provider_id", "parent_provider_id")
        for row in self._rows("resource_providers", *columns, *_TIMES):
            number, uuid, name, generation, root, parent, created, updated = row
            found[uuid] = ResourceProvider(
                uuid=uuid,
                name=name,
                parent_uuid=uuids.get(parent),
                root_uuid=uuids.get(root, uuid),
                generation=generation or 0,
                created_at=_instant(created),
                updated_at=_instant(created, updated),
                inventories=tuple(
                    sorted(stock.pop(number, ()), key=lambda one: one.resource_class)
                ),
                traits=frozenset(worn.get(number, ())),
                aggregates=frozenset(aggregates.get(number, ())),
            )
        return found

    def _links(self, table: str, column: str, names: Mapping[int, str]) -> dict[int, set[str]]:
        found: dict[int, set[str]] = {}
        for provider, one in self._rows(table, "resource_provider_id", column, order=column):
            if one in names:
                found.setdefault(provider, set()).add(names[one])
        return found

    # --- consumers --------------------------------------------------------------------------

    def _sets(
        self, uuids: Mapping[int, str], classes: Mapping[int, str]
    ) -> dict[str, AllocationSet]:
        amounts: dict[str, dict[str, dict[str, int]]] = {}
        written: dict[str, dict[str, Instant]] = {}
        for consumer, provider, resource_class, used, *times in self._rows(
            *("allocations", "consumer_id", "resource_provider_id", "resource_class_id", "used"),
            *_TIMES,
        ):
            if provider not in uuids or resource_class not in classes:
                continue
            of_provider = amounts.setdefault(consumer, {}).setdefault(uuids[provider], {})
            name = classes[resource_class]
            of_provider[name] = of_provider.get(name, 0) + used
            if at := _instant(*times):
                dated = written.setdefault(consumer, {})
                dated[uuids[provider]] = max(at, dated.get(uuids[provider], 0))
        return self._owned(amounts, written)

    def _owned(
        self,
        amounts: Mapping[str, Mapping[str, Mapping[str, int]]],
        written: Mapping[str, Mapping[str, Instant]],
    ) -> dict[str, AllocationSet]:
        known = self._consumers()
        nobodys = [uuid for uuid in amounts if uuid not in known]
        if nobodys:
            self.remarks.append(
                f"{counted(len(nobodys), 'consumer')} with allocations but without a record:"
                f" taken over with project and user {NO_PROJECT}"
            )
        idle = len(known.keys() - amounts.keys())
        if idle:
            self.remarks.append(f"{counted(idle, 'consumer')} without allocations: left out")
        return {
            uuid: AllocationSet(
                known.get(uuid) or Consumer(uuid, NO_PROJECT, NO_PROJECT, UNKNOWN_TYPE),
                allocations,
                written.get(uuid, {}),
            )
            for uuid, allocations in amounts.items()
        }

    def _consumers(self) -> dict[str, Consumer]:
        projects = self._names("projects", "external_id")
        users = self._names("users", "external_id")
        types = self._names(_TYPES, "name") if _TYPES in self._tables else {}
        columns = ("uuid", "project_id", "user_id", "generation")
        more = ("consumer_type_id",) if types or _TYPES in self._tables else ()
        return {
            row[0]: Consumer(
                uuid=row[0],
                project_id=projects.get(row[1], NO_PROJECT),
                user_id=users.get(row[2], NO_PROJECT),
                type=types.get(row[4], UNKNOWN_TYPE) if more else UNKNOWN_TYPE,
                generation=row[3],
            )
            for row in self._rows("consumers", *columns, *more)
        }
