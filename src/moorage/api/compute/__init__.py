"""Nova's API of server groups, microversions 2.1 to 2.104, over the same ledger as the others.

The wire is Nova's: routes, versions, shapes and codes of `os-server-groups`. A server group is an
ensemble (`domain.server_groups`); nothing is decided here. No other dialect is imported.
"""

from moorage.api.compute.application import OPEN_PATHS, create_app

__all__ = ["OPEN_PATHS", "create_app"]
