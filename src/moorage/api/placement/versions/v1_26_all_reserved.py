"""1.26: an inventory may be reserved whole, so that its capacity is 0."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.26", feature="all-reserved")
