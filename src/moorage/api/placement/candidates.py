"""/allocation_candidates."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from moorage.api.placement import candidate_query
from moorage.api.placement.candidate_texts import allocation_requests, batched_requests
from moorage.api.placement.fragments import summary, summary_with_terms
from moorage.api.placement.rendering import assembled
from moorage.api.placement.unknown_names import names_exist
from moorage.engine.candidates import batches, first, summary_rows
from moorage.http.microversion import Response
from moorage.usecases.leases.draw import drawable
from moorage.usecases.presented import candidates_for, presented
from moorage.usecases.stays import seen_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.api.placement.candidate_texts import Rows
    from moorage.api.placement.rendering import Text
    from moorage.api.placement.request import Parts, Request
    from moorage.engine.candidates import Candidate
    from moorage.engine.query import CandidateQuery
    from moorage.engine.snapshot import Snapshot
    from moorage.engine.view import Ints


def list_all(parts: Parts, request: Request) -> Response:
    """Every way the query could be met now, up to the limit, and a summary of the providers."""
    query = candidate_query.read(request)
    shown = presented(parts.store, request.global_request_id)
    snapshot = parts.store.snapshot()
    if not names_exist(parts, snapshot, query):
        return Response(
            body={"allocation_requests": [], "provider_summaries": {}}, modified=snapshot.taken_at
        )
    limit = candidate_query.limit(request)
    drawn = drawable(parts.store, snapshot, query)
    if drawn is not None:
        requests, used = _few(drawn.snapshot, drawn.candidates, limit)
    elif shown is not None:
        requests, used = _few(snapshot, candidates_for(snapshot, query, shown), limit)
    else:
        seen = seen_by(snapshot, query, parts.lifetimes)
        found = first(batches(seen, query, limit), limit)
        requests, used = batched_requests(seen, query.shape.slots, found)
    rows = summary_rows(snapshot, used, whole_trees=not query.one_provider_per_tree)
    body = assembled(
        b'{"allocation_requests":[',
        requests,
        b'],"provider_summaries":{',
        _summaries(parts, snapshot if drawn is None else drawn.snapshot, query, rows),
        b"}}",
    )
    return Response(body=body, modified=snapshot.taken_at)


def _few(
    snapshot: Snapshot, found: Iterable[Candidate], limit: int | None
) -> tuple[list[Text], Rows]:
    """Candidates one by one as texts, and the rows of who gives something."""
    own = list(islice(found, limit))
    used = np.array([row for one in own for row, _ in one.allocations], dtype=np.int64)
    return [allocation_requests(snapshot, own)], used


def _summaries(
    parts: Parts, snapshot: Snapshot, query: CandidateQuery, rows: Ints
) -> Sequence[Text]:
    """What is said of providers; kept, but for what only those see who draw from a lease."""
    wish = query.wish
    if wish is None:
        return parts.summaries.of(snapshot, rows)
    if not wish.reservations:
        return parts.summaries_with_terms.of(snapshot, rows)
    encode = summary_with_terms if wish.terms else summary
    each = (encode(snapshot, row, snapshot.state(row)) for row in rows.tolist())
    return [b",".join(each)]
