"""The native API, `/v1`: ensembles, decisions, claims and what operators load.

One explicit table (`routes.py`) makes both the routes and the OpenAPI document; bodies are
msgspec structs. Handlers translate and call one use case each: nothing is decided here, no SQL,
and no other dialect is imported.
"""

from moorage.api.native.create import OPEN_PATHS, create_app

__all__ = ["OPEN_PATHS", "create_app"]
