"""1.36: `same_subtree`, and groups without resources that are named in it."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.36",
    feature="same-subtree",
    queries={"candidates.list": forgetting("same_subtree")},
)
