"""The store contract: events in the order of commits, none missed, none invented, old ones gone."""

import threading
from dataclasses import replace
from time import monotonic

import pytest
from tests.contract.conftest import SetClock
from tests.contract.test_store_leases import LEASE, effect

from moorage.domain.actors import UNKNOWN, Actor
from moorage.domain.changes import (
    Change,
    Changeset,
    CreateProvider,
    DeleteSubscription,
    DropDeadLetters,
    PassEvents,
    PutDeadLetters,
    PutEffect,
    PutEvent,
    PutExplanation,
    PutLease,
    PutSubscription,
    TrimEvents,
)
from moorage.domain.errors import (
    ConcurrentUpdate,
    DuplicateName,
    EventsLost,
    LimitExceeded,
    NotFound,
)
from moorage.domain.events import (
    BEGINNING,
    EVERYTHING,
    DerivedEvent,
    Event,
    EventCursor,
    EventFilter,
)
from moorage.domain.explain import Explanation, Stage
from moorage.domain.leases import LeaseState
from moorage.domain.subscriptions import DeadLetter, Subscription, SubscriptionFilter
from moorage.store import Ledger, open_store
from moorage.usecases.paging import Page

SUBSCRIPTION = Subscription(
    "s", "p", "u", "mine", SubscriptionFilter(("lease.*",)), "http://h/", "whsec_"
)


def write(store: Ledger, *changes: Change) -> None:
    store.commit(Changeset(tuple(changes)))


def event(subject: str, type_: str = "lease.notice", project: str = "p") -> PutEvent:
    return PutEvent(DerivedEvent(type_, project, subject, 0, {"n": subject}))


def subjects(
    store: Ledger,
    after: EventCursor = BEGINNING,
    limit: int = 1_000,
    *,
    project: str | None = "p",
) -> list[str]:
    return [one.subject for one in store.event_log.page(project, after, EVERYTHING, limit).events]


def test_events_are_what_changes_mean_and_a_refused_commit_tells_nothing(
    store: Ledger, clock: SetClock
) -> None:
    write(store, PutLease(LEASE, None))
    clock.instant = 2_000
    with pytest.raises(DuplicateName):
        write(store, PutEffect(effect("f", 1), None), event("x"), PutLease(LEASE, None))
    active = replace(LEASE, state=LeaseState.ACTIVE, degraded=True, missing=1)
    write(store, PutLease(active, 0), event("y"))
    found = store.event_log.page("p", BEGINNING, EVERYTHING, 10).events
    assert [(one.type, one.subject, one.at, one.generation) for one in found] == [
        ("lease.pending", "l", 1_000, 0),
        ("lease.active", "l", 2_000, 1),
        ("lease.degraded", "l", 2_000, 1),
        ("lease.missing", "l", 2_000, 1),
        ("lease.notice", "y", 2_000, 0),
    ]
    assert len({one.id for one in found}) == len(found)


def test_pages_go_on_where_the_last_one_ended(store: Ledger) -> None:
    write(store, *(event(f"e{number}") for number in range(5)))
    write(store, event("other", project="q"), event("e5"), event("e6", "lease.active"))
    first = store.event_log.page("p", BEGINNING, EVERYTHING, 4)
    assert ([one.subject for one in first.events], first.more) == (["e0", "e1", "e2", "e3"], True)
    second = store.event_log.page("p", first.cursor, EVERYTHING, 4)
    assert ([one.subject for one in second.events], second.more) == (["e4", "e5", "e6"], False)
    assert second.cursor == store.event_log.newest()
    assert store.event_log.page("p", second.cursor, EVERYTHING, 4).events == ()
    only = store.event_log.page(None, BEGINNING, EventFilter(("lease.active",)), 4)
    assert [one.subject for one in only.events] == ["e6"]
    assert [
        one.subject
        for one in store.event_log.page("p", BEGINNING, EventFilter((), ("e5",)), 4).events
    ] == ["e5"]


def test_what_was_forgotten_is_told_with_where_to_go_on(store: Ledger, clock: SetClock) -> None:
    write(store, event("a"))
    begun = store.event_log.newest()
    clock.instant = 5_000
    write(store, event("b"), event("c"))
    quiet = replace(SUBSCRIPTION, id="q", project_id="quiet")
    write(store, PutSubscription(SUBSCRIPTION, None), PutSubscription(quiet, None))
    write(store, TrimEvents(before=5_000, keep=10, most=10))
    assert subjects(store, begun) == ["b", "c"]
    write(store, TrimEvents(before=0, keep=1, most=10))
    with pytest.raises(EventsLost) as lost:
        subjects(store, begun)
    assert lost.value.before == 5_000
    assert subjects(store, EventCursor.parse(lost.value.oldest)) == ["c"]
    assert subjects(store) == ["c"]
    with pytest.raises(EventsLost, match="no event at the cursor"):
        subjects(store, replace(store.event_log.newest(), at=7))
    # Nothing of the quiet project's was lost; of the other's, some.
    pending = store.event_log.pending(store.event_log.subscription("s"), 10)
    assert (pending.lost is not None, [one.subject for one in pending.events]) == (True, ["c"])
    assert store.event_log.pending(store.event_log.subscription("q"), 10).lost is None


