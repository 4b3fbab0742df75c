"""1.8: PUT allocations names the project and user; before, they were not known."""

from moorage.api.placement.lowering import forgetting
from moorage.domain.consumers import NO_PROJECT
from moorage.http.microversion import JSON, Change


def _unowned(body: JSON) -> JSON:
    return {**body, "project_id": NO_PROJECT, "user_id": NO_PROJECT}


CHANGE = Change(
    since="1.8",
    feature="allocations-owner",
    schemas={"allocations.replace": forgetting("project_id", "user_id")},
    lift={"allocations.replace": _unowned},
)
