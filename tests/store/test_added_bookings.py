"""What the log says was booked is not read again, and a snapshot made of it is the ledger's."""

import atexit
import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Select, Table
from sqlalchemy.sql import visitors

from moorage.domain.bookings import Binding, Booking, BookingState
from moorage.domain.changes import (
    AdoptAllocations,
    Change,
    Changeset,
    CreateProvider,
    DeleteAllocations,
    DeleteEnsemble,
    DropBookings,
    EndBookings,
    PutBookings,
    PutEnsemble,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.content import AllocationSet
from moorage.domain.ensembles import Ensemble, Member, Role
from moorage.domain.errors import MoorageError, NotFound
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.store import Ledger, open_store
from moorage.store.backend import Backend
from moorage.store.changelog.entries import Added, decode_added, encode_added
from moorage.store.database.session import CursorSession
from moorage.store.opening import connect
from moorage.store.read import provider_states

PROVIDERS = ("a", "b")


class Clock:
    instant = 1_000

    def now(self) -> int:
        return self.instant


@cache
def ledger() -> bytes:
    """A file with two providers, to copy."""
    with TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/ledger")
        store.commit(
            Changeset(
                tuple(
                    change
                    for name in PROVIDERS
                    for change in (
                        CreateProvider(name, name),
                        PutInventories(name, (Inventory("VCPU", 90), Inventory("DISK_GB", 90)), 0),
                    )
                )
            )
        )
        store.close()
        return Path(folder, "ledger").read_bytes()


@pytest.fixture
def file(tmp_path: Path) -> str:
    Path(tmp_path, "ledger").write_bytes(ledger())
    return f"sqlite:///{tmp_path / 'ledger'}"


@pytest.fixture
def reread(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Providers whose bookings are read again."""
    found: list[str] = []
    load = provider_states.rebooked

    def watched(connection: object, known: dict[str, ProviderState]) -> object:
        found.extend(sorted(known))
        return load(connection, known)  # type: ignore[arg-type]

    monkeypatch.setattr(provider_states, "rebooked", watched)
    return found


def put(consumer: str, *providers: str, project: str = "project") -> ReplaceAllocations:
    amounts = {"VCPU": 2, "DISK_GB": 3}
    return ReplaceAllocations(
        Consumer(consumer, project, "user", "INSTANCE"),
        dict.fromkeys(providers, amounts),
        ANY_GENERATION,
    )


def commit(store: Ledger, *changes: Change) -> None:
    store.commit(Changeset(changes))


def said(snapshot: Snapshot) -> dict[str, object]:
    """All there is to say of providers; occupants have no order."""
    found: dict[str, object] = {}
    for uuid, row in snapshot.row_of.items():
        state = snapshot.state(row)
        columns = [
            (
                name,
                *(
                    int(of[one.position[row]])
                    for of in (one.used, one.peak, one.base, one.server_base)
                ),
            )
            for name, one in sorted(snapshot.classes.items())
        ]
        found[uuid] = (state.provider, state.bookings, frozenset(state.occupants), columns)
    return found


def opened(url: str) -> Ledger:
    """Without a look at the schema, which takes longer than all else here."""
    return Ledger(connect(url), None)


def as_new(url: str) -> dict[str, object]:
    with closing(opened(url)) as new:
        return said(new.snapshot())


def test_what_only_came_is_not_read_again(file: str, reread: list[str]) -> None:
    with closing(opened(file)) as store, closing(opened(file)) as other:
        store.snapshot()
        commit(store, put("one", "a"))
        commit(other, put("two", "a", "b"))
        commit(store, put("three", "a"), put("four", "b"))
        found = said(store.snapshot())
        assert not reread
        assert found == as_new(file)


def test_what_an_entry_does_not_say_is_read(file: str, reread: list[str]) -> None:
    """As those that an earlier version of the program wrote."""
    with closing(opened(file)) as store:
        store.snapshot()
        commit(store, put("one", "a"))
        commit(store, put("two", "b"))
        with closing(sqlite3.connect(file.removeprefix("sqlite:///"))) as connection:
            connection.execute("UPDATE changes SET added = NULL WHERE subject = 'a'")
            connection.commit()
        found = said(store.snapshot())
        assert reread == ["a"]
        assert found == as_new(file)


def test_what_also_went_is_read(file: str, reread: list[str]) -> None:
    with closing(opened(file)) as store:
        commit(store, put("one", "a"), put("two", "b"))
        store.snapshot()
        commit(store, put("three", "a"), DeleteAllocations("one"))
        commit(store, put("two", "b"))
        assert said(store.snapshot()) == as_new(file)
    assert reread == ["a", "b"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a snapshot asks for, besides what is new: the tables that are read."""
    found: list[str] = []
    execute = CursorSession.execute

    def watched(self: CursorSession, statement: Any, *more: Any) -> object:
        if isinstance(statement, Select):
            found.append("+".join(sorted({table.name for table in _tables(statement)})))
        return execute(self, statement, *more)

    monkeypatch.setattr(CursorSession, "execute", watched)
    return found


def _tables(statement: Select[Any]) -> list[Table]:
    return [one for one in visitors.iterate(statement) if isinstance(one, Table)]


HEAD = "changes", "changes+ledger+members+waitlist"
LATER = 10**16
"""Microseconds: some hundred years."""


def test_of_consumers_made_here_nothing_is_asked(file: str, asked: list[str]) -> None:
    with closing(opened(file)) as store:
        store.snapshot()
        commit(store, put("one", "a"))
        commit(store, put("two", "a", "b"))
        commit(store, hold("three", ["b"], LATER))
        asked.clear()
        found = said(store.snapshot())
        assert sorted(set(asked)) == sorted(HEAD)
        assert found == as_new(file)


def test_of_consumers_who_were_there_it_is_asked_whose_they_are(
    file: str, asked: list[str]
) -> None:
    with closing(opened(file)) as store:
        commit(store, put("one", "a"))
        store.snapshot()
        commit(store, hold("one", ["b"], LATER))
        asked.clear()
        found = said(store.snapshot())
        assert "consumers+members" in asked
        assert found == as_new(file)


def test_newcomers_have_the_tags_of_their_roles(file: str, asked: list[str]) -> None:
    with closing(opened(file)) as store:
        store.snapshot()
        commit(store, PutEnsemble(ensemble("one", "blue"), None))
        commit(store, put("one", "a"))
        commit(store, put("two", "a"))
        commit(store, put("three", "b"))
        asked.clear()
        snapshot = store.snapshot()
        assert sorted(set(asked)) == sorted({*HEAD, "members"})
        tags = {one.consumer: one.tags for row in (0, 1) for one in snapshot.state(row).occupants}
        assert tags == {"one": {"blue"}, "two": frozenset(), "three": frozenset()}
        assert said(snapshot) == as_new(file)


def test_who_is_another_projects_in_the_same_commit_is_that_projects(file: str) -> None:
    with closing(opened(file)) as store:
        store.snapshot()
        commit(store, hold("one", ["b"], LATER), put("one", "a", project="another"))
        found = store.snapshot()
        projects = {one.project_id for row in (0, 1) for one in found.state(row).occupants}
        assert projects == {"another"}
        assert said(found) == as_new(file)


def test_whose_holds_are_is_seen_where_they_are(file: str) -> None:
    with closing(opened(file)) as store, closing(opened(file)) as other:
        commit(store, hold("one", ["b"], LATER))
        other.snapshot()
        assert said(store.snapshot()) == as_new(file)
        commit(store, put("one", "a", project="another"))
        new = as_new(file)
        assert [said(one.snapshot()) for one in (store, other)] == [new, new]


def test_so_they_are_where_its_allocations_are_adopted(file: str) -> None:
    with closing(opened(file)) as store:
        commit(store, hold("one", ["b"], LATER))
        store.snapshot()
        commit(store, adopt("one", ["a"], "another"))
        assert said(store.snapshot()) == as_new(file)


def test_entries_are_in_the_order_of_commits_whatever_the_clock_did(file: str) -> None:
    with closing(opened(file)) as store:
        store.snapshot()
        commit(store, put("one", "a"))
        commit(store, put("two", "a"))
        with closing(sqlite3.connect(file.removeprefix("sqlite:///"))) as connection:
            connection.execute("UPDATE changes SET at = -revision")
            connection.commit()
        assert said(store.snapshot()) == as_new(file)


_instants = st.integers(1, FOREVER)
_ids = st.uuids().map(str)
_bookings = st.builds(
    Booking,
    consumer=_ids,
    provider=st.just("a"),
    amounts=st.dictionaries(st.sampled_from(("DISK_GB", "VCPU")), st.integers(1, 2**31 - 1)),
    period=st.builds(Period, st.just(0), _instants),
    state=st.sampled_from(BookingState),
    lapses_at=_instants,
    binding=st.sampled_from(Binding),
    decision=st.none() | _ids,
    preemptible=st.booleans(),
    yields_to=st.none() | _ids,
    declared_end=st.none() | _instants,
    priority=st.integers(-100, 100),
)


@given(
    bookings=st.lists(_bookings, min_size=1, max_size=3),
    bump=st.integers(0, 2),
    project=st.sampled_from(("project", None)),
)
def test_what_an_entry_says_is_what_was_added(
    bookings: list[Booking], bump: int, project: str | None
) -> None:
    newcomers = None if project is None else [Occupant(one.consumer, project) for one in bookings]
    added = Added(bookings, newcomers, bump, FOREVER)
    assert decode_added("a", encode_added(added)) == added


CONSUMERS = ("c0", "c1", "c2", "c3")
PROJECTS = ("project", "another")
TAGS = ("blue", "red")
_consumers = st.sampled_from(CONSUMERS)
_places = st.lists(st.sampled_from(PROVIDERS), min_size=1, unique=True)
_until = st.integers(1, 40)


def ensemble(server: str, tag: str) -> Ensemble:
    """One with a member whose server it is, or will be."""
    return Ensemble(
        id="e",
        project_id="project",
        user_id="user",
        name="e",
        roles=(Role("web", {"VCPU": 1}, tags=frozenset({tag})),),
        members=(Member(MemberName("web", 0), "member", server),),
    )


def hold(consumer: str, places: list[str], until: int) -> PutBookings:
    bookings = [
        Booking(
            consumer, one, {"VCPU": 1}, Period(1_000 + until), BookingState.HELD, 1_000 + 2 * until
        )
        for one in places
    ]
    return PutBookings(Consumer(consumer, "project"), tuple(bookings))


def adopt(consumer: str, places: list[str], project: str) -> AdoptAllocations:
    who = Consumer(consumer, project, "user", "INSTANCE", generation=3)
    return AdoptAllocations((AllocationSet(who, {one: {"VCPU": 1} for one in places}),))


_changes = st.one_of(
    st.builds(
        lambda consumer, places, project: put(consumer, *places, project=project),
        _consumers,
        _places,
        st.sampled_from(PROJECTS),
    ),
    st.builds(adopt, _consumers, _places, st.sampled_from(PROJECTS)),
    st.builds(DeleteAllocations, _consumers),
    st.builds(hold, _consumers, _places, _until),
    st.builds(lambda one: DropBookings(frozenset({one})), _consumers),
    st.builds(lambda one, end: EndBookings(frozenset({one}), 5_000 + end), _consumers, _until),
    st.builds(
        lambda server, tag, generation: PutEnsemble(ensemble(server, tag), generation),
        _consumers,
        st.sampled_from(TAGS),
        st.sampled_from((None, 0, 1)),
    ),
    st.just(DeleteEnsemble("e")),
)
_steps = st.lists(
    st.tuples(
        st.sampled_from((0, 1)), st.lists(_changes, min_size=1, max_size=2), st.integers(0, 3)
    ),
    min_size=2,
    max_size=8,
)


@cache
def backend() -> Backend:
    """One for all examples: wording statements anew takes longer than a whole example."""
    folder = TemporaryDirectory()
    Path(folder.name, "ledger").write_bytes(ledger())
    opened_once = connect(f"sqlite:///{folder.name}/ledger")
    atexit.register(folder.cleanup)
    atexit.register(opened_once.close)
    return opened_once


@given(steps=_steps, looks=st.integers(1, 5))
@settings(max_examples=20)
def test_two_who_write_see_the_same_as_a_third_who_reads_it_all(
    steps: list[tuple[int, list[Change], int]], looks: int
) -> None:
    clock = Clock()
    both = [Ledger(backend(), clock) for _ in range(2)]
    for consumer in CONSUMERS:  # whatever the example before has left
        commit(both[0], DropBookings(frozenset({consumer})))
        with suppress(NotFound):
            commit(both[0], DeleteAllocations(consumer))
    with suppress(NotFound):
        commit(both[0], DeleteEnsemble("e"))
    for number, (who, changes, later) in enumerate(steps):
        with suppress(MoorageError):
            commit(both[who], *changes)
        clock.instant += later
        if number % looks == 0:
            both[number % 2].snapshot()
    expected = said(Ledger(backend(), clock).snapshot())
    assert [said(one.snapshot()) for one in both] == [expected, expected]
