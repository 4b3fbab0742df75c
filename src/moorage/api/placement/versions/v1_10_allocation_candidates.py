"""1.10: allocation candidates."""

from moorage.http.microversion import Change

CHANGE = Change(
    since="1.10",
    feature="allocation-candidates",
    routes={"candidates.list": 404},
)
