"""1.11: providers link to their allocations."""

from moorage.api.placement.lowering import hiding_link
from moorage.http.microversion import Change

CHANGE = Change(
    since="1.11",
    feature="allocations-link",
    lower=hiding_link("allocations"),
)
