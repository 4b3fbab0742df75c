"""1.34: candidates say which provider serves which group; writes take that back, unused."""

from moorage.api.placement.lowering import forgetting, in_each, in_entries, of_property, without
from moorage.http.microversion import Change

_unmapped = forgetting("mappings")

CHANGE = Change(
    since="1.34",
    feature="mappings",
    schemas={
        "allocations.replace": _unmapped,
        "allocations.write": in_each(_unmapped),
        "reshaper.reshape": of_property("allocations", in_each(_unmapped)),
    },
    lower={
        "candidates.list": in_entries("allocation_requests", lambda one: without(one, "mappings"))
    },
)
