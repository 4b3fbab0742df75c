"""Reports as the resource trackers of many computes do; run by the cloud's interpreter.

reporting_nodes.py --config-file nova.conf NODES MINUTES

Each node reports once a minute with Nova's own report client, and refreshes all that it knows of
its provider each time. Prints how many reports there were, how many failed, and the longest; then
deletes the providers. They have no room, so that no server is placed on them.
"""

import copy
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from nova import config, context  # type: ignore[import-not-found]
from nova.scheduler.client import report  # type: ignore[import-not-found]

CONFIGURATION, (NODES, MINUTES) = sys.argv[1:3], map(int, sys.argv[3:])


def main() -> None:
    config.parse_args(["nova-compute", *CONFIGURATION])
    config.CONF.set_override("resource_provider_association_refresh", 0.001, "compute")
    adapter = report.SchedulerReportClient()._client
    nodes = [Node(f"node-{number:03}", adapter) for number in range(NODES)]
    begun = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        reports = []
        for minute in range(MINUTES):
            for number, node in enumerate(nodes):
                due = begun + 60 * (minute + number / NODES)
                time.sleep(max(0.0, due - time.monotonic()))
                reports.append(pool.submit(node.report))
        took = [one.result() for one in reports if one.exception() is None]
        failed = [repr(one.exception()) for one in reports if one.exception() is not None]
        list(pool.map(Node.delete, nodes))
    sys.stdout.write(f"{len(reports)} {len(failed)} {max(took, default=0.0):.2f}\n")
    sys.stdout.write("\n".join(sorted(set(failed))))


class Node:
    """One compute's part of Placement."""

    def __init__(self, name: str, adapter: object) -> None:
        self.name = name
        self.uuid = str(uuid.uuid4())
        self.client = report.SchedulerReportClient(adapter=adapter)

    def report(self) -> float:
        """Seconds that one report takes."""
        begun = time.monotonic()
        asking = context.get_admin_context()
        tree = self.client.get_provider_tree_and_ensure_root(asking, self.uuid, name=self.name)
        new = copy.deepcopy(tree)
        stock = {"total": 16, "reserved": 16, "min_unit": 1, "max_unit": 16, "step_size": 1}
        new.update_inventory(self.uuid, {"VCPU": {**stock, "allocation_ratio": 1.0}})
        new.update_traits(self.uuid, ["COMPUTE_NODE", "HW_CPU_X86_AVX2"])
        self.client.update_from_provider_tree(asking, new)
        return time.monotonic() - begun

    def delete(self) -> None:
        self.client._delete_provider(self.uuid)


main()
