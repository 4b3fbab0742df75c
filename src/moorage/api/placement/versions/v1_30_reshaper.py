"""1.30: reshape inventories and allocations as one step."""

from moorage.http.microversion import Change

CHANGE = Change(
    since="1.30",
    feature="reshaper",
    routes={"reshaper.reshape": 404},
)
