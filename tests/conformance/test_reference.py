"""The reference's own wire tests: the gabbi files of the PyPI package, unmodified, one test a file.

The files and their fixtures stay in their package. Its fixtures make providers through the
reference's model; here the few functions they use write to a Moorage ledger, through the wire.
"""

import os
import unittest
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.api.placement.access import DEFAULT, NEW_DEFAULTS, OPEN, Access
from moorage.http.cors import CorsConfig, with_cors
from moorage.http.wsgi import Application, Environ, StartResponse
from moorage.store import open_store

# Warnings of the reference's and gabbi's own code are not ours to repair.
with warnings.catch_warnings(action="ignore"):
    from gabbi.driver import build_tests
    from placement.tests.functional.db.test_base import uuids
    from placement.tests.functional.fixtures import gabbits as fixtures
pytestmark = pytest.mark.filterwarnings("ignore")

FILES = sorted((Path(fixtures.__file__).parents[1] / "gabbits").glob("*.yaml"))
TESTS = 1316
NAMES = (
    *("RP_UUID", "RP_NAME", "RP_UUID1", "RP_NAME1", "RP_UUID2", "RP_NAME2"),
    *("PROJECT_ID", "ADMIN_PROJECT_ID", "SERVICE_PROJECT_ID", "PROJECT_ID_ALT"),
    *("USER_ID", "USER_ID_ALT", "INSTANCE_UUID", "MIGRATION_UUID", "CONSUMER_UUID"),
    *("PARENT_PROVIDER_UUID", "ALT_PARENT_PROVIDER_UUID"),
)
"""Environment variables the files take their ids from."""


class World:
    """The application under test: made anew by each fixture, as the files expect."""

    def __init__(self, make: Callable[..., Any], new_database: Callable[[], str]) -> None:
        self._make = make
        self._new_database = new_database
        self.wire: Any = None
        self.app: Application | None = None

    def begin(self, access: Access, cors: CorsConfig) -> None:
        self.wire = self._make(open_store(self._new_database()), access, "")
        self.app = with_cors(self.wire.kernel, cors)

    def end(self) -> None:
        self.wire.store.close()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Any:
        # The in-process transport hands over decoded paths; PEP 3333 wants bytes as Latin-1.
        environ["PATH_INFO"] = environ["PATH_INFO"].encode().decode("latin-1")
        assert self.app is not None
        return self.app(environ, start_response)

    # --- what the reference's fixtures call, in their own argument order --------------------

    def done(self, method: str, path: str, body: object = None, version: str = "1.37") -> Any:
        answer = self.wire(method, path, body, version=version)
        assert answer.status < 300, answer.raw
        return answer

    def create_provider(self, _: object, name: str, *aggregates: str, **given: str) -> Any:
        own = given.get("uuid") or str(getattr(uuids, name))
        body = {"name": name, "uuid": own}
        if given.get("parent"):
            body["parent_provider_uuid"] = given["parent"]
        self.done("POST", "/resource_providers", body)
        path = f"/resource_providers/{own}/aggregates"

        def set_aggregates(members: object) -> None:
            self.done("PUT", path, members, "1.1")

        if aggregates:
            set_aggregates(aggregates)
        return SimpleNamespace(uuid=own, set_aggregates=set_aggregates)

    def ensure_class(self, name: str) -> None:
        if name.startswith("CUSTOM_"):
            self.done("PUT", f"/resource_classes/{name}")

    def add_inventory(self, provider: Any, resource_class: str, total: int, **more: Any) -> None:
        self.ensure_class(resource_class)
        body = {"resource_class": resource_class, "total": total, "max_unit": total, **more}
        self.done("POST", f"/resource_providers/{provider.uuid}/inventories", body)

    def set_traits(self, provider: Any, *traits: str) -> None:
        for name in traits:
            if name.startswith("CUSTOM_"):
                self.done("PUT", f"/traits/{name}")
        generation = self.wire.generation(provider.uuid)
        body = {"traits": traits, "resource_provider_generation": generation}
        self.done("PUT", f"/resource_providers/{provider.uuid}/traits", body)

    def set_allocation(
        self, _: object, provider: Any, consumer: Any, amounts: Mapping[str, int]
    ) -> None:
        body = {
            "allocations": {provider.uuid: {"resources": amounts}},
            "project_id": consumer.project,
            "user_id": consumer.user,
        }
        self.done("PUT", f"/allocations/{consumer.uuid}", body, "1.12")


