"""1.24: `member_of` may be repeated, and all must hold."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.24", feature="repeated-member-of")
