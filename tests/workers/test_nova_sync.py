"""The rounds that bring flavors and topology in step with Nova, over the service's own login."""

import logging
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.servers.nova_records import serving

from moorage.client.fleet_file import read_places
from moorage.client.nova_source import read_flavors, read_hosts
from moorage.domain.host_states import HostState
from moorage.domain.period import SECOND
from moorage.engine.state.host_states import host_states
from moorage.outward.nova_reader import NovaReader
from moorage.testing.service import OPERATOR, Service
from moorage.usecases.effect_dispatch import OutwardFailure
from moorage.workers.nova_sync import NovaLists, NovaSync

FLEET = "fleet: f\nhosts:\n  - {name: 'n{n}', count: 2, inventories: {VCPU: 8}}\n"
RULES = "topology: {location: {levels: [zone]}}\nrules: [{availability_zone: '(?P<zone>.+)'}]\n"


def test_rounds_follow_nova_and_go_on_after_a_failure(caplog: Any) -> None:
    service, now = Service(FLEET), [0.0]
    env = replace(service.env, stopwatch=lambda: now[0])
    caplog.set_level(logging.INFO)
    with serving() as nova:
        nova.flavor("1", "small", 1)
        nova.flavor("2", "odd", 1, hw__cpu_polcy="x")
        nova.hypervisor("n1")
        service_of_n1 = {"host": "n1", "zone": "az1", "status": "enabled", "state": "up"}
        nova.lists["services"].append(service_of_n1)
        section = {"auth_type": "admin_token", "endpoint": nova.url, "token": "admin"}
        get = NovaReader(section, timeout=10)
        lists = NovaLists(
            partial(read_flavors, get),
            partial(read_hosts, get),
            partial(read_places, RULES),
        )
        sync = NovaSync(env, OPERATOR, lists, 60 * SECOND)
        assert sync.run_round() is False
        assert [one.name for one in service.store.flavors()] == ["small"]
        topology = service.store.snapshot().topology
        assert dict(topology.attachments) == {("location", "n1"): "az1"}
        asked = nova.asked.total()
        now[0] = 59.0
        sync.run_round()
        assert nova.asked.total() == asked, "not yet time"
        now[0] = 61.0
        nova.bad["/v2.1/flavors/detail"] = (503, {})
        with pytest.raises(OutwardFailure, match="503"):
            sync.run_round()
        nova.bad.clear()
        nova.flavor("3", "large", 4)
        service_of_n1 |= {"state": "down"}
        now[0] = 122.0
        sync.run_round()
        assert [one.name for one in service.store.flavors()] == ["large", "small"]
        snapshot = service.store.snapshot()
        assert host_states(snapshot).state(snapshot.names.index("n1")) is HostState.DOWN
        service_of_n1 |= {"state": "up"}
        now[0] = 183.0
        sync.run_round()
        snapshot = service.store.snapshot()
        assert host_states(snapshot).in_service.all()
    told = [one.getMessage() for one in caplog.records if one.name.endswith("nova_sync")]
    assert sum("refused: odd" in one for one in told) == 1, "what lasts is told once"
    assert "host n1 in tree location: None -> az1" in told
    assert "host n1 by Nova: in service -> service down" in told
    assert "host n1 by Nova: service down -> in service" in told
    service.close()


def test_a_round_ends_before_it_writes_if_hosts_may_not_be_listed() -> None:
    """Nova shows a user without the role the public flavors, as if there were no others."""
    service = Service(FLEET)
    with serving() as nova:
        nova.flavor("1", "public", 1)
        nova.flavor("2", "private", 1)
        section = {"auth_type": "admin_token", "endpoint": nova.url, "token": "admin"}
        get = NovaReader(section, timeout=10)
        lists = NovaLists(partial(read_flavors, get), partial(read_hosts, get), None)
        NovaSync(service.env, OPERATOR, lists, 60 * SECOND).run_round()
        del nova.lists["flavors"][1]
        nova.bad["/v2.1/os-hypervisors/detail"] = (403, {})
        with pytest.raises(OutwardFailure, match="403"):
            NovaSync(service.env, OPERATOR, lists, 60 * SECOND).run_round()
    assert [one.name for one in service.store.flavors()] == ["private", "public"]
    service.close()
