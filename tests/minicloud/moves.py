"""Everything that Nova does to a running server that touches its allocations."""

from openstack.compute.v2.service import Service
from openstack.exceptions import BadRequestException
from tests.minicloud.tenant import Operator, Tenant, eventually


def live_migrate(operator: Operator, tenant: Tenant, server: str) -> None:
    """To a host that Nova chooses."""
    before = operator.host(server)
    operator.nova.live_migrate_server(server, host=None, block_migration="auto")
    tenant.built(server)
    assert operator.host(server) != before, _why(operator, server)


def cold_migrate(operator: Operator, tenant: Tenant, server: str) -> None:
    before = operator.host(server)
    operator.nova.migrate_server(server)
    tenant.built(server, expected="VERIFY_RESIZE")
    tenant.nova.confirm_server_resize(server)
    tenant.built(server)
    assert operator.host(server) != before, _why(operator, server)


def resize_and_revert(operator: Operator, tenant: Tenant, server: str) -> None:
    before = operator.host(server)
    other = tenant.nova.find_flavor("r1.xlarge", ignore_missing=False)
    tenant.nova.resize_server(server, other)
    tenant.built(server, expected="VERIFY_RESIZE")
    tenant.nova.revert_server_resize(server)
    tenant.built(server)
    assert operator.host(server) == before


def resize(operator: Operator, tenant: Tenant, server: str, flavor: str) -> None:
    other = tenant.nova.find_flavor(flavor, ignore_missing=False)
    tenant.nova.resize_server(server, other)
    tenant.built(server, expected="VERIFY_RESIZE")
    tenant.nova.confirm_server_resize(server)
    tenant.built(server)


def shelve(operator: Operator, tenant: Tenant, server: str) -> None:
    """Off its host, and back on some host."""
    tenant.nova.shelve_server(server)
    tenant.built(server, expected="SHELVED_OFFLOADED")
    assert operator.allocations(server) == {}
    tenant.nova.unshelve_server(server)
    tenant.built(server)


def evacuate(operator: Operator, tenant: Tenant, server: str) -> None:
    """Its host dies, and comes back when the server is elsewhere; Nova then cleans up there."""
    host = operator.host(server)
    operator.cloud.program(host).kill()
    [service] = operator.nova.services(host=host, binary="nova-compute")
    operator.nova.update_service_forced_down(service, forced=True)
    try:
        operator.nova.evacuate_server(server)
        eventually(lambda: operator.host(server) != host, f"{server} has left {host}")
        tenant.built(server, expected="SHUTOFF")
    finally:
        operator.cloud.start(host)
        eventually(lambda: _is_up(operator, service), f"{host} is up")
    eventually(lambda: host not in operator.allocations(server), f"{host} holds nothing of it")
    tenant.nova.start_server(server)
    tenant.built(server)


def _is_up(operator: Operator, service: Service) -> bool:
    """Nova refuses until the host has seen that its servers were evacuated."""
    try:
        operator.nova.update_service_forced_down(service, forced=False)
    except BadRequestException:
        return False
    [found] = operator.nova.services(host=service.host, binary=service.binary)
    return str(found.state) == "up"


def rebuild(operator: Operator, tenant: Tenant, server: str) -> None:
    tenant.nova.rebuild_server(server, image=tenant.image)
    tenant.built(server)


def _why(operator: Operator, server: str) -> list[tuple[str, str]]:
    """Nova's last migrations of a server that did not move."""
    return [
        (one.status, f"{one.source_compute} -> {one.dest_compute}")
        for one in operator.nova.migrations(instance_uuid=server)
    ]
