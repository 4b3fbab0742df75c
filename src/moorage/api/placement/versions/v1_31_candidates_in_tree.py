"""1.31: candidates from one tree only."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.31",
    feature="candidates-in-tree",
    queries={"candidates.list": forgetting("in_tree")},
)
