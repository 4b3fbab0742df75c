"""1.39: `required=in:A,B`, and `required` may be repeated; before, the last one counted."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.39", feature="any-traits")
