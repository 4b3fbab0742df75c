"""`moorage admin upgrade check`: the table and statuses of oslo.upgradecheck, and each check."""

import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli
from tests.outward.conftest import Answer, receiving
from tests.servers.ports import free_port
from tests.servers.reference import reference

from moorage.domain.changes import Changeset, CreateProvider, PutInventories, ReplaceAllocations
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.providers import Inventory
from moorage.store import open_store
from moorage.testing.ledger_copy import new_database

pytestmark = [
    pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:the 'ALL' constant is deprecated:DeprecationWarning"),
]

HOST, SERVER = (f"00000000-0000-4000-8000-{number:012}" for number in (1, 2))
SUCCESS, WARNING, FAILURE = 0, 1, 2
Check = Callable[..., tuple[int, dict[str, tuple[int, str]]]]


@pytest.fixture
def database(tmp_path: Path) -> str:
    url = new_database(tmp_path)
    open_store(url).close()
    return url


@pytest.fixture
def check(tmp_path: Path, offline: Cli, database: str, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check with these settings; status, and name -> result and details."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOORAGE_DATABASE", database)
    offline.environment["MOORAGE_DATABASE"] = database

    def check(text: str = "", *words: str) -> tuple[int, dict[str, tuple[int, str]]]:
        (tmp_path / "moorage.conf").write_text(text)
        done = offline("admin", "upgrade", "check", *words, "-f", "json")
        assert "name" in done.body, done
        assert done.body["name"] == "Upgrade Check Results"
        found = {one["check"]: (one["result"], one["details"] or "") for one in done.body["checks"]}
        assert done.status == max(result for result, _ in found.values())
        return done.status, found

    return check


def test_the_table_is_the_one_of_other_services(check: Check, offline: Cli) -> None:
    assert check()[0] == SUCCESS
    plain = offline("admin", "upgrade", "check", "-f", "value").out.splitlines()
    assert plain[0].startswith("Settings success")
    done = offline("admin", "upgrade", "check")
    assert done.status == SUCCESS
    lines = done.out.splitlines()
    assert lines[0].startswith("+---")
    assert lines[1].strip("| ") == "Upgrade Check Results"
    assert lines[3].strip("| ") == "Check: Settings"
    assert lines[4].strip("| ") == "Result: Success"
    assert lines[5].strip("| ") == "Details: None"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[keystone_authtoken]\nauth_url = http://k\n", "but auth is noauth2"),
        ("[DEFAULT]\ntoken_file = t\n", "there is a token_file, but auth is noauth2"),
        ("[DEFAULT]\nhost = 0.0.0.0\ninsecure = true\n", "everybody who reaches the port"),
        (
            "[nova]\nauth_type = password\n",
            "none of end_servers, move_servers, ticket_flavors is nova",
        ),
        ("[oslo_messaging_rabbit]\nssl = 1\n", "ignored section [oslo_messaging_rabbit]"),
    ],
)
def test_settings_that_cannot_be_meant_are_warnings(check: Check, text: str, words: str) -> None:
    status, found = check(text)
    assert status == WARNING
    assert found["Settings"][0] == WARNING
    assert words in found["Settings"][1]


def test_settings_that_cannot_be_used_are_a_failure_and_end_the_rest(check: Check) -> None:
    status, found = check("[DEFAULT]\nprot = 8778\n")
    assert status == FAILURE
    assert "setting prot" in found["Settings"][1]
    assert found["Database"] == (FAILURE, "not checked: the settings cannot be used")
    status, found = check("[DEFAULT]\npolicy_file = /nowhere\n")
    assert found["Settings"][0] == SUCCESS
    assert (status, found["Access rules and tokens"][0]) == (FAILURE, FAILURE)


def test_one_policy_file_may_name_the_rules_of_every_dialect(check: Check, tmp_path: Path) -> None:
    names = ("placement:usages", "blazar:leases:get", "os_compute_api:os-server-groups:index")
    file = tmp_path / "rules.yaml"
    file.write_text("".join(f'"{name}": "!"\n' for name in names))
    status, found = check(f"[DEFAULT]\npolicy_file = {file}\n")
    assert found["Access rules and tokens"][0] == SUCCESS, found
    assert status == SUCCESS


def test_a_database_that_does_not_answer(check: Check) -> None:
    status, found = check("", "--database", f"postgresql://u@127.0.0.1:{free_port()}/x")
    assert (status, found["Database"][0], found["Schema"][0]) == (FAILURE, FAILURE, FAILURE)


def test_the_version_of_a_server_is_shown(check: Check, postgres_url: str) -> None:
    status, found = check("", "--database", postgres_url)
    assert status == SUCCESS
    assert found["Database"][1].startswith("PostgreSQL ")
    assert re.fullmatch(r"revision \d{4}_\w+", found["Schema"][1])


