"""1.0: resource providers, inventories, usages and allocations."""

from moorage.http.microversion import Change

CHANGE = Change(since="1.0", feature="first")
