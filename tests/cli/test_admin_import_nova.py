"""`moorage admin import nova` from a server with the compute API's lists."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.cli.conftest import Cli, Result
from tests.servers.nova_records import NovaRecords, serving

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    PutFlavor,
    PutInventories,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.flavors import Flavor
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database


def named(number: int) -> str:
    return str(UUID(int=number, version=4))


GROUP, OTHER = named(900), named(901)


@pytest.fixture
def nova() -> Iterator[NovaRecords]:
    with serving() as found:
        yield found


@pytest.fixture
def store(offline: Cli, tmp_path: Path) -> Iterator[Ledger]:
    """The ledger that is written: three hosts of 64 VCPU, and a flavor."""
    database = new_database(tmp_path)
    offline.environment["MOORAGE_DATABASE"] = database
    ledger = open_store(database)
    for number in (1, 2, 3):
        host = named(number)
        stock = (Inventory("VCPU", 64),)
        ledger.commit(
            Changeset((CreateProvider(host, f"n{number}"), PutInventories(host, stock, None)))
        )
    ledger.commit(Changeset((PutFlavor(Flavor("small", "small", {"VCPU": 2})),)))
    yield ledger
    ledger.close()


def running(store: Ledger, nova: NovaRecords, number: int, host: int, **more: Any) -> str:
    """A server on a host, as both know it."""
    server = named(100 + number)
    owner = Consumer(server, "project-a", "ann", "INSTANCE")
    allocations = {named(host): {"VCPU": 2}}
    store.commit(Changeset((ReplaceAllocations(owner, allocations, None),)))
    nova.server(server, f"n{host}", **more)
    return server


def taken(offline: Cli, nova: NovaRecords, *more: str) -> Result:
    return offline("admin", "import", "nova", "--from", nova.url, "-f", "json", *more)


def members(store: Ledger, id_: str = GROUP) -> dict[str, str | None]:
    return {str(one.name): one.server_id for one in store.ensemble(id_).members}


def test_groups_come_over_with_their_servers(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    one, two = running(store, nova, 1, 1), running(store, nova, 2, 2)
    big = running(store, nova, 3, 3, flavor="a b")
    rules = {"max_server_per_host": 2}
    nova.group(GROUP, "web", "anti-affinity", one, two, big, rules=rules)
    nova.group(OTHER, "batch", "soft-affinity", project_id="project-b", user_id="bob")
    told = taken(offline, nova)
    assert told.status == 0, told
    assert told.body["written"] == 2
    assert told.body["not_taken"] == told.body["broken"] == []
    assert members(store) == {"small[0]": one, "small[1]": two, "a_b[0]": big}
    ensemble = store.ensemble(GROUP)
    assert (ensemble.project_id, ensemble.user_id, ensemble.name) == ("project-a", "ann", "web")
    [policy] = ensemble.policies
    assert (policy.type, policy.required, policy.parameters["max_per_domain"]) == (
        *("anti-affinity", True),
        2,
    )
    roles = {role.name: (role.flavor, dict(role.resources)) for role in ensemble.roles}
    assert roles == {"small": ("small", {"VCPU": 2}), "a_b": (None, {"VCPU": 2})}
    empty = store.ensemble(OTHER)
    assert (empty.project_id, empty.roles, empty.policies[0].weight) == ("project-b", (), 1)


def test_it_is_repeated_and_follows_servers_that_come_and_go(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    one, two = running(store, nova, 1, 1), running(store, nova, 2, 2)
    group = nova.group(GROUP, "web", "anti-affinity", one, two)
    assert taken(offline, nova).body["written"] == 1
    before = store.snapshot().revision, store.ensemble(GROUP)
    assert taken(offline, nova).body["written"] == 0
    assert (store.snapshot().revision, store.ensemble(GROUP)) == before
    three = running(store, nova, 3, 3)
    group["members"] = [two, three]
    nova.lists["servers"] = [one for one in nova.lists["servers"] if one["id"] != named(101)]
    owner, *_ = store.consumer(one) or (None,)
    assert owner is not None
    store.commit(Changeset((ReplaceAllocations(owner, {}, owner.generation),)))
    body = taken(offline, nova).body
    assert (body["written"], body["groups"][0]["new"]) == (1, False)
    assert (body["groups"][0]["added"], body["groups"][0]["removed"]) == ([three], [one])
    assert members(store) == {"small[1]": two, "small[2]": three}


def test_a_dry_run_writes_nothing(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    nova.group(GROUP, "web", "anti-affinity", running(store, nova, 1, 1))
    before = store.snapshot().revision
    told = taken(offline, nova, "--dry-run")
    assert (told.status, told.body["would_write"]) == (0, 1)
    assert store.snapshot().revision == before
    assert not list(store.ensembles(project_id=None))
    said = offline("admin", "import", "nova", "--from", nova.url, "--dry-run").out
    assert "would write 1; nothing was written" in said


def test_a_broken_policy_is_taken_over_and_told(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    one, two = running(store, nova, 1, 1), running(store, nova, 2, 1)
    nova.group(GROUP, "web", "anti-affinity", one, two)
    told = taken(offline, nova)
    assert told.status == 0, told
    [broken] = told.body["broken"]
    assert (broken["group"], broken["policy"]) == (GROUP, "anti-affinity")
    assert "holds 2" in broken["text"]
    assert set(members(store).values()) == {one, two}
    assert "broken already" in offline("admin", "import", "nova", "--from", nova.url).out


def test_what_is_not_taken_is_listed_with_the_reason(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    here = running(store, nova, 1, 1)
    shelved = named(150)
    nova.server(shelved, None, status="SHELVED_OFFLOADED")
    nova.group(GROUP, "web", "affinity", here, shelved, named(151))
    nova.group(OTHER, "old", "legacy")
    nova.group(named(902), "none", None)
    nova.group(named(903), "n" * 256, "affinity")
    told = taken(offline, nova)
    assert told.status == 4, told
    left = {(one["group"], one["server"]): one["reason"] for one in told.body["not_taken"]}
    assert "SHELVED_OFFLOADED" in left[GROUP, shelved]
    assert "no such server" in left[GROUP, named(151)]
    assert "legacy" in left[OTHER, None]
    assert "none" in left[named(902), None]
    assert left[named(903), None] == "name is longer than 255 characters"
    assert set(members(store).values()) == {here}


def test_a_group_that_nova_has_deleted_is_told(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    nova.group(GROUP, "web", "affinity")
    nova.group(OTHER, "db", "affinity")
    assert taken(offline, nova).body["without_group"] == []
    del nova.lists["server_groups"][0]
    told = taken(offline, nova)
    assert (told.status, told.body["without_group"]) == (0, [{"id": GROUP, "name": "web"}])
    assert store.ensemble(GROUP).name == "web", "who deletes it is its project or an operator"
    said = offline("admin", "import", "nova", "--from", nova.url).out
    assert f"ensemble web ({GROUP}): Nova has no such group any more" in said


def test_groups_of_one_name_keep_it(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    nova.group(GROUP, "web", "affinity")
    nova.group(OTHER, "web", "affinity")
    nova.group(named(902), "web", "affinity", project_id="project-b")
    told = taken(offline, nova)
    assert told.status == 0, told
    names = [store.ensemble(id_).name for id_ in (GROUP, OTHER, named(902))]
    assert names == ["web", "web", "web"]
    assert taken(offline, nova).body["written"] == 0


def test_a_group_whose_policy_was_changed_here_is_left(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    group = nova.group(GROUP, "web", "affinity")
    assert taken(offline, nova).status == 0
    group["policy"] = "soft-affinity"
    told = taken(offline, nova)
    assert told.status == 4
    assert "soft-affinity there, affinity here" in told.body["not_taken"][0]["reason"]
    assert store.ensemble(GROUP).policies[0].required
    group["policy"], group["project_id"] = "affinity", "project-b"
    assert "project-a" in taken(offline, nova).body["not_taken"][0]["reason"]


def test_lists_of_several_pages_are_read_whole(
    offline: Cli, store: Ledger, nova: NovaRecords
) -> None:
    for number in range(1, 502):
        nova.group(named(1000 + number), f"g{number}", "affinity")
        nova.server(named(3000 + number), None, status="SHELVED_OFFLOADED")
    last = running(store, nova, 1, 1)
    nova.group(GROUP, "web", "affinity", last)
    assert taken(offline, nova, "--dry-run").body["would_write"] == 502
    nova.most = 100
    assert taken(offline, nova, "--dry-run").body["would_write"] == 502


@pytest.mark.parametrize(
    ("path", "answer", "told"),
    [
        ("/v2.1/os-server-groups", (403, {"forbidden": {"message": "not you"}}), "not you"),
        ("/v2.1/os-server-groups", (200, b"<html>"), "not JSON"),
        ("/v2.1/servers/detail", (200, {"other": []}), "not an answer of Nova's"),
        ("/v2.1/servers/detail", (200, {"servers": [{"id": 7}]}), "not an answer of Nova's"),
    ],
)
def test_a_nova_that_refuses_or_is_none(
    offline: Cli, store: Ledger, nova: NovaRecords, path: str, answer: Any, told: str
) -> None:
    nova.group(GROUP, "web", "affinity")
    nova.bad[path] = answer
    result = taken(offline, nova)
    assert result.status not in {0, 4}
    assert told in result.out
    assert not list(store.ensembles(project_id=None))
