"""The native API, `/v1`: ensembles, decisions, claims and what operators load.

One explicit table (`routes.py`) makes both the routes and the OpenAPI document; bodies are
msgspec structs. Handlers translate and call one use case each: nothing is decided here, no SQL,
and no other dialect is imported. Functions named `*_view` make bodies of domain values, beside the
handlers of their noun: a tenant gets opaque labels instead of domains' and hosts' names, and no
provider; an operator gets names, allocations per provider and exact counts.
"""

from moorage.api.native.application import OPEN_PATHS, create_app

__all__ = ["OPEN_PATHS", "create_app"]
