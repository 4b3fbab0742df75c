"""A mechanism driver for Neutron's ML2 that binds every port on every host, without agents.

It offers trunks and minimum-bandwidth policies, so that these can be tried as well. Loaded by the
entry point that `cloud.py` writes beside it.
"""

from typing import Any

from neutron.services.trunk.drivers import base as trunk  # type: ignore[import-not-found]
from neutron_lib import constants  # type: ignore[import-not-found]
from neutron_lib.api.definitions import portbindings  # type: ignore[import-not-found]
from neutron_lib.plugins.ml2 import api  # type: ignore[import-not-found]
from neutron_lib.services.qos import base as qos  # type: ignore[import-not-found]
from neutron_lib.services.qos import constants as rules


class Trunks(trunk.DriverBase):  # type: ignore[misc]
    @property
    def is_loaded(self) -> bool:
        return True


class Bandwidth(qos.DriverBase):  # type: ignore[misc]
    """Accepts rules; nothing enforces them here."""


class AgentlessDriver(api.MechanismDriver):  # type: ignore[misc]
    resource_provider_uuid5_namespace = None

    def initialize(self) -> None:
        self._trunks = Trunks(
            "agentless", (portbindings.VIF_TYPE_OVS,), ("vlan",), can_trunk_bound_port=True
        )
        supported = {
            rules.RULE_TYPE_MINIMUM_BANDWIDTH: {
                rules.MIN_KBPS: {"type:range": [0, 2**31 - 1]},
                rules.DIRECTION: {"type:values": constants.VALID_DIRECTIONS},
            }
        }
        self._bandwidth = Bandwidth(
            "agentless", [portbindings.VIF_TYPE_OVS], [portbindings.VNIC_NORMAL], supported
        )

    @property
    def connectivity(self) -> str:
        return str(portbindings.CONNECTIVITY_L2)

    def bind_port(self, context: Any) -> None:
        segment = context.segments_to_bind[0]
        context.set_binding(
            segment[api.ID],
            portbindings.VIF_TYPE_OVS,
            {portbindings.CAP_PORT_FILTER: True},
            status=constants.PORT_STATUS_ACTIVE,
        )
