"""packaging/drop-in takes a reference's place: kolla-ansible's own templates, nothing else changed.

It runs in an environment of its own (`make drop-in-test`), for it has the reference's module name.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
import psycopg
import pytest
from sqlalchemy import create_engine, inspect, make_url, text
from tests.servers.mariadb import ask
from tests.servers.ports import free_port
from tests.servers.reference import Cloud, Placement, named, reference

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".cache" / "drop-in"
ROLES = ENVIRONMENT / "share" / "kolla-ansible" / "ansible" / "roles"
SECRET = "s3cret"
SECONDS = 180.0

pytestmark = [pytest.mark.nightly, pytest.mark.process, pytest.mark.timeout(900)]


class OldCloud:
    """The database of a reference with a small cloud, and its user without further rights."""

    def __init__(self, admin: str, url: str, kind: str) -> None:
        self.kind, self.admin = kind, admin
        self.database = str(make_url(url).database)
        self.user = f"u{self.database[-20:]}"
        self.address = f"{make_url(url).host}:{make_url(url).port}"
        if kind == "mysql":
            ask(admin, f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{SECRET}'")
            ask(admin, f"GRANT ALL ON `{self.database}`.* TO '{self.user}'@'%'")
        else:
            self.run(f"CREATE ROLE {self.user} LOGIN PASSWORD '{SECRET}'")
            self.run(f"GRANT ALL ON DATABASE {self.database} TO {self.user}")
            self.run(f"ALTER DATABASE {self.database} OWNER TO {self.user}")

    def run(self, statement: str) -> None:
        """Run a statement as the server's administrator."""
        if self.kind == "mysql":
            ask(self.admin, statement)
            return
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(statement)

    @property
    def connection(self) -> str:
        driver = "mysql+pymysql" if self.kind == "mysql" else "postgresql+psycopg2"
        return f"{driver}://{self.user}:{SECRET}@{self.address}/{self.database}"

    def rows(self) -> dict[str, list[Any]]:
        """All that its tables have."""
        driver = self.connection.replace("psycopg2", "psycopg")
        engine = create_engine(driver)
        try:
            with engine.connect() as connection:
                return {
                    name: sorted(map(repr, connection.execute(text(f"SELECT * FROM {name}"))))
                    for name in inspect(connection).get_table_names()
                }
        finally:
            engine.dispose()


@pytest.fixture(params=["mysql", "postgresql"])
def old(request: pytest.FixtureRequest) -> Iterator[OldCloud]:
    name = "mariadb_databases" if request.param == "mysql" else "postgres_databases"
    databases = request.getfixturevalue(name)
    url = databases.empty()
    admin = databases.admin if request.param == "mysql" else databases._admin
    cloud = OldCloud(admin, url, request.param)
    yield cloud
    if request.param == "mysql":
        ask(admin, f"DROP DATABASE IF EXISTS `{cloud.database}_moorage`")
    else:
        cloud.run(f'DROP DATABASE IF EXISTS "{cloud.database}_moorage" WITH (FORCE)')


@pytest.fixture
def written(old: OldCloud, tmp_path: Path) -> Iterator[Callable[[], Placement]]:
    """Starts the reference over the old database, with the cloud in it."""
    with reference(tmp_path / "reference", old.connection) as placement:
        Cloud(placement).write()
        yield lambda: placement


