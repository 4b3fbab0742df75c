"""1.21: candidates by aggregate."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.21",
    feature="candidates-member-of",
    queries={"candidates.list": forgetting("member_of")},
)
