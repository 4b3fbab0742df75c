"""Blazar's lease API, version 1, over the same ledger as the other dialects.

The wire is Blazar's (release 18): routes,
shapes, dates, codes. What a request means is said in the words of `usecases.leases`; nothing is
decided here. No other dialect is imported.
"""

from moorage.api.leases.application import OPEN_PATHS, create_app

__all__ = ["OPEN_PATHS", "create_app"]