def owner(_: object, external_id: str) -> Any:
    """A project or user; they need no rows of their own here."""
    return SimpleNamespace(external_id=external_id, create=lambda: None)


def consumer(_: object, user: Any, project: Any) -> Any:
    return SimpleNamespace(
        uuid=str(uuid.uuid4()), user=user.external_id, project=project.external_id
    )


def profile(fixture: object) -> tuple[Access, CorsConfig]:
    """Which settings of the real server a fixture stands for."""
    access: Access = NEW_DEFAULTS if getattr(fixture, "_secure_rbac", False) else DEFAULT
    if isinstance(fixture, fixtures.OpenPolicyFixture):
        access = OPEN
    if isinstance(fixture, fixtures.CORSFixture):
        origins = frozenset({"http://valid.example.com"})
        return access, CorsConfig(origins, allow_headers=frozenset({"openstack-api-version"}))
    return access, CorsConfig()


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database(request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Makes a database without any rows, on a private file or on a server."""
    if request.param == "sqlite":
        yield lambda: "sqlite://"
        return
    databases = request.getfixturevalue("postgres_databases")
    made: list[str] = []

    def migrated() -> str:
        made.append(databases.migrated())
        return made[-1]

    yield migrated
    for url in made:
        databases.release(url)


@pytest.fixture
def world(
    wire_class: Callable[..., Any],
    new_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[World]:
    """The reference's fixtures, made to build on Moorage."""
    made = World(wire_class, new_database)

    def start(fixture: Any) -> None:
        made.begin(*profile(fixture))
        ignore = SimpleNamespace(config=lambda **_: None, set_rules=lambda _: None)
        fixture.context, fixture.conf_fixture, fixture.policy_fixture = None, ignore, ignore

    monkeypatch.setattr(fixtures.APIFixture, "start_fixture", start)
    monkeypatch.setattr(fixtures.APIFixture, "stop_fixture", lambda _: made.end())
    model = SimpleNamespace(
        create_provider=made.create_provider,
        add_inventory=made.add_inventory,
        set_traits=made.set_traits,
        set_allocation=made.set_allocation,
        ensure_consumer=consumer,
        create_user_and_project=lambda *_, **__: (owner(None, "user"), owner(None, "project")),
    )
    monkeypatch.setattr(fixtures, "tb", model)
    monkeypatch.setattr(fixtures, "user_obj", SimpleNamespace(User=owner))
    monkeypatch.setattr(fixtures, "project_obj", SimpleNamespace(Project=owner))
    made_class = SimpleNamespace(
        ResourceClass=lambda context, name: SimpleNamespace(create=lambda: made.ensure_class(name))
    )
    monkeypatch.setattr(fixtures, "rc_obj", made_class)
    kept = dict(os.environ)
    os.environ.update({name: str(uuid.uuid4()) for name in NAMES})
    os.environ.update({f"CUSTOM_RES_CLASS{n}": f"CUSTOM_IRON_NFV{n}" for n in ("", "1", "2")})
    yield made
    os.environ.clear()
    os.environ.update(kept)


def suite_of(file: Path, world: World, folder: Path) -> unittest.TestSuite:
    """The tests of one file; the folder shows the driver this file alone."""
    (folder / file.name).symlink_to(file)
    suites = build_tests(
        str(folder),
        unittest.TestLoader(),
        host=None,
        test_loader_name="reference",
        intercept=lambda: world,
        fixture_module=fixtures,
    )
    assert isinstance(suites, unittest.TestSuite)
    return suites


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_reference(file: Path, world: World, tmp_path: Path) -> None:
    suite = suite_of(file, world, tmp_path)
    expected = suite.countTestCases()
    result = unittest.TestResult()
    suite.run(result)
    told = "\n".join(f"{test.id()}\n{text}" for test, text in result.failures + result.errors)
    assert not told, told
    assert result.testsRun == expected > 0


def test_none_of_the_reference_is_left_out(world: World, tmp_path: Path) -> None:
    """So that a skipped file, or a package that brings fewer, does not look like success."""
    count = 0
    for number, file in enumerate(FILES):
        folder = tmp_path / str(number)
        folder.mkdir()
        count += suite_of(file, world, folder).countTestCases()
    assert count == TESTS
