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
from moorage.usecases.ledger.candidate_rules import search_for, with_rules
from moorage.usecases.shared.allocation_write import named_by_request
from moorage.usecases.shared.candidate_search import CandidateRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.api.placement.candidate_texts import Rows
    from moorage.api.placement.rendering import Text
    from moorage.api.placement.request import Environment, Request
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.fleet_view import Ints
    from moorage.engine.state.snapshot import Snapshot


def list_all(env: Environment, request: Request) -> Response:
    """All candidates up to the limits, and a summary of their providers."""
    id_ = request.global_request_id
    named = None if id_ is None else named_by_request(id_)
    query = candidate_query.read(request)
    asked = with_rules(CandidateRequest(env.store, env.settings, query, named))
    snapshot = env.store.snapshot()
    if not names_exist(env, snapshot, asked.query):
        return Response(
            body={"allocation_requests": [], "provider_summaries": {}}, modified=snapshot.taken_at
        )
    limit = candidate_query.limit(request)
    search = search_for(asked, snapshot)
    query, seen = search.query, search.fleet
    if search.kept is not None:
        most = env.candidates.least(snapshot, limit)
        requests, used = _few(search.snapshot, search.kept, most)
    else:
        found = first_candidates(seen, query, limit, env.candidates, randbits(64))
        if env.candidates.by_room and not env.candidates.cuts(seen, limit, found):
            found = least_harm_first(seen, query, found, env.store.flavors)
        requests, used = batched_requests(seen, query.shape.slots, found)
    rows = summary_rows(snapshot, used, whole_trees=not query.one_provider_per_tree)
    body = assembled(
        b'{"allocation_requests":[',
        requests,
        b'],"provider_summaries":{',
        _summaries(env, search.snapshot, query, rows),
        b"}}",
    )
    return Response(body=body, modified=snapshot.taken_at)


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
