"""Moorage under the module name of openstack-placement, which must not be installed beside it."""

from importlib.metadata import PackageNotFoundError, distribution

try:
    distribution("openstack-placement")
except PackageNotFoundError:
    pass
else:
    raise ImportError(
        "openstack-placement and moorage-placement are both installed, and have the same files:"
        " uninstall both, then install moorage-placement again"
    )
