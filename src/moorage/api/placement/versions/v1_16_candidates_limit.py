"""1.16: at most so many candidates."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.16",
    feature="candidates-limit",
    queries={"candidates.list": forgetting("limit")},
)
