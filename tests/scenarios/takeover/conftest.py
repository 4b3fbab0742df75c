"""The reference with a small cloud in it, and the command line over a ledger of the test's own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, clean
from tests.servers.reference import Cloud, Placement, reference


@pytest.fixture(scope="session")
def cloud_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reference") / "placement.db"


@pytest.fixture(scope="session")
def cloud(cloud_file: Path) -> Iterator[Placement]:
    """The reference over a SQLite file, with the small cloud; nobody changes it."""
    with reference(cloud_file.parent, f"sqlite:///{cloud_file}") as placement:
        Cloud(placement).write()
        yield placement


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Placement]]:
    """Starts an empty reference over a database (its URL) of the test's own."""
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(reference(tmp_path / "placement", url))


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Where the test's ledger will be."""
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def admin(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    return Cli(clean(tmp_path) | {"MOORAGE_DATABASE": database})
