"""The reference's own wire tests, against `moorage serve` over HTTP, on each kind of database.

On MariaDB they are run by `make nightly`: what the store promises is tested on it at every push.

They are the gabbi files of the PyPI package, unmodified, one test a file. Files and fixtures stay
in their package; `reference_world` says what the fixtures build on.
"""

import http.client
import unittest
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from tests.conformance.reference_world import building_on
from tests.conformance.served import Rest, Served
from tests.servers import mariadb, postgres

# Warnings of the reference's and gabbi's own code are not ours to repair.
with warnings.catch_warnings(action="ignore"):
    from gabbi.driver import build_tests
    from placement.tests.functional.fixtures import gabbits as fixtures

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore")]

FILES = sorted((Path(fixtures.__file__).parents[1] / "gabbits").glob("*.yaml"))
TESTS = 1316

FRONT_END = {
    "basic-http": {
        "bad content length not int": "the HTTP server refuses `Content-Length: hi mom` itself,"
        " with a 400 of its own wording; `test_errors` asks the application below it",
    },
}
"""Tests that depend on the reference's HTTP front end alone, by file and name, with the reason.
They run, and must fail: one that passes has no business here."""

PROFILES = {
    "APIFixture": "default",
    "LegacyRBACPolicyFixture": "default",
    "SecureRBACPolicyFixture": "secure-rbac",
    "OpenPolicyFixture": "open-policy",
    "CORSFixture": "cors",
}
"""Which settings a fixture stands for; those not named are `APIFixture` with some providers."""


@pytest.fixture(scope="module")
def served_on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("sqlite")
    served = Served(folder, lambda profile: f"sqlite:///{folder}/{profile}/ledger.db")
    yield served
    served.down()


@pytest.fixture(scope="module")
def served_on_postgresql(
    tmp_path_factory: pytest.TempPathFactory, postgres_databases: postgres.Databases
) -> Iterator[Served]:
    yield from served_on_server(tmp_path_factory.mktemp("postgresql"), postgres_databases)


@pytest.fixture(scope="module")
def served_on_mariadb(
    tmp_path_factory: pytest.TempPathFactory, mariadb_databases: mariadb.Databases
) -> Iterator[Served]:
    yield from served_on_server(tmp_path_factory.mktemp("mariadb"), mariadb_databases)


def served_on_server(
    folder: Path, databases: postgres.Databases | mariadb.Databases
) -> Iterator[Served]:
    """Each profile on a database of its own, given back at the end."""
    made: list[str] = []

    def migrated(_: str) -> str:
        made.append(databases.migrated())
        return made[-1]

    served = Served(folder, migrated)
    yield served
    served.down()
    for url in made:
        databases.release(url)


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def served(request: pytest.FixtureRequest) -> Served:
    found: Served = request.getfixturevalue(f"served_on_{request.param}")
    return found


def read(file: Path) -> Any:
    """What a YAML file says, read ten times faster than gabbi would read it."""
    return yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def profile(file: Path) -> str:
    """What the file's one fixture stands for."""
    (fixture,) = read(file)["fixtures"]
    return PROFILES.get(fixture, "default")


def suite_of(file: Path, port: int, folder: Path) -> unittest.TestSuite:
    """The tests of one file; the folder shows the driver this file alone."""
    (folder / file.name).symlink_to(file)
    with patch("gabbi.utils.load_yaml", lambda yaml_file, **_: read(Path(yaml_file))):
        suites = build_tests(
            str(folder),
            unittest.TestLoader(),
            host="127.0.0.1",
            port=port,
            cert_validate=False,  # plain HTTP; without this every test reads the certificates
            test_loader_name="reference",
            fixture_module=fixtures,
        )
    assert isinstance(suites, unittest.TestSuite)
    return suites


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_reference(file: Path, served: Served, tmp_path: Path) -> None:
    port = served.port(profile(file))
    suite = suite_of(file, port, tmp_path)
    expected = suite.countTestCases()
    result = unittest.TestResult()
    with (
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection,
        closing_clients_of(suite),
        building_on(Rest(connection), fixtures),
    ):
        suite.run(result)
    told = dict((*result.failures, *result.errors))
    excused = {one for one in told if excused_by_name(file, one)}
    failed = "\n".join(f"{one.id()}\n{told[one]}" for one in told.keys() - excused)
    assert not failed, failed
    assert len(excused) == len(FRONT_END.get(file.stem, {})), "an excused test passes: name it not"
    assert result.testsRun == expected > 0
    assert not result.skipped


@contextmanager
def closing_clients_of(suite: Any) -> Iterator[None]:
    """Each test has an HTTP client of its own, which the suite forgets with the test."""
    clients = [test.http.client for tests in suite for test in tests]
    yield
    for client in clients:
        client.close()


def excused_by_name(file: Path, test: unittest.TestCase) -> bool:
    name = str(test.test_data["name"])  # type: ignore[attr-defined] # gabbi's own
    return name in FRONT_END.get(file.stem, {})


def test_none_of_the_reference_is_left_out(tmp_path: Path) -> None:
    """So that a skipped file, or a package that brings fewer, does not look like success."""
    count = 0
    for number, file in enumerate(FILES):
        folder = tmp_path / str(number)
        folder.mkdir()
        count += suite_of(file, 1, folder).countTestCases()
    assert count == TESTS


def test_every_excused_test_exists() -> None:
    for stem, excused in FRONT_END.items():
        (file,) = (one for one in FILES if one.stem == stem)
        assert excused.keys() <= {test["name"] for test in read(file)["tests"]}
