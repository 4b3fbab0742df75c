"""The working set of one commit: what its changes have read, written and touched so far.

Changes are applied in order and write their rows at once. What can only be judged on the end
state (capacity, inventories that went, consumers that are forgotten) is noted here and
settled by `settle`. Wire generations are compared with those before the commit and move at
its end, so two changes of one changeset may name the same generation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import os_resource_classes
from sqlalchemy import bindparam, select

from moorage.domain.bookings import BookingState
from moorage.domain.changes import PutDecision, PutEnsemble
from moorage.domain.errors import NotFound, ProviderConflict
from moorage.domain.period import FOREVER
from moorage.domain.placement import Occupant
from moorage.store.changelog.entries import Added, ProviderChange, encode_added
from moorage.store.database.statements import chunks
from moorage.store.schema import tables
from moorage.store.values import rows, stored_bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import ClauseElement, Row, Select

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change, Changeset
    from moorage.domain.period import Instant
    from moorage.store.changelog.entries import Turn
    from moorage.store.changelog.lapsed_bookings import Swept
    from moorage.store.database.session import Rows, Session
    from moorage.store.database.statements import Parameters

_ALLOCATED: Final = BookingState.ALLOCATED.value
_NO_HOLDS: Final[Mapping[str, str]] = MappingProxyType({})

Pair = tuple[str, str]
"""Provider UUID and resource class: one inventory."""
Span = tuple[int, int, int]
"""Start, end, amount; past starts are `now`, and an overrun end is `FOREVER`."""
Prefetched: TypeAlias = "dict[ClauseElement, tuple[Parameters, Rows]]"
"""What was asked with the beginning of a commit, and the answers; see `first_questions`."""

_STANDARD: Final = frozenset(os_resource_classes.STANDARDS)

_some_names: Final[Any] = bindparam("names", expanding=True)
CLASSES = select(tables.resource_classes.c.name).where(
    tables.resource_classes.c.name.in_(_some_names)
)
TRAITS = select(tables.traits.c.name, tables.traits.c.updated_at).where(
    tables.traits.c.name.in_(_some_names)
)
PROVIDER = select(tables.providers).where(tables.providers.c.uuid == bindparam("uuid"))


def doubtful(classes: Iterable[str]) -> list[str]:
    """Those of resource classes that a ledger may not have; see `upgrade` for those it has."""
    return [name for name in classes if name not in _STANDARD]


_ENCODERS: Final[Mapping[type, Callable[[Any], str]]] = MappingProxyType(
    {
        PutEnsemble: lambda change: stored_bodies.ENSEMBLE.encode(change.stored),
        PutDecision: lambda change: stored_bodies.DECISION.encode(change.stored),
    }
)


class ChangeBodies:
    """The stored texts of what a changeset writes, made before anybody waits for its locks.

    Those of ensembles and decisions grow with their members, and follow from the change alone.
    Texts of changes that were not foreseen are made when asked for.
    """

    def __init__(self, changeset: Changeset | None = None) -> None:
        # By identity, which costs nothing; the changes are kept, so no other gets one's place.
        self._changes = () if changeset is None else changeset.changes
        self._texts = {
            id(change): _ENCODERS[type(change)](change)
            for change in self._changes
            if type(change) in _ENCODERS
        }

    def of(self, change: Change) -> str:
        """The stored text of a change of one of these kinds."""
        found = self._texts.get(id(change))
        return _ENCODERS[type(change)](change) if found is None else found


@dataclass
class Batch:
    """See the module."""

    connection: Session
    now: Instant
    turn: Turn
    sweep: Callable[[Session, Turn, Instant], Swept]
    """Deletes bookings that no longer live, and says where; see `Log.sweep`."""
    prefetched: Prefetched = field(default_factory=dict)
    bodies: ChangeBodies = field(default_factory=ChangeBodies)
    actor: str | None = None
    """The stored text of who commits."""
    touched: dict[str, bool] = field(init=False, default_factory=dict)
    """Provider UUID -> whether only its bookings changed."""
    rewritten: set[str] = field(init=False, default_factory=set)
    """Those of them to which more was done than that bookings came."""
    arrived: dict[str, list[Booking]] = field(init=False, default_factory=dict)
    """Provider UUID -> bookings that came."""
    born: dict[str, str] = field(init=False, default_factory=dict)
    """Consumers that the commit made: nobody had them before -> their projects."""
    bumps: dict[str, int] = field(init=False, default_factory=lambda: defaultdict(int))
    """How far each provider's wire generation moves, allocations aside."""
    allotted: set[str] = field(init=False, default_factory=set)
    """Providers whose wire generation moves once for allocations."""
    removed: dict[Pair, list[Span]] = field(init=False, default_factory=dict)
    """Live bookings that the changeset took away."""
    added: dict[Pair, list[Span]] = field(init=False, default_factory=dict)
    """Bookings that the changeset wrote."""
    amounts: dict[Pair, set[int]] = field(init=False, default_factory=dict)
    """Amounts written, each to be judged by the inventory's unit rules."""
    held: set[tuple[str, str, str, int]] = field(init=False, default_factory=set)
    """Consumer, provider, class and amount of live holds that the changeset took away."""
    vacated: set[str] = field(init=False, default_factory=set)
    """Consumers that lost bookings, perhaps their last."""
    swept: set[str] = field(init=False, default_factory=set)
    """Providers that look different though the commit does nothing to them: they lost bookings
    which no longer lived (see `changelog.lapsed_bookings`), or have some of a consumer that is
    another project's now."""
    given_up: dict[str, Sequence[Row[Any]]] = field(init=False, default_factory=dict)
    """Consumer -> allocations that it had, and has no longer: on all providers, or on one."""
    of_members: list[str] = field(init=False, default_factory=list)
    """Servers of members that get allocations."""
    dropped: set[Pair] = field(init=False, default_factory=set)
    """Inventories that went."""
    consumer_generations: dict[str, int] = field(init=False, default_factory=dict)
    traits_at: int | None = field(init=False, default=None)
    """See `Committed`."""
    created: set[str] = field(init=False, default_factory=set)
    taken: dict[str, set[str]] = field(init=False, default_factory=dict)
    """Kind -> ids that are taken, of kinds of which all new ones were looked up together."""
    last_serials: dict[str, int] = field(init=False, default_factory=dict)
    """Project -> the highest serial of its leases, where that is known."""
    serials: dict[str, int] = field(init=False, default_factory=dict)
    """See `Committed`."""
    topology_moved: bool = field(init=False, default=False)
    untold: dict[str, int] = field(init=False, default_factory=dict)
    """Of each refusal that is told, by its explanation's id: how many before it were not."""
    replaced: dict[tuple[str, str], Row[Any]] = field(init=False, default_factory=dict)
    """Kind and id of things written over or removed -> their rows before, as `Kind.seen` says."""
    generations: dict[str, int] = field(init=False, default_factory=dict)
    """Wire generations before the commit, of those providers of which they are known."""
    _providers: dict[str, Row[Any]] = field(init=False, default_factory=dict)
    gone: set[str] = field(init=False, default_factory=set)
    """Providers that were deleted."""
    _names: dict[str, dict[str, bool]] = field(init=False, default_factory=dict)
    """Per kind, whether a name that was looked up exists."""
    _trait_times: dict[str, int] = field(init=False, default_factory=dict)
    """When traits that were looked up were made."""

    def touch(self, provider: str, *, bookings_only: bool = False) -> None:
        """Note that a provider changes with this commit."""
        self.touched[provider] = self.touched.get(provider, True) and bookings_only
        self.rewritten.add(provider)

    def query(self, statement: ClauseElement, parameters: Parameters) -> Rows:
        """What a statement finds, for which the answer may be there; it is used once."""
        given, found = self.prefetched.pop(statement, (None, None))
        if found is not None and given == parameters:
            return found
        return self.connection.execute(statement, parameters)

    def is_taken(self, kind: str, id_: str, query: Select[Any]) -> bool:
        """Whether there is a thing of that id already; `query` asks for it alone, as `of`."""
        if kind not in self.taken:
            return self.connection.scalars(query, {"of": id_}).first() is not None
        was, now = id_ in self.taken[kind], self.taken[kind]
        now.add(id_)
        return was

    # --- providers ------------------------------------------------------------------------

    def provider(self, uuid: str) -> Row[Any]:
        """The stored row of a provider.

        Raises:
            NotFound: there is none.
        """
        row = self._providers.get(uuid)
        if row is None:
            row = self.query(PROVIDER, {"uuid": uuid}).one_or_none()
            if row is None:
                raise NotFound("resource provider", uuid)
            self._providers[uuid] = row
            self.generations[uuid] = row.generation
        return row

    def remove(self, uuid: str) -> None:
        """Note that a provider was deleted."""
        self.gone.add(uuid)
        self.touch(uuid)
        self.forget_provider(uuid)

    def forget_provider(self, uuid: str) -> None:
        """Read the provider's row anew next time."""
        self._providers.pop(uuid, None)
        self.generations.pop(uuid, None)

    def expect_generation(self, uuid: str, generation: int | None) -> None:
        """Compare a provider's wire generation before this commit with what a change expects.

        Raises:
            NotFound: no such provider.
            ProviderConflict: it is another one.
        """
        stored = self.provider(uuid).generation
        if generation is not None and stored != generation:
            raise ProviderConflict(
                f"provider {uuid}: generation expected {generation}, found {stored}", subject=uuid
            )

    def bump(self, uuid: str) -> int:
        """How far a provider's wire generation moves."""
        return self.bumps.get(uuid, 0) + (uuid in self.allotted)

    # --- names ------------------------------------------------------------------------------

    def knows_class(self, name: str) -> bool:
        """Whether the resource class exists."""
        return name in _STANDARD or self._known("classes", CLASSES, [name])[name]

    def knows_trait(self, name: str) -> bool:
        """Whether the trait exists."""
        return self._known("traits", TRAITS, [name])[name]

    def look_up_classes(self, names: Iterable[str]) -> None:
        """Make `knows_class` of all these names one look at the database."""
        self._known("classes", CLASSES, doubtful(names))

    def look_up_traits(self, names: Iterable[str]) -> None:
        """Make `knows_trait` of all these names one look at the database."""
        self._known("traits", TRAITS, names)

    def note_traits(self, names: Iterable[str]) -> None:
        """Note known traits that a provider is given."""
        found = [self._trait_times[name] for name in names if name in self._trait_times]
        if found:
            self.traits_at = max(found if self.traits_at is None else [*found, self.traits_at])

    def forget_names(self) -> None:
        """Read classes and traits anew next time."""
        self._names.clear()
        self._trait_times.clear()

    def _known(self, kind: str, query: Select[Any], names: Iterable[str]) -> dict[str, bool]:
        known = self._names.setdefault(kind, {})
        for some in chunks(name for name in names if name not in known):
            rows = self.query(query, {"names": some})
            if kind == "traits":
                self._trait_times.update(rows)
            found = {row.name for row in rows}
            known.update((name, name in found) for name in some)
        return known

    # --- bookings ---------------------------------------------------------------------------

    def is_live(self, row: Any) -> bool:  # noqa: ANN401 - a row of `bookings`
        """Whether the row's booking still exists now; see `Booking.live`."""
        return self.lives(row.state, row.lapses_at, row.end_at)

    def lives(self, state: str, lapses_at: Instant, end: Instant) -> bool:
        """The same of a booking's columns."""
        return self.now < lapses_at and (self.now < end or state == _ALLOCATED)

    def take_away(self, rows: Sequence[Any]) -> None:
        """Note bookings (rows of the table) that the caller deletes."""
        for row in rows:
            self.touch(row.provider, bookings_only=True)
            self.vacated.add(row.consumer)
            if self.is_live(row):
                span = self.span(row.start_at, row.end_at, row.amount)
                self.removed.setdefault((row.provider, row.resource_class), []).append(span)
                if row.state != _ALLOCATED:
                    self.held.add((row.consumer, row.provider, row.resource_class, row.amount))

    def put(self, bookings: Iterable[Booking], holders: Mapping[str, str] = _NO_HOLDS) -> None:
        """Write bookings, to be judged at the end; `holders` are the projects of holds."""
        written: list[dict[str, object]] = []
        for each in bookings:
            one = rows.as_read(each)
            written += rows.booking_columns(one, holders.get(one.consumer))
            provider, consumer, state = one.provider, one.consumer, one.state.value
            self.touched.setdefault(provider, True)
            self.arrived.setdefault(provider, []).append(one)
            # One that has lapsed already is kept until the next purge, but takes nothing.
            lives = self.lives(state, one.lapses_at, one.period.end)
            for name, amount in one.amounts.items():
                pair = provider, name
                spans = self.added.setdefault(pair, [])
                if lives:
                    spans.append(self.span(one.period.start, one.period.end, amount))
                # What was held so and stays held was judged by the rules of its time.
                if state == _ALLOCATED or (consumer, provider, name, amount) not in self.held:
                    self.amounts.setdefault(pair, set()).add(amount)
        if written:
            self.connection.do(INSERT_BOOKINGS, written)

    def renew(self, rows: Sequence[Any], end: Instant) -> None:
        """Note bookings (rows of the table) that the caller gives another end."""
        for row in rows:
            self.vacated.discard(row.consumer)
            if self.lives(row.state, row.lapses_at, end):
                spans = self.added.setdefault((row.provider, row.resource_class), [])
                spans.append(self.span(row.start_at, end, row.amount))

    def span(self, start: Instant, end: Instant, amount: int) -> Span:
        """When a booking that lives now occupies, from now on."""
        now = self.now
        return max(now, start), FOREVER if end <= now else end, amount

    def purge(self) -> None:
        """Delete bookings that no longer live, of whomever. Changes no arithmetic."""
        swept = self.sweep(self.connection, self.turn, self.now)
        self.vacated |= swept.consumers
        self.swept |= swept.providers

    def changed_providers(self) -> dict[str, ProviderChange]:
        """What the change log says of this commit."""
        found = dict.fromkeys(self.swept, _BOOKINGS_ONLY)
        for uuid, bookings_only in self.touched.items():
            found[uuid] = ProviderChange(bookings_only, self._added_text(uuid))
        return found

    def _added_text(self, uuid: str) -> str | None:
        """What was added to a provider, if nothing else was done to it."""
        bookings = self.arrived.get(uuid)
        if bookings is None or uuid in self.rewritten or uuid in self.swept:
            return None
        if not _are_apart(bookings):
            return None
        return encode_added(Added(bookings, self._newcomers(bookings), self.bump(uuid), self.now))

    def _newcomers(self, bookings: Sequence[Booking]) -> Sequence[Occupant] | None:
        born, found = self.born, []
        for one in bookings:
            project = born.get(one.consumer)
            if project is None:
                return None
            found.append(Occupant(one.consumer, project))
        return found


_BOOKINGS_ONLY: Final = ProviderChange(bookings_only=True)


def _are_apart(bookings: Sequence[Booking]) -> bool:
    """Whether they would be read as they are: those of one consumer might be read as one."""
    return len(bookings) == 1 or len({one.consumer for one in bookings}) == len(bookings)


INSERT_BOOKINGS = tables.bookings.insert()
