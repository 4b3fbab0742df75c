"""The fleet of both benchmarks of the web page: racks of forty hosts in four zones."""

from __future__ import annotations

from typing import Final

IN_A_RACK: Final = 40
_FLEET: Final = """\
fleet: web
topology:
  location:
    levels: [zone, rack]
    domains:
      - {{name: "az{{n}}", count: 4, level: zone}}
      - {{name: "r{{n:04}}", count: {racks}, level: rack, parent: {{name: "az{{n}}", count: 4}}}}
hosts:
  - name: "h{{n:06}}"
    count: {hosts}
    inventories:
      VCPU: {{total: 64, allocation_ratio: 4.0}}
      MEMORY_MB: 524288
      DISK_GB: 4000
    traits: [COMPUTE_NODE]
    place: {{location: {{name: "r{{n:04}}", count: {racks}}}}}
flavors:
  - {{name: m1.small, resources: {{VCPU: 2, MEMORY_MB: 4096, DISK_GB: 20}}}}
  - {{name: m1.xlarge, resources: {{VCPU: 8, MEMORY_MB: 16384, DISK_GB: 160}}}}
"""


def fleet_of(hosts: int) -> str:
    """The description of so many hosts."""
    return _FLEET.format(hosts=hosts, racks=max(-(-hosts // IN_A_RACK), 4))
