"""1.13: POST allocations of several consumers at once."""

from moorage.http.microversion import Change

CHANGE = Change(
    since="1.13",
    feature="post-allocations",
    routes={"allocations.write": 404},
)
