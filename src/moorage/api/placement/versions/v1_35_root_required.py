"""1.35: traits asked of the root of a candidate's tree."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.35",
    feature="root-required",
    queries={"candidates.list": forgetting("root_required")},
)