def test_no_project_pushes_out_another_s_events(store: Ledger, clock: SetClock) -> None:
    start = store.event_log.newest()
    write(store, event("p0"))
    mine = store.event_log.newest()
    write(store, *(event(f"q{number}", project="q") for number in range(8)))
    theirs = store.event_log.newest()
    others = replace(SUBSCRIPTION, id="o", project_id="q")
    write(store, PutSubscription(SUBSCRIPTION, None), PutSubscription(others, None))
    clock.instant = 5_000
    write(store, event("p1"), *(event(f"q{number}", project="q") for number in range(8, 20)))
    assert store.event_log.surplus(0, 10) == (0, 10)
    write(store, TrimEvents(before=0, keep=10, most=6))
    assert store.event_log.surplus(0, 10) == (0, 4)
    write(store, TrimEvents(before=0, keep=10, most=6))
    assert store.event_log.surplus(0, 10) == (0, 0)
    kept = [f"q{number}" for number in range(10, 20)]
    assert subjects(store) == ["p0", "p1"]
    assert subjects(store, project="q") == kept
    assert sorted(subjects(store, project=None)) == sorted(["p0", "p1", *kept])
    # A cursor that lost nothing goes on, though it came after an event that is gone.
    assert subjects(store, start) == ["p0", "p1"]
    assert subjects(store, mine) == subjects(store, theirs) == ["p1"]
    for cursor in (start, mine, theirs):
        for project in ("q", None):
            with pytest.raises(EventsLost) as lost:
                subjects(store, cursor, project=project)
            after = EventCursor.parse(lost.value.oldest)
            assert [one for one in subjects(store, after, project=project) if one[0] == "q"] == kept
    with pytest.raises(EventsLost, match="no event at the cursor"):
        subjects(store, replace(store.event_log.newest(), at=7))
    assert store.event_log.pending(store.event_log.subscription("s"), 30).lost is None
    pending = store.event_log.pending(store.event_log.subscription("o"), 30)
    assert (pending.lost is not None, [one.subject for one in pending.events]) == (True, kept)
    # By age all go; the ledger's own start stands for every project's then.
    write(store, TrimEvents(before=6_000, keep=10, most=100))
    assert subjects(store, project="q") == subjects(store) == []
    with pytest.raises(EventsLost):
        subjects(store, mine)


def test_a_page_costs_the_same_however_far_behind_its_reader_is(store: Ledger) -> None:
    for start in range(0, 6_000, 1_000):
        write(store, *(event(f"e{start + n}", "lease.active") for n in range(1_000)))
    write(store, event("last"))
    found: list[Event] = []
    cursor, pages = BEGINNING, 0
    more = True
    while more:
        page = store.event_log.page("p", cursor, EventFilter(("lease.notice",)), 10)
        cursor, more, pages = page.cursor, page.more, pages + 1
        found += page.events
    assert ([one.subject for one in found], pages) == (["last"], 4)


def test_readers_beside_many_writers_miss_nothing(database_url: str) -> None:
    """Each page begins where the last ended; positions only grow, and every event comes once."""
    writers, each = 4, 15
    stores = [open_store(database_url) for _ in range(writers + 1)]
    done = threading.Event()
    found: list[str] = []
    patience = [0.0]

    def work(number: int) -> None:
        for n in range(each):
            write(stores[number], event(f"{number}.{n}"), event(f"{number}.{n}+"))

    begin = stores[-1].event_log.newest()

    def follow() -> None:
        cursor = begin
        while True:
            last = done.is_set()
            page = stores[-1].event_log.page("p", cursor, EVERYTHING, 7)
            assert page.cursor.position >= cursor.position
            cursor = page.cursor
            found.extend(one.subject for one in page.events)
            # The database may hold back what is committed for work of its own, as to analyse.
            if last and (len(found) >= writers * each * 2 or monotonic() > patience[0]):
                return

    reader = threading.Thread(target=follow)
    reader.start()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    patience[0] = monotonic() + 30
    done.set()
    reader.join()
    for one in stores:
        one.close()
    assert len(found) == len(set(found)) == writers * each * 2
    for number in range(writers):
        mine = [one for one in found if one.startswith(f"{number}.")]
        assert mine == [f"{number}.{n}{s}" for n in range(each) for s in ("", "+")]


