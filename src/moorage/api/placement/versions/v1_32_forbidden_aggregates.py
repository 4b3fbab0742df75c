"""1.32: `!` and `!in:` in `member_of`."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.32", feature="forbidden-aggregates")
