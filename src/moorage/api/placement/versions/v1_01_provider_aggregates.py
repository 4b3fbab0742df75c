"""1.1: GET and PUT of a provider's aggregates, and the link to them."""

from moorage.api.placement.lowering import hiding_link
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.1",
    feature="provider-aggregates",
    routes={"aggregates.show": 404, "aggregates.replace": 404},
    lower=hiding_link("aggregates"),
)
