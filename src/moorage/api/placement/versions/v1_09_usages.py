"""1.9: usages of a project and user."""

from moorage.http.microversion import Change

CHANGE = Change(
    since="1.9",
    feature="usages",
    routes={"usages.show": 404},
)
