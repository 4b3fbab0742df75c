"""The whole service: settings, loops and adapters together, killed and started again."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.outward.conftest import Answer, receiving, told
from tests.servers.replica import Replica

from moorage.domain.changes import Changeset, CreateProvider, PutInventories, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.period import SECOND
from moorage.domain.providers import Inventory
from moorage.store import open_store

HOST = "00000000-0000-4000-8000-000000000001"
SERVER = "00000000-0000-4000-8000-000000000002"


def wait_for(what: Callable[[], bool], replica: Replica) -> None:
    deadline = time.monotonic() + 100
    while not what():
        assert time.monotonic() < deadline, replica.log()
        time.sleep(0.05)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """A ledger with a server whose end has come."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    store = open_store(url)
    owner = Consumer(SERVER, "project-a", "ann", "INSTANCE")
    allocation = ReplaceAllocations(owner, {HOST: {"VCPU": 1}}, None, store.now() + SECOND)
    inventory = PutInventories(HOST, (Inventory("VCPU", 4),), None)
    store.commit(Changeset((CreateProvider(HOST, "h"), inventory, allocation)))
    time.sleep(1.1)
    yield url
    store.close()


def test_a_server_whose_end_has_come_is_ended_by_the_hook_before_it_is_overrun(
    tmp_path: Path, database: str
) -> None:
    heard, port = tmp_path / "heard", tmp_path / "port"
    hook = tmp_path / "end-server"
    # It ends the server as Nova would: its allocations are deleted over HTTP.
    hook.write_text(
        f"""#!/bin/sh
cat >> {heard}; echo >> {heard}
exec curl -sf -X DELETE -H 'X-Auth-Token: admin' \\
    "http://127.0.0.1:$(cat {port})/placement/allocations/{SERVER}"
"""
    )
    hook.chmod(0o755)
    with receiving(lambda _: Answer()) as receiver:
        options = ("--end-servers", "hook", "--hook", str(hook), "--webhook", receiver.url)
        replica = Replica(tmp_path, database, *options)
        try:
            replica.start()
            replica.up()
            port.write_text(str(replica.port))
            store = open_store(database)
            wait_for(lambda: store.consumer(SERVER) is None, replica)
            wait_for(
                lambda: {one.state.value for one in store.effects(SERVER)} == {"done"}, replica
            )
            effects = store.effects(SERVER)
            store.close()
            for told_of in (
                'moorage_effects_total{kind="delete",outcome="done"} 1.0',
                'moorage_effects_due{lane="tell"} 0.0',
            ):
                wait_for(lambda line=told_of: line in metrics(replica), replica)  # type: ignore[misc]
        finally:
            replica.down()
    assert "overrun" not in {told(one)["kind"] for one in receiver.requests}
    asked = [json.loads(line) for line in heard.read_text().splitlines()]
    assert {one["id"] for one in asked} <= {one.id for one in effects}
    assert {one["details"]["server"] for one in asked} == {SERVER}


def metrics(replica: Replica) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{replica.port}/metrics", timeout=60) as page:
        return str(page.read().decode())
