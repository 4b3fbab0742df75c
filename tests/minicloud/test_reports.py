"""Many computes report while servers are built."""

from concurrent.futures import ThreadPoolExecutor

from tests.minicloud.cloud import INSIDE, Cloud
from tests.minicloud.layout import inside
from tests.minicloud.tenant import Operator, Tenant
from tests.minicloud.test_ticket_flavors import places

NODES = 200
MINUTES = 2


def test_two_hundred_nodes_report_each_minute(
    cloud: Cloud, operator: Operator, demo: Tenant
) -> None:
    scheduler = str(cloud.layout.folder("scheduler") / "nova.conf")
    script = str(INSIDE / "reporting_nodes.py")
    words = (script, "--config-file", scheduler, str(NODES), str(MINUTES))
    with ThreadPoolExecutor(1) as pool:
        reporting = pool.submit(cloud.run, inside("python"), *words)
        held = demo.hold({"name": "web", "count": 10, "flavor": "m1.tiny"})
        hint = {"moorage": f"{held['name']}/web"}
        servers = [one for _ in range(10) for one in demo.boot("m1.tiny", hints=hint)]
        demo.built(*servers)
        assert not reporting.done()
        reports, failed, _longest = reporting.result().splitlines()[0].split()
    assert (int(reports), int(failed)) == (NODES * MINUTES, 0)
    assert sorted(map(operator.host, servers)) == sorted(places(operator, held["id"]).values())
