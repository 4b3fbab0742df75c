"""1.18: list providers by traits."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.18",
    feature="providers-required",
    queries={"providers.list": forgetting("required")},
)
