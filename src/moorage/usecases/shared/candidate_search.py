"""A request for allocation candidates, and the rules by which such requests are treated.

A rule says which requests concern it and what it does to their search.
`usecases.ledger.candidate_rules` has them in their order; a request that concerns none of them
enters none of their modules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moorage.domain.bookings import Booking
    from moorage.domain.decisions import Claim
    from moorage.domain.ensembles import Ensemble, Member
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store
    from moorage.usecases.shared.allocation_write import WriteSettings


@dataclass(frozen=True, slots=True)
class PresentedClaim:
    """A building claim whose place is still booked, as named by a Placement request."""

    claim: Claim
    ensemble: Ensemble
    member: Member
    providers: frozenset[str]
    """UUIDs of the providers on which the place is booked."""
    stay: Booking
    """One of its bookings; the terms (end, preemptible, priority) are the same for all."""


@dataclass(frozen=True, slots=True)
class CandidateRequest:
    """A request for allocation candidates."""

    store: Store
    settings: WriteSettings
    query: CandidateQuery
    named: str | None = None
    """What the id of the request that the client itself serves names: perhaps a claim, a
    reservation or a server."""
    presented: PresentedClaim | None = None
    """The claim that it names, if that still builds."""


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """The search for the candidates of a request."""

    asked: CandidateRequest
    query: CandidateQuery
    snapshot: Snapshot
    """The ledger as it is; summaries of providers are its."""
    fleet: Snapshot
    """The fleet that is searched: the same, or what is free of it for as long as is asked for."""
    kept: Iterable[Candidate] | None = None
    """The candidates on places that are kept for the request, which are its only ones."""


@dataclass(frozen=True, slots=True)
class RequestRule:
    """A rule that changes what is asked for, before the ledger is read."""

    concerns: Callable[[CandidateRequest], bool]
    apply: Callable[[CandidateRequest], CandidateRequest]


@dataclass(frozen=True, slots=True)
class SearchRule:
    """A rule that changes where candidates are searched, or finds them itself."""

    concerns: Callable[[CandidateSearch], bool]
    apply: Callable[[CandidateSearch], CandidateSearch]


def without_server_providers(search: CandidateSearch) -> CandidateSearch:
    """The search for places of servers, which are never on what other servers offer.

    Otherwise a project could offer a class that flavors ask of real hosts.
    """
    snapshot, query = search.snapshot, search.query
    offered = np.array(list(snapshot.offered_by), dtype=np.int64)
    columns = [snapshot.classes[name] for name in query.classes if name in snapshot.classes]
    if not any((one.position[offered] >= 0).any() for one in columns):
        return search
    hosts = frozenset(snapshot.hosts.tolist())
    anchors = hosts if query.anchors is None else query.anchors & hosts
    return replace(search, query=replace(query, anchors=anchors))
