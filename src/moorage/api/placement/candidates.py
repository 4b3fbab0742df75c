"""/allocation_candidates."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from moorage.api.placement import candidate_query
from moorage.api.placement.fragments import allocation_requests, batched_requests
from moorage.api.placement.names import unknown_classes, unknown_traits
from moorage.api.placement.refusals import BadQuery
from moorage.api.placement.rendering import assembled
from moorage.engine.candidates import batches, first, summary_rows
from moorage.http.microversion import Response
from moorage.usecases.presented import candidates_for, presented

if TYPE_CHECKING:
    from moorage.api.placement.request import Parts, Request
    from moorage.engine.candidates import CandidateQuery
    from moorage.engine.snapshot import Snapshot


def list_all(parts: Parts, request: Request) -> Response:
    """Every way the query could be met now, up to the limit, and a summary of the providers."""
    query = candidate_query.read(request)
    shown = presented(parts.store, request.global_request_id)
    snapshot = parts.store.snapshot()
    _check_names(parts, snapshot, query)
    limit = candidate_query.limit(request)
    if shown is None:
        found = first(batches(snapshot, query, limit), limit)
        requests, used = batched_requests(snapshot, query.shape.slots, found)
    else:
        own = list(islice(candidates_for(snapshot, query, shown), limit))
        used = np.array([row for one in own for row, _ in one.allocations], dtype=np.int64)
        requests = [allocation_requests(snapshot, own)]
    rows = summary_rows(snapshot, used, whole_trees=not query.one_provider_per_tree)
    body = assembled(
        b'{"allocation_requests":[',
        requests,
        b'],"provider_summaries":{',
        parts.summaries.of(snapshot, rows),
        b"}}",
    )
    return Response(body=body, modified=parts.store.now())


def _check_names(parts: Parts, snapshot: Snapshot, query: CandidateQuery) -> None:
    classes = {name for group in query.groups for name in group.resources}
    unknown = unknown_classes(parts.store, snapshot, classes)
    if unknown:
        raise BadQuery(
            "Invalid resource class in resources parameter: "
            f"No such resource class {', '.join(unknown)}."
        )
    traits = query.root_forbidden.union(*query.root_required)
    for group in query.groups:
        traits |= group.forbidden.union(*group.required)
    unknown = unknown_traits(parts.store, snapshot, traits)
    if unknown:
        raise BadQuery(f"No such trait(s): {', '.join(unknown)}.")
