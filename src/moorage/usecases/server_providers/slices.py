"""Slices on a server, as the server's owner sees them: what there is, and what became of claims."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.decisions import Claim, ClaimState
from moorage.domain.errors import HoldExpired, InvalidDescription, NotFound, WrongState
from moorage.domain.refusal_commands import to_see_slices
from moorage.domain.resources import total
from moorage.usecases.claims.outcome import activate, end, fail
from moorage.usecases.ledger.withdrawal import newest_decisions
from moorage.usecases.server_providers.queries import own_server_provider
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.resources import Amounts
    from moorage.domain.server_providers import ServerProvider
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store

OPEN = frozenset({ClaimState.BUILDING, ClaimState.ACTIVE})
"""States of claims whose slices are there, or being made."""


@dataclass(frozen=True, slots=True)
class ShownSlice:
    """A slice as the owner of its server sees it: what the events `slice.*` say, and no more."""

    id: str
    """Its claim's id; of an allocation without a claim, the consumer's UUID."""
    state: ClaimState
    slice_id: str | None
    """Its UUID; None: it is not active yet."""
    resources: Amounts
    project_id: str | None
    """None: its owner does not know the project; see `ServerProvider.names`."""


@dataclass(frozen=True, slots=True)
class SliceReport:
    """What became of a slice that is claimed."""

    state: ClaimState
    """Active, failed or ended."""
    slice_id: str | None = None
    """Of an active one."""
    reason: str = ""
    """Of a failed one."""


def list_slices(
    env: UseCaseEnvironment, caller: Caller, server_id: str, page: Page
) -> Sequence[ShownSlice]:
    """The slices on a server of the caller that are building or active, by id.

    Raises:
        NotFound: there is no such server provider for this caller; or the page's marker is no slice
            on it, and never was one.
    """
    record = own_server_provider(env.store, caller, server_id)
    every = sorted(_slices(env.store, record), key=lambda one: one.id)
    if page.marker is not None and all(one.id != page.marker for one in every):
        past = if_stored(env.store.claim, page.marker)
        if past is None or past.server_provider != record.id:
            raise NotFound("marker", page.marker)
    return [one for one in every if page.marker is None or one.id > page.marker][: page.limit]


def report_slice(
    env: UseCaseEnvironment,
    caller: Caller,
    server_id: str,
    claim_id: str,
    report: SliceReport,
) -> ShownSlice:
    """Report on a claimed slice, as its own project may by its claim.

    Raises:
        NotFound: no such server provider for this caller, or no such claim on it.
        InvalidDescription: an active slice without a UUID, or a reason why it has not failed.
        MoorageError: as `activate`, `fail` and `end`.
    """
    record = own_server_provider(env.store, caller, server_id)
    if report.reason and report.state is not ClaimState.FAILED:
        raise InvalidDescription("only a failed slice has a reason", path="slice.reason")

    def access(store: Store, _: Caller, id_: str) -> Claim:
        claim = store.claim(id_)
        if claim.server_provider != record.id:
            raise NotFound("slice", id_)
        return claim

    if (report.slice_id is not None) != (report.state is ClaimState.ACTIVE):
        raise InvalidDescription(
            "an active slice has its UUID, and no other has one", path="slice.slice_id"
        )
    try:
        if report.slice_id is not None:
            outcome = activate(env, caller, claim_id, report.slice_id, access=access)
        elif report.state is ClaimState.FAILED:
            outcome = fail(env, caller, claim_id, report.reason, access=access)
        else:
            outcome = end(env, caller, claim_id, access=access)
    except NotFound as error:
        if error.kind not in {"claim", "ensemble"}:
            raise
        raise NotFound("slice", claim_id) from None
    except (HoldExpired, WrongState) as error:
        # Their sentences are for the slice's project, and may name its ensemble.
        state = env.store.claim(claim_id).state_at(env.store.now())
        raise type(error)(
            f"the slice is {state}, and cannot be {report.state} now"
            f"{to_see_slices(record.server_id)}"
        ) from None
    return _of_claim(record, outcome.claim, outcome.claim.state)


def _slices(store: Store, record: ServerProvider) -> Iterator[ShownSlice]:
    """Open claims, and allocations without one, which Placement's API has written.

    Claims are read after the bookings: one that became active in between is still listed.
    """
    snapshot = store.snapshot()
    row = snapshot.row(record.id)
    bookings = snapshot.bookings_of(row)
    decisions = {one.decision for one in bookings if one.decision is not None}
    claimed = set()
    for decision, _ in newest_decisions(store, decisions):
        for claim in store.claims(decision_id=decision.id):
            state = claim.state_at(snapshot.taken_at)
            if claim.server_provider == record.id and state in OPEN:
                claimed.add(claim.server_id)
                yield _of_claim(record, claim, state)
    taken: dict[str, list[Amounts]] = defaultdict(list)
    for one in bookings:
        if one.state is BookingState.ALLOCATED and one.consumer not in claimed:
            taken[one.consumer].append(one.amounts)
    projects = {one.consumer: one.project_id for one in snapshot.state(row).occupants}
    for uuid, amounts in taken.items():
        project = projects[uuid] if record.names(projects[uuid]) else None
        yield ShownSlice(uuid, ClaimState.ACTIVE, uuid, total(amounts), project)


def _of_claim(record: ServerProvider, claim: Claim, state: ClaimState) -> ShownSlice:
    project = claim.project_id if record.names(claim.project_id) else None
    return ShownSlice(claim.id, state, claim.server_id, claim.resources, project)
