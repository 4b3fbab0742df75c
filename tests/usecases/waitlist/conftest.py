"""Those who wait share the small fleet of the leases."""

from tests.usecases.leases.conftest import world

__all__ = ["world"]
