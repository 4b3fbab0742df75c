"""The plug-in of the `openstack` client: its client, and its global options.

The client finds this module by the entry point `openstack.cli.extension`, and its commands, which
are those of `moorage`, by `openstack.ensemble.v1`; see `command_names`. The names here are the
client's interface for plug-ins.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import argparse

    from moorage.client.moorage import Moorage
    from moorage.client.nova import Nova
    from moorage.client.session import SessionServices

API_NAME: Final = "ensemble"
API_VERSION_OPTION: Final = "os_ensemble_api_version"
API_VERSIONS: Final = ("1",)
DEFAULT_API_VERSION: Final = "1"


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the plug-in's global options to those of the client."""
    parser.add_argument(
        "--os-ensemble-api-version",
        metavar="<ensemble-api-version>",
        default=os.environ.get("OS_ENSEMBLE_API_VERSION") or DEFAULT_API_VERSION,
        help=f"Ensemble API version, default={DEFAULT_API_VERSION} (Env: OS_ENSEMBLE_API_VERSION)",
    )
    parser.add_argument(
        "--os-ensemble-endpoint-override",
        metavar="<url>",
        default=os.environ.get("OS_ENSEMBLE_ENDPOINT_OVERRIDE"),
        help="URL of Moorage, instead of the catalog's (Env: OS_ENSEMBLE_ENDPOINT_OVERRIDE)",
    )
    return parser


def make_client(instance: Any) -> Moorage:  # noqa: ANN401 - the client's manager
    """The client of Moorage with the client's session: `app.client_manager.ensemble`."""
    from moorage.client.moorage import Moorage
    from moorage.client.session_transport import SessionTransport

    return Moorage(SessionTransport(_services(instance)))


def make_nova(instance: Any) -> Nova:  # noqa: ANN401 - the client's manager
    """Nova, with the same session; to be closed after use."""
    from moorage.client.nova import Nova

    services = _services(instance)
    return Nova(services, services.endpoint)


def _services(instance: Any) -> SessionServices:  # noqa: ANN401 - the client's manager
    from moorage.client.session import SessionServices

    return SessionServices.configured(
        instance.session, instance.interface, instance.region_name, instance.get_configuration()
    )
