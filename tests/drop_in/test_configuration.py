"""placement.conf as oslo.config reads it, beside the reference's own commands.

The drop-in runs in an environment of its own (`make drop-in-test`), the reference in this one.
"""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import make_url
from tests.servers.reference import Cloud, reference

ROOT = Path(__file__).parents[2]
DROP_IN = ROOT / ".cache" / "drop-in" / "bin"
REFERENCE = ROOT / ".venv" / "bin"
SECONDS = 180.0
OLD = """\
import sys
from placement.command_line import named_files, parser
from placement.configuration import configuration
found = configuration(named_files(parser("placement-manage").parse_args(sys.argv[1:])))
print(found.old.render_as_string(hide_password=False))
"""
THEIRS = """\
import sys
from oslo_config import cfg
from placement import conf
config = cfg.ConfigOpts()
conf.register_opts(config)
config(sys.argv[1:], project="placement", prog="placement-manage")
print(config.placement_database.connection)
"""

pytestmark = [pytest.mark.nightly, pytest.mark.process, pytest.mark.timeout(600)]

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with the usual folder for placement.conf."""
    (tmp_path / ".placement" / "placement.conf.d").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def run(home: Path) -> Run:
    """Runs a program with this home."""

    def run(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, words)],
            env={"PATH": "/usr/bin:/bin", "HOME": str(home), **variables},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    return run


def said(connection: str, more: str = "") -> str:
    return f"[placement_database]\nconnection = {connection}\n{more}"


MAIN = ".placement/placement.conf"
MORE = ".placement/placement.conf.d"


@pytest.mark.parametrize(
    ("files", "words", "variables"),
    [
        ({MAIN: said("sqlite:////srv/main.db")}, [], {}),
        ({MAIN: said("sqlite:////a.db"), f"{MORE}/50.conf": said("sqlite:////b.db")}, [], {}),
        (
            {
                MAIN: said("sqlite:////a.db"),
                f"{MORE}/60.conf": said("sqlite:////b.db"),
                f"{MORE}/50.conf": said("sqlite:////c.db"),
                f"{MORE}/notes.txt": "not read",
            },
            [],
            {},
        ),
        ({f"{MORE}/50.conf": said("sqlite:////alone.db")}, [], {}),
        ({"placement.conf": said("sqlite:////home.db")}, [], {}),
        ({"placement-manage.conf": said("sqlite:////program.db")}, [], {}),
        (
            {MAIN: said("sqlite:////a.db"), "other.conf": said("sqlite:////other.db")},
            ["--config-file", "other.conf"],
            {},
        ),
        (
            {
                "other.conf": said("sqlite:////other.db"),
                f"{MORE}/50.conf": said("sqlite:////usual.db"),
                "folder/1.conf": said("sqlite:////folder.db"),
            },
            ["--config-dir=folder", "--config-file", "other.conf"],
            {},
        ),
        (
            {MAIN: said("sqlite:////a.db"), "folder/1.conf": said("sqlite:////folder.db")},
            ["--config-dir", "folder"],
            {},
        ),
        (
            {MAIN: said("sqlite:////a.db")},
            [],
            {"OS_PLACEMENT_DATABASE__CONNECTION": "sqlite:////variable.db"},
        ),
        ({MAIN: "[PLACEMENT_DATABASE]\nconnection = sqlite:////upper.db\n"}, [], {}),
        (
            {MAIN: "[DEFAULT]\nstate_path = /srv\n" + said("sqlite:///$state_path/x.db")},
            [],
            {},
        ),
        (
            {MAIN: said("sqlite:////${api.auth_strategy}.db", "[api]\nauth_strategy = noauth2\n")},
            [],
            {},
        ),
        ({MAIN: said("mysql+pymysql://u:p%40s%25s$$w%2Fd@db/placement?charset=utf8")}, [], {}),
        ({MAIN: said(r"mysql+pymysql://u:p\$w@db:3307/placement")}, [], {}),
        ({MAIN: said('"postgresql+psycopg2://u:p@db/placement"')}, [], {}),
    ],
)
def test_the_old_database_is_the_one_that_the_reference_reads(
    home: Path, run: Run, files: Mapping[str, str], words: list[str], variables: dict[str, str]
) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    (home / "ours").mkdir()
    script = home / "ours" / "placement-manage"  # a program's own files have its name
    script.write_text(OLD)
    theirs = run(REFERENCE / "python", "-W", "ignore", "-c", THEIRS, *words, **variables)
    assert theirs.returncode == 0, theirs.stderr
    ours = run(DROP_IN / "python", script, *words, **variables)
    assert ours.returncode == 0, ours.stderr
    expected = make_url(theirs.stdout.strip())
    assert make_url(ours.stdout.strip()) == expected.set(drivername=expected.get_backend_name())


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (said("oracle://u:secret@db/x"), [], "oracle is none of mysql, mariadb, postgresql"),
        (said("nonsense"), [], "[placement_database] connection is no database URL"),
        (said("sqlite:////srv/$nowhere.db"), [], "connection refers by $ to an option"),
        ("[api]\nauth_strategy = noauth2\n", [], "[placement_database] connection is missing"),
        (said("sqlite:////a.db", "nonsense\n"), [], "'nonsense'"),
        (said("sqlite:////a.db", "[DEFAULT]\ndatabase = nonsense\n"), [], "[DEFAULT] database"),
        (said("mysql://u:secret@db/x?ssl_ca=/nowhere.pem"), [], "cannot be read"),
        (
            said("mysql://u:secret@db/x", "connection_parameters = ssl_ca=/nowhere.pem\n"),
            [],
            "cannot be read",
        ),
        (said("mysql://u:secret@127.0.0.1:1/x"), [], "the server of 127.0.0.1"),
        (said("sqlite:////a.db"), ["--config-file", "/nowhere"], "there is no file /nowhere"),
        (said("sqlite:////a.db"), ["--config-dir", "/nowhere"], "no directory /nowhere"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_sentence(
    home: Path, run: Run, text: str, words: list[str], told: str
) -> None:
    (home / MAIN).write_text(text)
    done = run(DROP_IN / "placement-manage", *words, "db", "sync")
    assert (done.returncode, done.stdout) == (1, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_refusals_of_settings_name_placement_conf(home: Path, run: Run) -> None:
    more = home / MORE / "50.conf"
    (home / MAIN).write_text(said("sqlite:////a.db", "[api]\nauth_strategy = noauth2\n"))
    more.write_text("[DEFAULT]\nport = -1\n[placement]\nmax_allocation_candidates = lots\n")
    start = [DROP_IN / "python", "-c", "import placement.wsgi.api"]
    refused = run(*start)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(
        f"moorage.settings.effective_values.BadSetting: setting [DEFAULT] port (file {more}): port"
    )
    more.write_text("[placement]\nmax_allocation_candidates = lots\n")
    refused = run(*start)
    assert f"setting [placement] max_allocation_candidates (file {more})" in refused.stderr
    more.write_text("[api]\nauth_strategy = keystone\n")
    refused = run(*start)
    assert f"setting auth (file {more}, [api] auth_strategy): keystone needs" in refused.stderr


def test_options_that_the_reference_ignores_do_not_stop_the_service(home: Path, run: Run) -> None:
    old = said(f"sqlite:///{home}/a.db", "slave_connection = sqlite:////b.db\n")
    (home / MAIN).write_text(
        f"{old}[keystone_authtoken]\nauth_type = password\nauth_url = http://127.0.0.1:9/v3\n"
        "username = placement\npassword = p$$w\nproject_name = service\n"
        "user_domain_name = Default\nproject_domain_name = Default\n"
        "admin_tenant_name = service\nfoo = bar\n[oslo_policy]\nenforce_scope = true\n"
        "[nonsense]\nfoo = bar\n"
    )
    assert run(DROP_IN / "placement-manage", "db", "sync").returncode == 0
    started = run(DROP_IN / "python", "-c", "import placement.wsgi.api")
    assert started.returncode == 0, started.stderr
    assert "[nonsense]" in started.stderr + started.stdout


def test_the_commands_have_the_options_and_statuses_of_the_reference(home: Path, run: Run) -> None:
    (home / MAIN).write_text(said(f"sqlite:///{home}/a.db"))
    for words in (
        [],
        ["db"],
        ["--version"],
        ["--help"],
        ["--debug", "--log-file", "x.log", "--nouse-json", "db", "version"],
        ["--nonsense", "db", "version"],
        ["db", "nonsense"],
        ["db", "stamp"],
        ["db", "online_data_migrations", "--max-count", "nonsense"],
    ):
        ours = run(DROP_IN / "placement-manage", *words)
        theirs = run(REFERENCE / "placement-manage", *words)
        assert ours.returncode == theirs.returncode, (words, ours, theirs)
    stamped = run(DROP_IN / "placement-manage", "db", "stamp", "b4ed3a175331")
    assert (stamped.returncode, "db sync" in stamped.stderr) == (1, True)


def test_other_databases_are_told_and_left_as_they_are(
    tmp_path: Path, home: Path, run: Run
) -> None:
    old = tmp_path / "old.db"
    with reference(tmp_path / "reference", f"sqlite:///{old}") as placement:
        Cloud(placement).write()
    content = old.read_bytes()

    def synced(name: str, *statements: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / f"{name}.db"
        file.write_bytes(content)
        with sqlite3.connect(file) as connection:
            for one in statements:
                connection.execute(one)
        connection.close()
        before = file.read_bytes()
        (home / MAIN).write_text(said(f"sqlite:///{file}"))
        done = run(DROP_IN / "placement-manage", "db", "sync")
        assert file.read_bytes() == before
        assert "Traceback" not in done.stderr
        return done

    newer = synced(
        "newer",
        "UPDATE alembic_version SET version_num = 'ffffffffffff'",
        "ALTER TABLE resource_providers ADD COLUMN shiny INTEGER",
    )
    assert (newer.returncode, "9 resource providers" in newer.stdout) == (0, True)
    half = synced("half", "DROP TABLE consumers")
    assert (half.returncode, "no table consumers" in half.stderr) == (1, True)
    (tmp_path / "other.db").write_bytes(b"hello" * 1000)
    (home / MAIN).write_text(said(f"sqlite:///{tmp_path}/other.db"))
    other = run(DROP_IN / "placement-manage", "db", "sync")
    assert (other.returncode, "not a database" in other.stderr) == (1, True)