def test_no_ledger_is_a_warning_and_none_is_made(check: Check, tmp_path: Path) -> None:
    status, found = check("", "--database", f"sqlite:///{tmp_path}/leger.db")
    assert status == WARNING
    assert "there is no ledger in" in found["Schema"][1]
    assert not (tmp_path / "leger.db").exists()


@pytest.mark.parametrize(
    ("revision", "words"),
    [("0007", "from before the first release"), ("9999_next", "a newer version has changed it")],
)
def test_a_schema_that_cannot_be_used(
    check: Check, tmp_path: Path, revision: str, words: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))
        connection.commit()
    status, found = check()
    assert (status, found["Schema"][0]) == (FAILURE, FAILURE)
    assert words in found["Schema"][1]
    assert found["Ledger"] == (SUCCESS, "not checked: the schema is not this version's own")


def test_an_older_schema_is_upgraded_by_the_next_start_only(check: Check, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001_release'")
        connection.commit()
        status, found = check()
        assert status == SUCCESS
        assert "revision 0001_release: the next start upgrades it to" in found["Schema"][1]
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert revision == "0001_release"


def test_what_the_ledger_has_is_looked_at(check: Check, database: str) -> None:
    owner = Consumer(SERVER, "project", "user", "INSTANCE")
    allocation = ReplaceAllocations(
        owner, {HOST: {"VCPU": 4}}, ANY_GENERATION, until=int((time.time() + 1) * 1_000_000)
    )
    with closing(open_store(database)) as store:
        stock = PutInventories(HOST, (Inventory("VCPU", 8),), None)
        store.commit(Changeset((CreateProvider(HOST, "n1"), stock)))
        store.commit(Changeset((allocation,)))
        assert check()[0] == SUCCESS
        less = PutInventories(HOST, (Inventory("VCPU", 2),), None)
        store.commit(Changeset((less,)))
        time.sleep(1.1)
    status, found = check()
    assert status == WARNING
    assert found["Ledger"] == (WARNING, "1 overage: `moorage admin audit` lists them")
    assert found["Ended bookings"][0] == WARNING
    assert f"the first {SERVER} since" in found["Ended bookings"][1]


KEYSTONE = """
[DEFAULT]
auth = keystone
[keystone_authtoken]
auth_type = password
auth_url = {url}
www_authenticate_uri = {url}
username = moorage
password = hidden
user_domain_id = default
project_name = service
project_domain_id = default
"""


def test_a_keystone_that_does_not_answer(check: Check) -> None:
    status, found = check(KEYSTONE.format(url=f"http://127.0.0.1:{free_port()}"))
    assert (status, found["Keystone"][0]) == (FAILURE, FAILURE)
    assert "it does not answer at http://127.0.0.1" in found["Keystone"][1]
    assert "hidden" not in str(found)


NOVA = """
[DEFAULT]
ticket_flavors = nova
[nova]
auth_type = none
endpoint = {url}
"""


def test_nova_is_asked_where_it_is_used(check: Check) -> None:
    answers: list[Any] = [Answer(200, b'{"flavors": []}'), Answer(401)]
    with receiving(lambda _: answers.pop(0)) as nova:
        assert check(NOVA.format(url=nova.url))[1]["Nova"] == (
            SUCCESS,
            "it answers; used for ticket_flavors",
        )
        status, found = check(NOVA.format(url=nova.url))
        assert (status, found["Nova"][0]) == (FAILURE, FAILURE)
        assert "Nova answered 401" in found["Nova"][1]
        assert [one.path for one in nova.requests] == ["/flavors?limit=1"] * 2
    status, found = check(NOVA.format(url=f"http://127.0.0.1:{free_port()}"))
    assert (status, found["Nova"][0]) == (FAILURE, FAILURE)
    assert "Nova cannot be asked" in found["Nova"][1]


@pytest.mark.process
def test_an_import_is_compared_with_its_source(check: Check, offline: Cli, tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path}/placement.db"
    with reference(tmp_path / "reference", source) as placement:
        host = placement.done("POST", "/resource_providers", {"name": "n1", "uuid": HOST})
        status, found = check("", "--database", source)
        assert (status, found["Schema"][0]) == (FAILURE, FAILURE)
        assert "openstack-placement's database" in found["Schema"][1]
        for url in (source, placement.url):
            status, found = check("", "--from", url)
            assert (status, found["Import from Placement"][0]) == (FAILURE, FAILURE)
            assert f"resource provider {host['uuid']}" in found["Import from Placement"][1]
        assert offline("admin", "import", "placement", "--from", source).status == 0
        assert check("", "--from", source)[1]["Import from Placement"][0] == SUCCESS
        placement.done("DELETE", f"/resource_providers/{HOST}")
        status, found = check("", "--from", source)
        assert (status, found["Import from Placement"][0]) == (WARNING, WARNING)
