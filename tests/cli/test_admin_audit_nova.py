"""`moorage admin audit --nova`: the ledger compared with what a running Nova lists."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.cli.conftest import Cli
from tests.servers.nova_records import NovaRecords, serving

from moorage.client.hint_filter_probe import NOBODY, legacy
from moorage.domain.changes import Changeset, CreateProvider, PutInventories, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.providers import Inventory
from moorage.store import Ledger, open_store
from moorage.testing.ledger_copy import new_database


def named(number: int) -> str:
    return str(UUID(int=number, version=4))


@pytest.fixture
def nova() -> Iterator[NovaRecords]:
    with serving() as found:
        yield found


@pytest.fixture
def store(offline: Cli, tmp_path: Path) -> Iterator[Ledger]:
    """Two hosts, and a server on the first."""
    database = new_database(tmp_path)
    offline.environment["MOORAGE_DATABASE"] = database
    ledger = open_store(database)
    for number in (1, 2):
        stock = PutInventories(named(number), (Inventory("VCPU", 64),), None)
        ledger.commit(Changeset((CreateProvider(named(number), f"n{number}"), stock)))
    owner = Consumer(named(10), "p", "u", "INSTANCE")
    ledger.commit(Changeset((ReplaceAllocations(owner, {named(1): {"VCPU": 2}}, None),)))
    yield ledger
    ledger.close()


def compute(nova: NovaRecords, name: str, status: str = "enabled") -> None:
    nova.hypervisor(name)
    said = {"host": name, "zone": "nova", "status": status, "state": "up"}
    nova.lists["services"].append(said)


def audited(offline: Cli, nova: NovaRecords) -> list[tuple[str, str]]:
    result = offline("admin", "audit", "--nova", nova.url, "-f", "json")
    found = [(one["kind"], one["subject"]) for one in result.body["findings"]]
    assert result.status == (4 if found else 0), result
    return sorted(found)


def test_nothing_where_both_agree(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    nova.server(named(10), "n1")
    compute(nova, "n1")
    compute(nova, "n2")
    assert audited(offline, nova) == []
    told = offline("admin", "audit", "--nova", nova.url).out
    assert told == "checked 1 consumer and 1 server: 0 findings\n"


def test_each_difference_is_found(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    nova.server(named(11), "n2")
    nova.server(named(12), None, status="SHELVED_OFFLOADED")
    compute(nova, "n1", "disabled")
    compute(nova, "n3")
    assert audited(offline, nova) == [
        ("departed", named(2)),
        ("unaccounted", named(11)),
        ("unlisted", named(10)),
        ("unmarked", named(1)),
        ("unregistered", "n3"),
    ]


def test_lists_come_from_nova_or_from_files(
    offline: Cli, store: Ledger, nova: NovaRecords, tmp_path: Path
) -> None:
    (tmp_path / "servers.json").write_text("[]")
    words = ("--nova", nova.url, "--servers", str(tmp_path / "servers.json"))
    refused = offline("admin", "audit", *words)
    assert refused.status == 2
    assert "leave the files out" in refused.err
    assert offline("admin", "audit", "--repair").status == 2
    nova.bad["/v2.1/servers/detail"] = (403, {"forbidden": {"message": "not you"}})
    assert "not you" in offline("admin", "audit", "--nova", nova.url).err


def test_a_path_where_hints_are_not_read(offline: Cli, store: Ledger, nova: NovaRecords) -> None:
    nova.server(named(10), "n1")
    compute(nova, "n1")
    compute(nova, "n2")
    novas = 400, {"badRequest": {"code": 400, "message": "'name' is a required property"}}
    filters = 404, {"itemNotFound": {"code": 404, "message": f"no ensemble {NOBODY}"}}
    away = 503, {"serviceUnavailable": {"code": 503, "message": "Moorage does not answer"}}
    nova.creations = {"/v2.1/servers": filters, "/v2/servers": novas}
    assert audited(offline, nova) == [("unfiltered", nova.url.replace("/v2.1", "/v2"))]
    told = offline("admin", "audit", "--nova", nova.url, "--without-filter")
    assert (told.status, told.out) == (0, "checked 1 consumer and 1 server: 0 findings\n")
    nova.creations = {"/v2.1/servers": novas, "/v2/servers": away}
    assert audited(offline, nova) == [("unfiltered", nova.url)]


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("http://c:8774/v2.1", "http://c:8774/v2"),
        ("http://c/compute/v2.1", "http://c/compute/v2"),
        ("http://c:8774/v2.1/0b1e", "http://c:8774/v2/0b1e"),
        ("http://c:8774/compute", None),
    ],
)
def test_the_legacy_endpoint(endpoint: str, expected: str | None) -> None:
    assert legacy(endpoint) == expected
