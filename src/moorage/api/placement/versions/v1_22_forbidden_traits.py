"""1.22: `!TRAIT` in `required`; from here on contradictory traits are refused."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.22", feature="forbidden-traits")
