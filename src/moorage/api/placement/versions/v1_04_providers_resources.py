"""1.4: list providers by room for resources."""

from moorage.api.placement.lowering import forgetting
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.4",
    feature="providers-resources",
    queries={"providers.list": forgetting("resources")},
)
