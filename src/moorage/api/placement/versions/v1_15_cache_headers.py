"""1.15: `last-modified` and `cache-control`; asked for by name where answers are written."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.15", feature="cache-headers")
