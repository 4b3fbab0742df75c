"""1.5: DELETE all inventories of a provider; before, the method was not allowed (405)."""

from moorage.http.microversion import Change

CHANGE = Change(
    since="1.5",
    feature="delete-inventories",
    routes={"inventories.clear": 405},
)
