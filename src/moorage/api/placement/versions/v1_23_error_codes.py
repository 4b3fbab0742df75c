"""1.23: errors carry a code; asked for by name where errors are written."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.23", feature="error-codes")
