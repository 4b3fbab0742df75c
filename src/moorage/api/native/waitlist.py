"""`/v1/waitlist`, and the answer to a lease that waits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.formats import view
from moorage.api.native.paging import listed
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import format_instant
from moorage.domain.waitlist import EntryState
from moorage.usecases.waitlist.attempt import caller_of
from moorage.usecases.waitlist.enter import WaitRequest
from moorage.usecases.waitlist.queries import (
    ListedEntry,
    cancel_entry,
    list_entries,
    listed_entry,
    own_entry,
)
from moorage.wire import waitlist as wire

if TYPE_CHECKING:
    from moorage.domain.waitlist import Estimate, WaitlistEntry
    from moorage.wire.leases import LeaseBody

STATES: Final = {one.value: one for one in EntryState}
ACCEPTED: Final = 202


def listing(call: Call) -> Reply:
    """GET: a page of the project's entries."""
    store = call.env.store
    read = partial(
        list_entries,
        store,
        call.caller,
        all_projects=call.flag("all_projects"),
        state=_state(call.query.get("status")),
    )
    return listed(
        call,
        "entries",
        lambda page: read(page=page),
        lambda one: entry_view(call, listed_entry(store, one)),
        {"computed_at": format_instant(store.now())},
        path="waitlist",
    )


def show(call: Call) -> Reply:
    """GET: one entry."""
    store = call.env.store
    entry = own_entry(store, call.caller, call.path["id"])
    view = entry_view(call, listed_entry(store, entry))
    return Reply(wire.OneWaitlistEntry(view), generation=entry.generation)


def cancel(call: Call) -> Reply:
    """DELETE: cancel an entry."""
    generation = call.matched if call.match_given else None
    call.perform(cancel_entry, call.path["id"], generation)
    return Reply()


def wait_of(body: LeaseBody) -> WaitRequest | None:
    """The waiting terms of a lease, if it may wait.

    Raises:
        InvalidDescription: its times cannot be understood.
    """
    if body.wait is None:
        return None
    latest, until = body.wait.latest_start, body.wait.until
    return WaitRequest(
        latest=None if latest is None else reading.instant(latest, "lease.wait.latest_start"),
        until=None if until is None else reading.instant(until, "lease.wait.until"),
        floats=body.start is None and body.end is None,
    )


def entered_reply(call: Call, entered: ListedEntry) -> Reply:
    """The reply to a lease that waits."""
    view = entry_view(call, entered)
    if call.dry_run:
        return Reply(wire.OneWaitlistEntry(view, dry_run=True), status=ACCEPTED)
    return Reply(
        wire.OneWaitlistEntry(view),
        status=ACCEPTED,
        generation=entered.entry.generation,
        location=f"{call.base}/waitlist/{entered.entry.id}",
    )


def entry_view(call: Call, one: ListedEntry) -> wire.WaitlistEntry:
    """An entry with its present state."""
    entry, terms = one.entry, one.entry.terms
    state = entry.state_at(one.now)
    granted, waits = state is EntryState.GRANTED, state is EntryState.WAITING
    estimate = entry.estimate if waits else None
    links = [] if call.dry_run else [call.link("self", "waitlist", entry.id)]
    if granted:
        links.append(call.link("lease", "leases", entry.id))
    if entry.explanation is not None:
        links.append(call.link("explanation", "explanations", entry.explanation))
    return view(
        wire.WaitlistEntry,
        entry,
        terms,
        status=state,
        before=one.before if waits else None,
        earliest_start=terms.period.start,
        latest_start=entry.latest,
        until=min(entry.until, entry.latest - terms.lead),
        duration=terms.period.end - terms.period.start,
        places=entry.units,
        why=_why(call, entry),
        estimate=estimate and _estimate(one, estimate),
        estimate_note=(entry.estimate_note or None) if waits else None,
        estimated_at=entry.estimated_at or None,
        ensemble_id=entry.ensemble_id if granted or entry.ensemble is None else None,
        lease_id=entry.id if granted else None,
        links=links,
    )


def _why(call: Call, entry: WaitlistEntry) -> str:
    """The reason for waiting; a reason worded for operators is withheld from tenants."""
    if caller_of(entry).operator and not call.caller.operator:
        return f"it waits for {entry.waits_for}"
    return entry.why


def _estimate(one: ListedEntry, estimate: Estimate) -> wire.Estimate:
    return view(
        wire.Estimate,
        estimate,
        one,
        proved=estimate.proved and one.current,
        in_range=estimate.start <= one.entry.latest,
    )


def _state(text: str | None) -> EntryState | None:
    if text is None:
        return None
    try:
        return STATES[text]
    except KeyError:
        known = ", ".join(STATES)
        raise InvalidDescription(
            f"an entry of the waitlist is {known}; not {text!r}", path="status"
        ) from None