class Kolla:
    """The files that kolla-ansible writes for placement-api, and the programs that read them."""

    def __init__(self, folder: Path, old: OldCloud) -> None:
        self.folder, self.old, self.port = folder, old, free_port()
        self.logs = folder / "logs"
        (self.logs / "placement").mkdir(parents=True)
        conf = self._rendered(
            "placement/templates/placement.conf.j2",
            placement_logging_debug="False",
            service_name="placement-api",
            placement_database_user=old.user,
            placement_database_password=SECRET,
            placement_database_address=old.address,
            placement_database_name=old.database,
            placement_database_enable_tls_internal=False,
            database_connection_recycle_time=10,
            database_max_pool_size=1,
            groups={"memcached": ["one"]},
            memcached_port=11211,
            keystone_public_url="http://127.0.0.1:9/v3",
            keystone_internal_url="http://127.0.0.1:9/v3",
            default_project_domain_id="default",
            default_user_domain_id="default",
            placement_keystone_user="placement",
            placement_keystone_password=SECRET,
            openstack_cacert="",
            openstack_region_name="RegionOne",
            memcache_security_strategy="ENCRYPT",
            memcache_secret_key=SECRET,
            enable_osprofiler=False,
        )
        if old.kind == "postgresql":  # kolla-ansible knows MariaDB alone
            conf = conf.replace("mysql+pymysql://", "postgresql+psycopg2://")
        self.conf = folder / "placement.conf"
        self.conf.write_text(conf)
        uwsgi = self._rendered(
            "service-uwsgi-config/templates/uwsgi.ini.j2",
            service_uwsgi_config_host="127.0.0.1",
            service_uwsgi_config_http_port=self.port,
            service_uwsgi_config_tls_backend=False,
            service_uwsgi_config_log_dir="placement",
            service_uwsgi_config_log_file="placement-api-uwsgi.log",
            service_uwsgi_config_module="placement.wsgi.api:application",
            service_uwsgi_config_socket_port="",
            service_uwsgi_config_workers=2,
            service_uwsgi_config_worker_timeout=80,
            kolla_base_distro="ubuntu",
        )
        self.uwsgi = folder / "placement-api-uwsgi.ini"
        # The plug-in for Python is built into the wheel.
        self.uwsgi.write_text(re.sub("(?m)^plugins.*\n", "", uwsgi))

    def _rendered(self, name: str, **values: Any) -> str:
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(ROLES), undefined=jinja2.StrictUndefined
        )
        environment.filters |= {
            "bool": bool,
            "kolla_address": lambda _network, _host: "127.0.0.1",
            "put_address_in_context": lambda address, _context: address,
        }
        # The volume of the container.
        return (
            environment.get_template(name).render(values).replace("/var/log/kolla", str(self.logs))
        )

    @property
    def variables(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "OS_PLACEMENT_CONFIG_DIR": str(self.folder)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        program, *rest = words
        return subprocess.run(
            [ENVIRONMENT / "bin" / program, *rest],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    @contextmanager
    def served(self) -> Iterator[Placement]:
        process = subprocess.Popen(
            [ENVIRONMENT / "bin" / "uwsgi", str(self.uwsgi)], env=self.variables, cwd=self.folder
        )
        placement = Placement(f"http://127.0.0.1:{self.port}")
        try:
            end = time.monotonic() + SECONDS
            while not _answers(placement):
                assert process.poll() is None, self.log()
                assert time.monotonic() < end, self.log()
                time.sleep(0.2)
            yield placement
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self) -> str:
        return "\n".join(one.read_text()[-3000:] for one in self.logs.rglob("*.log"))


def _answers(placement: Placement) -> bool:
    try:
        return placement.ask("GET", "/")[0] == 200
    except (OSError, ValueError):
        return False


@pytest.fixture
def kolla(tmp_path: Path, old: OldCloud) -> Kolla:
    return Kolla(tmp_path, old)


def test_without_rights_the_statements_for_an_administrator_are_told(
    kolla: Kolla, old: OldCloud, written: Callable[[], Placement]
) -> None:
    refused = kolla.run("placement-manage", "db", "sync")
    assert refused.returncode == 1, refused
    assert f"{old.user} may not make it" in refused.stderr
    statements = re.findall(r"(?m)^  ((?:CREATE|GRANT) .*);$", refused.stderr)
    assert len(statements) == (2 if old.kind == "mysql" else 1)
    assert SECRET not in refused.stderr + refused.stdout
    for one in statements:
        old.run(one)
    done = kolla.run("placement-manage", "db", "sync")
    assert done.returncode == 0, done


def test_a_cloud_is_taken_over_by_the_commands_that_kolla_runs(
    kolla: Kolla, old: OldCloud, written: Callable[[], Placement]
) -> None:
    placement = written()
    if old.kind == "mysql":
        old.run(f"GRANT ALL ON `{old.database}\\_moorage`.* TO '{old.user}'@'%'")
    else:
        old.run(f"ALTER ROLE {old.user} CREATEDB")
    before = old.rows()
    paths = [f"/allocations/{named(one)}" for one in ("web-1", "web-2", "db-1", "untyped")]
    paths += [f"/resource_providers/{named('az1-r1-n1')}/inventories", "/resource_classes"]
    expected = {path: placement.done("GET", path) for path in paths}
    early = kolla.run("placement-status", "upgrade", "check")
    assert early.returncode == 2, early
    done = kolla.run("placement-manage", "db", "sync")
    assert done.returncode == 0, done
    assert "9 resource providers" in done.stdout
    again = kolla.run("placement-manage", "db", "sync")
    assert (again.returncode, "imported before" in again.stdout) == (0, True), again
    version = kolla.run("placement-manage", "db", "version")
    assert (version.returncode, len(version.stdout.split())) == (0, 1), version
    online = kolla.run("placement-manage", "db", "online_data_migrations")
    assert online.returncode == 0
    assert "create_incomplete_consumers" in online.stdout
    wrong = kolla.run("placement-manage", "db", "online_data_migrations", "--max-count", "0")
    assert wrong.returncode == 127
    with kolla.served() as served:
        assert served.ask("GET", "/")[1]["versions"][0]["max_version"] == "1.39"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{served.url}/resource_providers", timeout=30)
    kolla.conf.write_text(kolla.conf.read_text() + "\n[api]\nauth_strategy = noauth2\n")
    with kolla.served() as served:
        assert {path: served.done("GET", path) for path in paths} == expected
        body = {"name": "new", "uuid": named("new")}
        served.done("POST", "/resource_providers", body)
        checked = kolla.run("placement-status", "upgrade", "check")
        assert "Import from Placement" in checked.stdout, checked
        assert checked.returncode in {0, 1}, checked.stdout
    assert kolla.run("placement-manage", "db", "sync").returncode == 0
    with kolla.served() as served:
        assert served.done("GET", f"/resource_providers/{named('new')}")["name"] == "new"
    assert old.rows() == before


def test_syncs_at_once_and_beside_a_service_import_once(
    kolla: Kolla, old: OldCloud, written: Callable[[], Placement]
) -> None:
    """As the containers of several controllers run them."""
    written()
    old.run(f"DROP USER '{old.user}'@'%'" if old.kind == "mysql" else "SELECT 1")
    if old.kind == "mysql":
        old.run(f"CREATE USER '{old.user}'@'%' IDENTIFIED BY 'p%4@$w/d'")
        old.run(f"GRANT ALL ON `{old.database}`.* TO '{old.user}'@'%'")
        old.run(f"GRANT ALL ON `{old.database}\\_moorage`.* TO '{old.user}'@'%'")
    else:
        old.run(f"ALTER ROLE {old.user} CREATEDB PASSWORD 'p%4@$w/d'")
    kolla.conf.write_text(
        kolla.conf.read_text().replace(
            f":{SECRET}@{old.address}", f":p%254%40$$w%2Fd@{old.address}"
        )
    )
    words = [str(ENVIRONMENT / "bin" / "placement-manage"), "db", "sync"]
    running = [
        subprocess.Popen(words, env=kolla.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    told = [one.communicate(timeout=SECONDS) for one in running]
    assert [one.returncode for one in running] == [0, 0, 0], told
    assert sum(b"compared: " in output for output, _ in told) == 1, told
    with kolla.served() as served:
        again = kolla.run("placement-manage", "db", "sync")
        assert (again.returncode, "imported before" in again.stdout) == (0, True), again
        assert served.ask("GET", "/")[0] == 200


def test_an_empty_installation_starts_after_a_sync(kolla: Kolla, old: OldCloud) -> None:
    if old.kind == "mysql":
        old.run(f"GRANT ALL ON `{old.database}\\_moorage`.* TO '{old.user}'@'%'")
    else:
        old.run(f"ALTER ROLE {old.user} CREATEDB")
    done = kolla.run("placement-manage", "db", "sync")
    assert done.returncode == 0, done
    assert "nothing was there" in done.stdout
    with kolla.served() as served:
        assert served.ask("GET", "/")[0] == 200


def test_it_does_not_start_beside_the_reference() -> None:
    # The environment of the other tests has the reference.
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "python", "-c", "import placement"],
        env={"PYTHONPATH": str(ROOT / "packaging" / "drop-in" / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "openstack-placement and moorage-placement are both installed" in done.stderr
