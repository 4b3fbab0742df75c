"""OpenStack Placement's dialect, microversions 1.0 to 1.39.

Only translation lives here: routes, schemas, the grammar of queries, the shapes of answers, error
sentences, access rules, and the declared changes between versions. No decision about
capacity, no SQL and no other dialect: handlers call use cases and the engine.
"""

from moorage.api.placement.application import create_app

__all__ = ["create_app"]
