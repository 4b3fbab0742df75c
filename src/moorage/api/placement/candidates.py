"""/allocation_candidates."""

from __future__ import annotations

from itertools import islice
from secrets import randbits
from typing import TYPE_CHECKING

import numpy as np

from moorage.api.placement import candidate_query
from moorage.api.placement.candidate_texts import allocation_requests, batched_requests
from moorage.api.placement.fragments import summary, summary_with_terms
from moorage.api.placement.rendering import assembled
from moorage.api.placement.unknown_names import names_exist
from moorage.engine.candidates.candidate_room import least_harm_first
from moorage.engine.candidates.enumerate import summary_rows
from moorage.engine.candidates.limit import first_candidates
from moorage.http.microversion import Response
from moorage.usecases.claims.presented import candidates_for, presented_claim
from moorage.usecases.claims.stay_terms import fleet_for_query
from moorage.usecases.ledger.build_retries import retry_candidates
from moorage.usecases.ledger.exclusive_hosts import without_exclusive_hosts
from moorage.usecases.ledger.member_moves import with_hosts_for_move
from moorage.usecases.server_providers.queries import without_server_providers
from moorage.usecases.shared.allocation_write import named_by_request
from moorage.usecases.tickets.candidates import (
    ticket_candidates,
    with_presented_reservation,
    without_spent_tickets,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.api.placement.candidate_texts import Rows
    from moorage.api.placement.rendering import Text
    from moorage.api.placement.request import Environment, Request
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.fleet_view import Ints
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.claims.presented import PresentedClaim


def list_all(env: Environment, request: Request) -> Response:
    """All candidates up to the limits, and a summary of their providers."""
    shown = presented_claim(env.store, request.global_request_id)
    query = candidate_query.read(request)
    query = without_spent_tickets(env.store, query, presents=shown is not None)
    if shown is None:
        query = with_presented_reservation(env.store, query, request.global_request_id)
    snapshot = env.store.snapshot()
    if not names_exist(env, snapshot, query):
        return Response(
            body={"allocation_requests": [], "provider_summaries": {}}, modified=snapshot.taken_at
        )
    limit = candidate_query.limit(request)
    most = env.candidates.least(snapshot, limit)
    drawn = ticket_candidates(env.store, snapshot, query)
    if drawn is not None:
        requests, used = _few(drawn.snapshot, drawn.candidates, most)
    elif shown is not None:
        requests, used = _few(snapshot, _of_claim(env, snapshot, query, shown), most)
    else:
        query = without_server_providers(snapshot, query)
        lifetimes = env.settings.lifetimes
        id_ = request.global_request_id
        asked_for = None if id_ is None else named_by_request(id_)
        query = without_exclusive_hosts(
            env.store, snapshot, query, lifetimes, env.settings.foreign_servers, asked_for
        )
        query = with_hosts_for_move(
            env.store, snapshot, query, asked_for, env.settings.misplaced_members
        )
        seen = fleet_for_query(snapshot, query, lifetimes)
        found = first_candidates(seen, query, limit, env.candidates, randbits(64))
        if env.candidates.by_room and not env.candidates.cuts(seen, limit, found):
            found = least_harm_first(seen, query, found, env.store.flavors)
        requests, used = batched_requests(seen, query.shape.slots, found)
    rows = summary_rows(snapshot, used, whole_trees=not query.one_provider_per_tree)
    body = assembled(
        b'{"allocation_requests":[',
        requests,
        b'],"provider_summaries":{',
        _summaries(env, snapshot if drawn is None else drawn.snapshot, query, rows),
        b"}}",
    )
    return Response(body=body, modified=snapshot.taken_at)


def _of_claim(
    env: Environment, snapshot: Snapshot, query: CandidateQuery, shown: PresentedClaim
) -> Iterator[Candidate]:
    """The candidates of a presented claim: on its host, and then those for retries of the build."""
    yield from candidates_for(snapshot, query, shown)
    rules = env.settings
    if rules.build_retries:
        query = without_exclusive_hosts(
            env.store,
            snapshot,
            without_server_providers(snapshot, query),
            rules.lifetimes,
            rules.foreign_servers,
            None,
        )
        yield from retry_candidates(env.store, snapshot, query, shown, rules.build_retries)


def _few(
    snapshot: Snapshot, found: Iterable[Candidate], limit: int | None
) -> tuple[list[Text], Rows]:
    """Candidates as JSON one by one, and the rows of their providers."""
    own = list(islice(found, limit))
    used = np.array([row for one in own for row, _ in one.allocations], dtype=np.int64)
    return [allocation_requests(snapshot, own)], used


def _summaries(
    env: Environment, snapshot: Snapshot, query: CandidateQuery, rows: Ints
) -> Sequence[Text]:
    """Provider summaries; cached, except those with the class of a ticket or reservation."""
    declared = query.virtual_terms
    if declared is None:
        return env.summaries.of(snapshot, rows)
    if not declared.tickets:
        return env.summaries_with_terms.of(snapshot, rows)
    encode = summary_with_terms if declared.terms else summary
    each = (encode(snapshot, row, snapshot.state(row)) for row in rows.tolist())
    return [b",".join(each)]