def test_a_subscription_is_written_over_what_was_seen_only(store: Ledger) -> None:
    write(store, PutSubscription(SUBSCRIPTION, None, limit=1))
    with pytest.raises(LimitExceeded):
        write(store, PutSubscription(replace(SUBSCRIPTION, id="t"), None, limit=1))
    stored = store.event_log.subscription("s")
    assert stored == SUBSCRIPTION
    write(store, PutSubscription(replace(stored, attempts=3), 0))
    with pytest.raises(ConcurrentUpdate):
        write(store, PutSubscription(stored, 0))
    write(store, PassEvents((("s", 0, 70), ("gone", 0, 1))))
    write(store, PassEvents((("s", 0, 90),)))
    stored = store.event_log.subscription("s")
    assert (stored.reached, stored.attempts, stored.generation) == (70, 3, 1)
    assert [one.id for one in store.event_log.subscriptions("p", Page())] == ["s"]
    assert store.event_log.subscriptions("p", Page(marker="s")) == []
    write(store, DeleteSubscription("s"))
    with pytest.raises(NotFound):
        store.event_log.subscription("s")


def test_due_are_those_of_whose_project_something_happened(store: Ledger, clock: SetClock) -> None:
    other = replace(SUBSCRIPTION, id="o", project_id="q")
    write(store, PutSubscription(SUBSCRIPTION, None), PutSubscription(other, None))
    assert store.event_log.due(10) == []
    write(store, event("a", "claim.active"), event("b", "lease.active"))
    (due,) = store.event_log.due(10)
    assert due.id == "s"
    assert [one.subject for one in store.event_log.pending(due, 10).events] == ["b"]
    write(store, PutSubscription(replace(due, not_before=clock.instant + 1), 0))
    assert store.event_log.due(10) == []


def test_dead_letters_stay_until_they_are_dropped_or_too_many(store: Ledger) -> None:
    write(store, PutSubscription(SUBSCRIPTION, None), event("a"))
    (one,) = store.event_log.page("p", BEGINNING, EVERYTHING, 1).events
    letters = tuple(DeadLetter(f"d{n}", "s", one, "away", 3, 1_000) for n in range(3))
    write(store, PutDeadLetters("s", letters, keep=2))
    assert store.event_log.dead_letters("s", Page()) == list(letters[1:])
    write(store, PutDeadLetters("s", (replace(letters[1], queued=True),), keep=2))
    assert [one.id for one in store.event_log.dead_letters("s", Page(), queued=True)] == ["d1"]
    assert [one.id for one in store.event_log.due(10)] == ["s"]
    write(store, DropDeadLetters("s", ("d1",)))
    assert store.event_log.dead(["s", "other"]) == {"s": 1}


def test_a_commit_names_its_actor(store: Ledger) -> None:
    ann, expiry = Actor("ann", "p", "req-1", "req-0", operator=True), Actor(by="expiry")
    store.by(ann).commit(Changeset((event("one"), CreateProvider("a", "host-a"))))
    written = store.by(expiry).commit_alone(
        lambda: Changeset((event("two"), CreateProvider("b", "host-b")))
    )
    write(store, event("three"))
    assert written is not None
    found = store.event_log.page("p", BEGINNING, EVERYTHING, 9).events
    assert [(one.subject, one.actor) for one in found] == [
        ("one", ann),
        ("two", expiry),
        ("three", UNKNOWN),
    ]
    assert store.last_actor(["a"], -1) == ann
    assert store.last_actor(["a", "b"], -1) == expiry
    assert store.last_actor(["a", "b"], -1, operators_first=True) == ann
    assert store.last_actor(["b"], -1, operators_first=True) == expiry
    assert store.last_actor(["a"], written.revision - 1) is None
    assert store.last_actor([], -1) is None


def test_what_is_remembered_is_shared_by_all_views(store: Ledger) -> None:
    known = store.by(Actor("ann")).exclusive_ensembles(store.snapshot())
    assert store.by(Actor("bob")).exclusive_ensembles(store.snapshot()) is known


def test_explanations_of_a_dry_run_are_their_actors(store: Ledger) -> None:
    why = Explanation("x", "infeasible", Stage.CAPACITY, 0, 0)
    dry = store.dry_run(explained=True).by(Actor("ann", "p"))
    before = store.snapshot().revision
    dry.commit(Changeset((PutExplanation(why, "p", "{}"),)))
    assert store.last_actor([""], before) == Actor("ann", "p")
