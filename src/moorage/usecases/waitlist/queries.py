"""Waitlist queries and cancellation, and the ledger state that an estimate is based on."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import StaleGeneration, WrongState
from moorage.domain.period import FOREVER, Period
from moorage.domain.waitlist import EntryState, EntryStep
from moorage.usecases.paging import Page
from moorage.usecases.shared.access import owned, visible_project
from moorage.usecases.shared.retry import retry
from moorage.usecases.waitlist.attempt import leave

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store


ESTIMATED: Final = 200
"""How many entries are estimated, from the first."""


def waitlist_order(store: Store) -> Sequence[WaitlistEntry]:
    """The entries that are estimated, in the waitlist's order."""
    return store.waiting_entries(Period(0, FOREVER), ESTIMATED)


def basis(snapshot: Snapshot, ordered: Iterable[WaitlistEntry], entry: WaitlistEntry) -> str:
    """A hash of what an entry's estimate depends on; the same in every process.

    These are the bookings, exclusive ensembles, and the waiting entries before it.
    """
    now, alive = snapshot.taken_at, snapshot.alive
    before = takewhile(lambda one: one.id != entry.id, ordered)
    ids = " ".join(one.id for one in before if not one.over_at(now))
    booked = f"{int(snapshot.revisions[alive].sum())} {int(alive.sum())} {snapshot.valid_until}"
    text = f"{booked} {snapshot.exclusive_revision} {ids}"
    return sha256(text.encode()).hexdigest()[:16]


COUNTED: Final = 1_000
"""How many entries before an entry are counted at most."""
_WHOLE: Final = Page()


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry with the number of competing entries before it."""

    entry: WaitlistEntry
    before: int
    now: Instant
    current: bool
    """Whether the estimate still matches the ledger and the list."""


def listed_entry(store: Store, entry: WaitlistEntry) -> ListedEntry:
    """The entry with its place in the order."""
    now = store.now()
    before, current = 0, False
    if entry.state_at(now) is EntryState.WAITING:
        earlier = takewhile(
            lambda one: one.id != entry.id, store.waiting_entries(entry.whole, COUNTED)
        )
        before = sum(bool(one.classes & entry.classes) and not one.over_at(now) for one in earlier)
        if entry.estimate is not None:
            found = basis(store.snapshot(), waitlist_order(store), entry)
            current = entry.estimated_from == found
    return ListedEntry(entry, before, now, current)


def own_entry(store: Store, caller: Caller, entry_id: str) -> WaitlistEntry:
    """The entry, if the caller may see it.

    Raises:
        NotFound: there is no such entry, or it belongs to another project.
    """
    return owned(caller, "waitlist entry", entry_id, store.waitlist_entry(entry_id))


def list_entries(
    store: Store,
    caller: Caller,
    *,
    all_projects: bool = False,
    state: EntryState | None = None,
    page: Page = _WHOLE,
) -> Sequence[WaitlistEntry]:
    """The caller's entries by creation time; for operators those of every project.

    Raises:
        Forbidden: a tenant asked for every project's entries.
        NotFound: the page's marker is no entry that the caller may see.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=None)
    if page.marker is not None:
        own_entry(store, caller, page.marker)
    return store.waitlist(project_id=project, state=state, page=page)


def cancel_entry(
    env: UseCaseEnvironment,
    caller: Caller,
    entry_id: str,
    generation: int | None,
) -> None:
    """Remove an entry from the waitlist.

    Raises:
        NotFound: there is no such entry for this caller.
        StaleGeneration: the entry has another generation.
        WrongState: the entry is not waiting any more.
    """

    def once() -> None:
        entry = own_entry(env.store, caller, entry_id)
        if generation is not None and generation != entry.generation:
            raise StaleGeneration(
                "waitlist entry", entry_id, expected=generation, actual=entry.generation
            )
        if entry.state_at(env.store.now()) is not EntryState.WAITING:
            told = f": it is lease {entry.id}" if entry.state is EntryState.GRANTED else ""
            state = entry.state_at(env.store.now())
            raise WrongState(f"the entry is not waiting, it is {state}{told}")
        leave(env, entry, EntryStep.CANCEL)

    retry(env, once)
