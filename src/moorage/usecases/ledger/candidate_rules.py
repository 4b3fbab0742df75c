"""The rules for allocation candidates, in their order, and which requests each of them concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.usecases.claims import presented, stay_terms
from moorage.usecases.ledger import (
    build_retries,
    exclusive_hosts,
    host_states,
    member_moves,
    plan_targets,
)
from moorage.usecases.shared.candidate_search import (
    CandidateSearch,
    RequestRule,
    SearchRule,
    without_server_providers,
)
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.tickets import candidates as tickets

if TYPE_CHECKING:
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.shared.candidate_search import CandidateRequest


def with_rules(asked: CandidateRequest) -> CandidateRequest:
    """What a request asks for by the rules that concern it."""
    for rule in REQUEST_RULES:
        if rule.concerns(asked):
            asked = rule.apply(asked)
    return asked


def search_for(asked: CandidateRequest, snapshot: Snapshot) -> CandidateSearch:
    """The search for candidates of what a request asks for by `with_rules`."""
    search = CandidateSearch(asked, asked.query, snapshot, snapshot)
    for rule in SEARCH_RULES:
        if rule.concerns(search):
            search = rule.apply(search)
            if search.kept is not None:
                break
    return search


def _name_claim(asked: CandidateRequest) -> bool:
    return asked.named is not None and if_stored(asked.store.claim, asked.named) is not None


def _have_tickets(asked: CandidateRequest) -> bool:
    declared = asked.query.virtual_terms
    return declared is not None and bool(declared.tickets)


def _name_reservation(asked: CandidateRequest) -> bool:
    if asked.named is None or asked.presented is not None or _have_tickets(asked):
        return False
    return if_stored(asked.store.lease_of_reservation, asked.named) is not None


def _take_places(search: CandidateSearch) -> bool:
    return _have_tickets(search.asked)


def _may_retry_build(search: CandidateSearch) -> bool:
    return search.asked.presented is not None and bool(search.asked.settings.build_retries)


def _present_claim(search: CandidateSearch) -> bool:
    return search.asked.presented is not None


def _with_server_providers(search: CandidateSearch) -> bool:
    return bool(search.snapshot.offered_by)


def _among_closed_hosts(search: CandidateSearch) -> bool:
    """Whether anything is stored against the service of any host."""
    return bool(search.snapshot.noted_hosts)


def _in_kept_fleet(search: CandidateSearch) -> bool:
    """Whether there are exclusive ensembles, or a plan holds a place for the named server."""
    known = search.asked.store.exclusive_ensembles(search.snapshot)
    return bool(known.ensembles) or search.asked.named in known.targets


def _on_kept_fleet(search: CandidateSearch) -> CandidateSearch:
    """The search without what is kept from the server, and with what is held for it."""
    known = search.asked.store.exclusive_ensembles(search.snapshot)
    if known.ensembles:
        search = exclusive_hosts.without_exclusive_hosts(search)
    if search.asked.named in known.targets:
        search = plan_targets.on_held_target(search)
    return search


def _move_member(search: CandidateSearch) -> bool:
    named = search.asked.named
    return named is not None and bool(search.asked.store.ensembles_of_server(named))


def _have_terms(search: CandidateSearch) -> bool:
    terms = search.query.virtual_terms
    return terms is not None or search.asked.settings.lifetimes.default is not None


REQUEST_RULES: Final = (
    RequestRule(_name_claim, presented.with_claim),
    RequestRule(_have_tickets, tickets.without_spent_tickets),
    RequestRule(_name_reservation, tickets.with_presented_reservation),
)
SEARCH_RULES: Final = (
    SearchRule(_take_places, tickets.on_ticket_places),
    SearchRule(_may_retry_build, build_retries.on_place_or_elsewhere),
    SearchRule(_present_claim, presented.on_place),
    SearchRule(_with_server_providers, without_server_providers),
    SearchRule(_among_closed_hosts, host_states.without_closed_hosts),
    SearchRule(_move_member, member_moves.with_hosts_for_move),
    SearchRule(_in_kept_fleet, _on_kept_fleet),
    SearchRule(_have_terms, stay_terms.over_stay),
)
