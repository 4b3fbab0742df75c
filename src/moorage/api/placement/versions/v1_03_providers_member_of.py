"""1.3: list providers by aggregate."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.3",
    feature="providers-member-of",
    queries={"providers.list": forgetting("member_of")},
)
