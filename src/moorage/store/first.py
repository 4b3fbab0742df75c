"""What is said of a provider for the first time, written in one round trip (ADR-0019).

A commit that reads before it writes takes two round trips to a server. What a host says of itself
when it joins a fleet nearly always finds the same: a name that nobody has, and a provider without
inventories, traits or aggregates. So that is bet on. One statement writes everything, if what the
bet says is so, and nothing otherwise; then the commit is made as all others are, which tells what
is wrong, or does what there is to do.

The statement runs under the same locks as any other commit of that change, so what it sees stays
as it is until it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from moorage.domain import changes
from moorage.domain.changes import Committed
from moorage.domain.errors import Busy, MoorageError
from moorage.store import rows
from moorage.store.batch import doubtful
from moorage.store.footprint import footprint
from moorage.store.own import Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import TextClause

    from moorage.domain.changes import Changeset
    from moorage.store.backends import AtOnce
    from moorage.store.session import Question

EARLY: Final = 2
"""The last generation of a provider to which so little was done that a bet is worth its while."""
_UNKNOWN: Final = "the database broke off while committing; look before trying again"

_BEGIN: Final = (
    "WITH now AS MATERIALIZED (SELECT"
    " CAST(CAST(pg_current_xact_id() AS text) AS bigint) AS number,"
    " CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) AS at)"
)
_END: Final = (
    ", logged AS (INSERT INTO changes (revision, subject, bookings_only, at)"
    " SELECT now.number, done.uuid, false, now.at FROM done, now)"
    " SELECT now.number, now.at, done.generation, {traits_at} AS traits_at FROM done, now"
)
_UUID: Final = "CAST(:provider AS text)"
_NAMES: Final = "CAST(:names AS text[])"


def commit_first(
    at_once: AtOnce, changeset: Changeset, otherwise: Callable[[], tuple[Committed, Ended]]
) -> tuple[Committed, Ended]:
    """Commit at one go what is said of a provider for the first time, and all else `otherwise`.

    Raises:
        Busy: too many writers at once, or the connection broke and nobody knows what was done;
            Unavailable is one.
        MoorageError: what `otherwise` raises.
    """
    bet = _bet(changeset)
    if bet is None:
        return otherwise()
    try:
        found = at_once(partial(footprint, changeset), bet)
    except DBAPIError:
        return _after_a_break(otherwise)
    if not found:
        return otherwise()
    return _told(changeset.changes[0], found.one())


def _after_a_break(
    otherwise: Callable[[], tuple[Committed, Ended]],
) -> tuple[Committed, Ended]:
    """Commit again what nobody knows whether it was done: it is done once at most.

    The locks come first, so what was cut off has ended by then. If it was done, the generation has
    moved or the name is taken, and this commit is refused, as it would be by somebody else's. If
    it begins only afterwards, it is what finds that, and writes nothing.
    """
    try:
        return otherwise()
    except MoorageError as error:
        raise Busy(_UNKNOWN, retry_after=getattr(error, "retry_after", 1)) from error


def _told(change: Any, row: Any) -> tuple[Committed, Ended]:  # noqa: ANN401 - of several kinds
    """What the statement came to, in the words of every commit."""
    born = isinstance(change, changes.CreateProvider)
    uuid: str = change.uuid if born else change.provider
    committed = Committed(
        revision=row.number,
        at=row.at,
        provider_generations=MappingProxyType({uuid: row.generation}),
        created=frozenset((uuid,)) if born else frozenset(),
        traits_at=row.traits_at,
    )
    return committed, Ended((row.number, row.at), {}, 0)


# --- what may be bet on -------------------------------------------------------------------------


def _bet(changeset: Changeset) -> Callable[[], Question] | None:
    """What makes the statement of a changeset; None of one on which nothing is bet."""
    if len(changeset.changes) != 1:
        return None
    (change,) = changeset.changes
    kind = _KINDS.get(type(change))
    if kind is None or not kind.promises(change):
        return None
    if changeset.relies_on or changeset.topology_revision is not None:
        return None
    return None if changeset.keepers_revision is not None else partial(kind.question, change)


def _early(generation: int | None) -> bool:
    return generation is not None and generation <= EARLY


def _promises_inventories(change: changes.PutInventories) -> bool:
    if not (_early(change.generation) and change.replace_all and change.inventories):
        return False
    classes = [one.resource_class for one in change.inventories]
    if change.create or change.update or doubtful(classes):
        return False
    return len(set(classes)) == len(classes)


def _create_provider(change: changes.CreateProvider) -> Question:
    given = {"provider": change.uuid, "name": change.name}
    if change.parent_uuid is None:
        return _CREATE_ROOT, given
    return _CREATE_CHILD, {**given, "parent": change.parent_uuid}


def _put_inventories(change: changes.PutInventories) -> Question:
    given: dict[str, object] = {"provider": change.provider, "generation": change.generation}
    every = [rows.inventory_columns(change.provider, one, 0) for one in change.inventories]
    return _PUT_INVENTORIES, given | {name: [one[name] for one in every] for name in _COLUMNS}


def _put_traits(change: changes.PutTraits) -> Question:
    given = {"provider": change.provider, "generation": change.generation}
    return _PUT_TRAITS, {**given, "names": sorted(change.traits)}


def _put_aggregates(change: changes.PutAggregates) -> Question:
    given = {"provider": change.provider, "generation": change.generation}
    return _PUT_AGGREGATES, {**given, "names": sorted(change.aggregates)}


@dataclass(frozen=True, slots=True)
class _Kind:
    promises: Callable[[Any], bool]
    """Whether it is worth the while to bet on a change."""
    question: Callable[[Any], Question]


_KINDS: Final[Mapping[type, _Kind]] = MappingProxyType(
    {
        changes.CreateProvider: _Kind(lambda _: True, _create_provider),
        changes.PutInventories: _Kind(_promises_inventories, _put_inventories),
        changes.PutTraits: _Kind(
            lambda one: bool(one.traits) and _early(one.generation), _put_traits
        ),
        changes.PutAggregates: _Kind(
            lambda one: bool(one.aggregates) and _early(one.generation), _put_aggregates
        ),
    }
)

# --- the statements, as PostgreSQL words them ---------------------------------------------------


def _creation(parent: str, root: str, tree: str) -> TextClause:
    return text(
        f"{_BEGIN}, done AS ("  # noqa: S608 - constants
        "INSERT INTO providers"
        " (uuid, name, parent, root, generation, revision, created_at, updated_at)"
        f" SELECT {_UUID}, CAST(:name AS text), {parent}, {root}, 0, 1, now.at, now.at FROM {tree}"
        f" WHERE NOT EXISTS (SELECT FROM providers WHERE uuid = {_UUID})"
        " AND NOT EXISTS (SELECT FROM providers WHERE name = CAST(:name AS text))"
        " RETURNING uuid, generation)" + _END.format(traits_at="CAST(NULL AS bigint)")
    )


def _description(table: str, column: str, values: str, *, known: str = "") -> TextClause:
    """Gives a provider its first rows of a table; `known` is what must be there beforehand."""
    besides, guard, newest = "", "", "CAST(NULL AS bigint)"
    if known:
        besides, guard, newest = ", known", f" AND known.found = cardinality({_NAMES})", "newest"
    return text(
        f"{_BEGIN}{known}, done AS ("  # noqa: S608 - constants
        "UPDATE providers SET generation = providers.generation + 1,"
        f" revision = providers.revision + 1, updated_at = now.at FROM now{besides}"
        f" WHERE uuid = {_UUID} AND generation = :generation{guard}"
        f" AND NOT EXISTS (SELECT FROM {table} WHERE provider = {_UUID})"
        f" RETURNING providers.uuid, providers.generation, {newest} AS traits_at),"
        f" put AS (INSERT INTO {table} (provider, {column})"
        f" SELECT done.uuid, {values})" + _END.format(traits_at="done.traits_at")
    )


_CREATE_ROOT: Final = _creation("NULL", _UUID, "now")
_CREATE_CHILD: Final = _creation(
    "above.uuid",
    "above.root",
    "now JOIN providers AS above ON above.uuid = CAST(:parent AS text)",
)
_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "resource_class": "text",
        "total": "bigint",
        "reserved": "bigint",
        "min_unit": "bigint",
        "max_unit": "bigint",
        "step_size": "bigint",
        "allocation_ratio": "double precision",
    }
)
"""Of an inventory, but for its provider and the commit's instant."""
_NAMED: Final = ", ".join(_COLUMNS)
_PUT_INVENTORIES: Final = _description(
    "inventories",
    f"{_NAMED}, updated_at",
    f"{_NAMED}, now.at FROM done, now, unnest("
    + ", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in _COLUMNS.items())
    + f") AS one ({_NAMED})",
)
_PUT_TRAITS: Final = _description(
    "provider_traits",
    "trait",
    f"one FROM done, unnest({_NAMES}) AS one",
    known=", known AS MATERIALIZED"  # noqa: S608 - constants
    " (SELECT count(*) AS found, max(updated_at) AS newest"
    f" FROM traits WHERE name = ANY({_NAMES}))",
)
_PUT_AGGREGATES: Final = _description(
    "provider_aggregates", "aggregate", f"one FROM done, unnest({_NAMES}) AS one"
)
